"""Texts about a playbook's runs that users may see: counts and codes. Only administrators see host names and paths.

A task's `result`, `error` and `details` are visible to its tenant. The texts for administrators are in the task's log.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from statecfg.problems import Problem
from statecfg.run.report_model import Report

ASK = "Administrators see the reasons in the task's details."
_PATH = re.compile(r"(?<![\w.:/~-])/([\w.@+-]+)/(?:[\w.@+-]+/)*")  # an absolute path up to its last name


class RunCounts(TypedDict):
    """The number of hosts of a run by status, and of resources by outcome."""

    run: str
    mode: str
    hosts: Mapping[str, int]
    resources: Mapping[str, int]


class TaskResult(TypedDict):
    """The result of a task."""

    runs: list[RunCounts]


def result(reports: Sequence[Report]) -> TaskResult:
    """Return the result of a task: the counts of each run."""
    return {"runs": [_run(report) for report in reports]}


def details(reports: Sequence[Report]) -> str:
    """Return the details of a task: one line for each run."""
    return "\n".join(_line(_run(report)) for report in reports)


def failed_runs(reports: Iterable[Report], failed: Sequence[str]) -> str:
    """Return why a task failed: the counts of hosts and resources of each failed run.

    :param failed: ids of the failed runs
    """
    lines = [_line(_run(report)) for report in reports if report["run"] in failed]
    return f"The playbook failed: {'; '.join(lines)}. {ASK}"


def rejected(problems: Iterable[Problem]) -> str:
    """Return why a playbook cannot be used with an entity, without names and paths."""
    reasons = dict.fromkeys(f"{problem.summary} [{problem.code}]" for problem in problems)
    return f"The playbook cannot be used with this entity: {', '.join(reasons)}. {ASK}"


def without_path(text: str, root: Path) -> str:
    """Return a function's text without the server's paths.

    Files of the project keep their relative path, others keep only their name.
    """
    inside = text.replace(f"{root}/", "").replace(str(root), "the project")
    return _PATH.sub(lambda match: "…/" if os.path.isdir(f"/{match[1]}") else match[0], inside)


def _run(report: Report) -> RunCounts:
    hosts = Counter(host["status"] for host in report["hosts"].values())
    resources: Counter[str] = Counter()
    for host in report["hosts"].values():
        resources.update({outcome: count for outcome, count in (host.get("summary") or {}).items() if count})
    return {"run": report["run"], "mode": report["mode"], "hosts": dict(hosts), "resources": dict(resources)}


def _line(run: RunCounts) -> str:
    hosts = ", ".join(f"{count} {status}" for status, count in run["hosts"].items()) or "none"
    resources = ", ".join(f"{count} {outcome}" for outcome, count in run["resources"].items()) or "none"
    return f"run {run['run']}: {run['mode']}: hosts: {hosts}; resources: {resources}"
