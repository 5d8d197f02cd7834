"""An apply decides as the plan says about nodes with conditions: on bare, converged, drifted and half-failed hosts."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import directory, file, package, user
from tests import ROOT
from tests.host.resources.truth import STATES, fleet_run, nodes
from tests.host.resources.truth_runs import barrier, cell, compare
from tests.lab import Host

PAGE = ROOT / "docs" / "measured.md"
_FOUND: dict[str, tuple[int, int, int]] = {}
EXCLUDED = {"old", "absent", "unit"}


def declare(root: str) -> list[Graph]:
    above, ann = directory(root), user("ann")
    conf = file(f"{root}/conf", content="mode = live\n", requires=[above])
    tool = package("tool-b")  # it needs tool-a, of which apt takes version 2.0
    conditions: dict[str, Any] = {
        "directory": {"path": root, "is": "directory"},
        "live": [{"path": f"{root}/conf", "contains": "^mode = live"}, {"user": "ann"}],
        "tool": {"package": "tool-b", "version": ">= 1.0"},
        "new": {"package": "tool-a", "version": ">= 2"},
        "old": {"package": "tool-a", "version": "< 2"},
        "absent": {"not": {"path": f"{root}/conf"}},
        "either": {"any": [{"package": "webd"}, {"group": "daemon"}]},
        "ssh": {"unit": "systemd-journald"},
        "unit": {"unit": "no-such-unit"},
        "runs": {"command": ["grep", "-q", "live", f"{root}/conf"], "read_only": True, "reads": [f"{root}/conf"]},
    }
    files = [
        file(f"{root}/{name}", content="x", when_host=condition, requires=[tool] if name in ("new", "old") else [])
        for name, condition in conditions.items()
    ]
    return [above, ann, conf, tool, *files]


def drift(host: Host, root: str) -> None:
    host.run(["apt-get", "-qy", "remove", "tool-a"])  # and tool-b
    host.write(f"{root}/conf", "mode = test\n")
    host.write(f"{root}/either", "by hand")
    host.run(["rm", f"{root}/live", f"{root}/directory"])


def compared(host: Host, root: str, state: str) -> tuple[int, int, int]:
    """Compare the plan and the apply, also which nodes are excluded; return the result of `compare`."""
    planned = nodes(fleet_run(host, declare(root), "plan"))
    _FOUND[state] = compare(host, declare(root))
    applied = nodes(fleet_run(host, declare(root), "apply"))
    for name, node in planned.items():
        short = name.rpartition("/")[2]
        if not node.get("known_after"):
            assert bool(node.get("excluded")) == (short in EXCLUDED), node
        assert bool(applied[name].get("excluded")) == (short in EXCLUDED), applied[name]
        assert host.path(f"{root}/{short}").exists() == (short not in EXCLUDED) or name[:5] != "file:"
    return _FOUND[state]


def test_decisions_are_those_of_the_plan(booted: Host) -> None:
    root = "/srv/decisions"
    assert compared(booted, root, "bare")[1] > 0
    assert compared(booted, root, "converged")[1:] == (0, 0)
    drift(booted, root)
    assert sum(compared(booted, root, "drifted")[1:]) > 0


def test_decisions_after_a_failed_run(apt_packages: Any, make_booted_host: Any) -> None:
    host, root = make_booted_host(), "/srv/decisions"
    apt_packages.use(host)
    failed = fleet_run(host, [*declare(root), barrier(root)], "apply")
    assert failed["status"] == "failed"
    host.write(f"{root}-open", "")
    compared(host, root, "half-failed")


def test_the_documentation_page_has_the_measured_figures() -> None:
    if len(_FOUND) < len(STATES):
        pytest.skip("it compares the figures of all other tests of this file, and some of them have not run before it")
    cells = [cell(_FOUND[state]) for state in STATES]
    row = f"| conditions (`when_host`) | {' | '.join(cells)} |\n"
    assert row in PAGE.read_text(encoding="utf-8"), row
