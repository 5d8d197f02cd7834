"""Runs a playbook on a host in four states with the real command, and counts the nodes that the plan predicted.

A node is exact if plan and apply have the same actions, arguments and changes. It is known after if the plan says that
its actions depend on another node. Otherwise it is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from statecfg.cli import session
from statecfg.cli.options import Selection
from statecfg.playbook.definition import for_undoing
from statecfg.run import fleet
from statecfg.transport import SshSettings
from tests.host.command import statecfg
from tests.host.resources.truth import steps
from tests.lab import Host

STATES = ("bare", "again", "drifted", "destroyed")
Nodes = dict[str, dict[str, Any]]


@dataclass
class Count:
    """The counts of one state; `wrong` describes the difference between plan and apply for each wrong node."""

    exact: int = 0
    known_after: list[str] = field(default_factory=list)
    acting: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Runner:
    """Runs commands with one playbook on one host."""

    playbook: Path
    host: Host
    options: Sequence[str]  # options for the connection and the variables
    environment: Mapping[str, str]  # environment variables with the secrets

    def run(self, verb: str, *more: str, code: int | None = 0) -> dict[str, Any]:
        """Run `statecfg VERB PLAYBOOK --json`; return the host's part of the report."""
        ran = statecfg(
            verb, self.playbook, *self.options, "--json", *more, code=None, cwd=self.playbook.parents[1],
            **self.environment,
        )  # fmt: skip
        assert '"hosts"' in ran.out, f"{verb}: {ran.out}\n{ran.err}"
        report = ran.json()["hosts"][self.host.name]
        assert code is None or ran.code == code, f"{verb}: exit code {ran.code}\n{ran.err}\n{failures(report)}"
        return dict(report)

    def destroy_plan(self) -> dict[str, Any]:
        """Return the report that `destroy` shows before its question, and answer no. This needs no terminal."""
        shown: list[dict[str, Any]] = []

        def refuse(report: Mapping[str, Any]) -> bool:
            shown.append(deepcopy(report["hosts"][self.host.name]))
            return False

        given = dict(zip(self.options[::2], self.options[1::2], strict=True))
        chosen = Selection(inventory=given["-i"], extra_vars=(given["-e"],) if "-e" in given else ())
        with patch.dict(os.environ, self.environment):
            work = session.prepare(self.playbook, chosen)
        jobs = [replace(job, definition=for_undoing(job.definition)) for job in work.jobs]
        settings = SshSettings(ssh_config=given["--ssh-config"])
        options = fleet.Options(mode="destroy", agreed=True, confirm=refuse, access=fleet.Access(settings))
        fleet.run(jobs, options, lambda event: None)
        return shown[0]

    def compare(self) -> Count:
        """Plan, apply, and return the comparison of both."""
        planned, done = self.run("plan"), self.run("apply", "--yes", code=None)
        assert done.get("status") == "ok", failures(done)
        return count(nodes(planned, "layers"), nodes(done, "layers"))

    def compare_destroy(self) -> Count:
        """Plan a destroy, destroy, and return the comparison of both."""
        planned, done = self.destroy_plan(), self.run("destroy", "--yes", code=None)
        assert done.get("status") == "ok", failures(done)
        return count(nodes(planned, "removals"), nodes(done, "removals"))


def nodes(report: Mapping[str, Any], part: str) -> Nodes:
    """Return the nodes in a part of a host's report, by name."""
    return {node["name"]: node for layer in report.get(part, ()) for node in layer}


def count(planned: Nodes, done: Nodes) -> Count:
    """Compare the planned nodes with the executed nodes."""
    found = Count(wrong=[f"{name}: not in the plan" for name in done if name not in planned])
    for name, node in planned.items():
        after = done.get(name)
        if after is None:
            found.wrong.append(f"{name}: not in the apply")
            continue
        if steps(after):
            found.acting.append(f"{name} ({', '.join(op for op, _ in steps(after))})")
        if node.get("known_after"):
            found.known_after.append(f"{name} ({node['known_after']})")
        elif steps(node) != steps(after):
            found.wrong.append(f"{name}: planned {steps(node)}, done {steps(after)}")
        elif node["changes"] != after["changes"]:
            found.wrong.append(f"{name}: planned changes {node['changes']}, done {after['changes']}")
        elif node["outcome"] != after["outcome"]:
            found.wrong.append(f"{name}: planned {node['outcome']}, ended {after['outcome']}")
        else:
            found.exact += 1
    return found


def failures(report: Mapping[str, Any]) -> str:
    """Return the failures on a host as text for an assertion message."""
    said = [str(report.get("status")), str(report.get("error", "")), str(report.get("halted", ""))]
    for part in ("removals", "layers"):
        for node in nodes(report, part).values():
            if node["outcome"] in ("failed", "unknown"):
                said.append(f"{node['name']}: {node.get('reason')} {node['actions'][-1:]}")
    return "\n".join(said)
