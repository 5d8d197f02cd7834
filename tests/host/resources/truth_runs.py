"""Runs that compare plans with applies, on hosts in four states (see `truth`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.plays import HostContext
from statecfg.resources import command
from tests import ROOT
from tests.host.resources.truth import CASES, fleet_run, nodes, steps
from tests.host.resources.truth_case import Case
from tests.lab import Host

# Cases with their own runs: they need or change the name of the playbook, logins, packages, the firewall or containers,
# or their runs take long.
ALONE = {
    "ansible_module", "apt_repository", "compose_project", "container", "container_image", "generate", "nftables",
    "package", "package_upgrade", "pam", "python_venv", "service", "sshd_config", "ufw", "ufw_rule",
}  # fmt: skip
Figures = tuple[int, int, int]  # the number of all nodes, of changed nodes, and of nodes known only later


def batches() -> dict[str, list[Case]]:
    """Return the cases by the names of their playbooks. None of those in one playbook changes what another one uses."""
    found: dict[str, list[Case]] = {"together": []}
    for case in CASES:
        found.setdefault(case.type if case.type in ALONE else "together", []).append(case)
    return found


def names(graphs: Sequence[Graph]) -> set[str]:
    """Return the names of the nodes of graphs."""
    definition = compile_graph(merge_graphs(*graphs), WireContext(HostContext("any"), Path.cwd()))
    return {node["provides"] for layer in definition.layers for node in layer}


def barrier(root: str) -> Graph:
    """Return a command that fails until a file exists, so that a run stops early."""
    return command("barrier", shell=f"test -e {root}-open", unless=f"test -e {root}-open", effects={})


def compare(host: Host, graphs: list[Graph], playbook: str = "truth") -> Figures:
    """Plan, apply, and apply again. Return the figures of the plan."""
    return figures(compared(host, graphs, playbook)[0])


def compared(host: Host, graphs: list[Graph], playbook: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plan, apply, and apply again. Return the nodes of the plan, and the report of the last apply."""
    planned = nodes(fleet_run(host, graphs, "plan", playbook))
    same(planned, fleet_run(host, graphs, "apply", playbook))
    again = fleet_run(host, graphs, "apply", playbook)
    assert set(again["summary"]) <= {"unchanged"}, again
    return planned, again


def same(planned: dict[str, Any], report: dict[str, Any]) -> None:
    """Check that an apply did what was planned."""
    assert report["status"] == "ok", report
    applied = nodes(report)
    for name, node in planned.items():
        if node.get("known_after"):
            continue
        assert steps(applied[name]) == steps(node), name
        assert applied[name]["changes"] == node["changes"], name
        assert applied[name]["outcome"] == node["outcome"], name
        assert all(action["status"] == "ok" for action in applied[name]["actions"]), name


def figures(planned: dict[str, Any], kind: str = "") -> Figures:
    """Return the figures of a plan, of all nodes or of those of one type."""
    counted = [node for node in planned.values() if kind in ("", node["type"])]
    later = sum(bool(node.get("known_after")) for node in counted)
    return len(counted), sum(node["outcome"] == "changed" for node in counted), later


def cell(found: Figures) -> str:
    """Return the cell of a table for these figures."""
    count, acting, later = found
    return f"{count - later} of {count} exact, {acting} act" + (f", {later} known later" if later else "")


def check_rows(host: Host, case: Case, rows: Sequence[tuple[str, str]]) -> None:
    """Compare plans with applies on one host in four states, and check the rows of the page about them.

    The case's `done` makes the host bare again. A row counts the nodes of one type.

    :param rows: for each row of the page the type of its nodes, and the first cell
    """
    root = f"/srv/{case.type}"
    graphs = case.declare(root, [])
    plans: list[dict[str, Any]] = []

    def compare() -> None:
        plans.append(nodes(fleet_run(host, graphs, "plan", case.type)))
        same(plans[-1], fleet_run(host, graphs, "apply", case.type))

    try:
        case.bare(host, root)
        compare()
        compare()
        assert figures(plans[1])[1:] == (0, 0)
        case.drift(host, root)
        compare()
    finally:
        case.done(host, root)
    host.run(["rm", "-rf", "/var/lib/statecfg"])
    try:
        case.bare(host, root)
        graphs.append(barrier(root))
        failed = fleet_run(host, graphs, "apply", case.type)
        assert nodes(failed)["command:barrier"]["outcome"] == "failed", failed
        host.write(f"{root}-open", "")
        compare()
    finally:
        case.done(host, root)
        host.run(["rm", "-f", f"{root}-open"])
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    wanted = [f"| {name} | {' | '.join(cell(figures(plan, kind)) for plan in plans)} |\n" for kind, name in rows]
    assert all(row in page for row in wanted), "".join(wanted)
