"""An apply does what the plan says: for every node type, on bare, converged, drifted and half-failed hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import ROOT
from tests.host.resources import truth
from tests.host.resources.truth import CASES, STATES, fleet_run, nodes
from tests.host.resources.truth_case import Case
from tests.host.resources.truth_runs import barrier, cell, compare, compared, same
from tests.lab import Host

PAGE = ROOT / "docs" / "measured.md"
_FOUND: dict[tuple[str, str], tuple[int, int, int]] = {}


@contextmanager
def prepared(case: Case, host: Host) -> Iterator[str]:
    """Prepare a host for a case, and return the case's directory. Afterwards, nothing of it runs any more."""
    root = f"/srv/{case.type}"
    try:
        case.bare(host, root)
        yield root
    finally:
        case.done(host, root)


# Each type has its own playbook. In one playbook for all types, the nodes of earlier types would be resources that the
# definition no longer contains, and each run would load the code of their types.
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.type)
def test_apply_does_exactly_the_planned_actions_for_every_type(case: Case, booted: Host) -> None:
    with prepared(case, booted) as root:
        graphs = case.declare(root, [])
        _FOUND[case.type, "bare"], again = compared(booted, graphs, case.type)
        assert _FOUND[case.type, "bare"][1] > 0
        # The last apply found a converged host, and changed nothing.
        _FOUND[case.type, "converged"] = same(nodes(fleet_run(booted, graphs, "plan", case.type)), again)
        assert _FOUND[case.type, "converged"][1:] == (0, 0)
        case.drift(booted, root)
        _FOUND[case.type, "drifted"] = compare(booted, graphs, case.type)
        assert sum(_FOUND[case.type, "drifted"][1:]) > 0


@pytest.fixture(scope="module")
def halfway(apt_packages: Any) -> Iterator[Host]:
    """Give a separate host for runs that first fail at the barrier."""
    from tests import lab

    host = lab.booted_host("halfway")
    apt_packages.use(host)
    yield host
    host.stop()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.type)
def test_apply_does_exactly_the_planned_actions_after_a_failed_run(case: Case, halfway: Host) -> None:
    with prepared(case, halfway) as root:
        # The barrier is in the first layer, so later layers never start.
        graphs = [*case.declare(root, []), barrier(root)]
        failed = fleet_run(halfway, graphs, "apply", case.type)
        assert failed["status"] == "failed"
        assert nodes(failed)["command:barrier"]["outcome"] == "failed"
        halfway.write(f"{root}-open", "")
        _FOUND[case.type, "half-failed"] = compare(halfway, graphs, case.type)


def table() -> str:
    """Return the table of the page: for each type and state the number of exact, changed and later known nodes."""
    rows = ["| node type | " + " | ".join(STATES) + " |", "| --- |" + " --- |" * len(STATES)]
    for case in CASES:
        cells = [cell(_FOUND[case.type, state]) for state in STATES]
        rows.append(f"| {case.type} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def test_the_documentation_page_has_the_measured_figures() -> None:
    if len(_FOUND) < len(CASES) * len(STATES):
        pytest.skip("it compares the figures of all other tests of this file, and some of them have not run before it")
    assert table() in PAGE.read_text(encoding="utf-8"), table()


def test_every_node_type_has_a_case() -> None:
    from statecfg import resources

    assert {case.type for case in truth.CASES} == set(resources.available()) - truth.NOT_FOR_REAL - truth.OTHER_HOSTS
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in truth.NOT_FOR_REAL)
    assert all(f"\n| {name} | " in page for name in truth.OTHER_HOSTS)
