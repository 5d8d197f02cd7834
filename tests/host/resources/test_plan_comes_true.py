"""An apply does what the plan says: for every node type, on bare, converged, drifted and half-failed hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from statecfg.graph.graph import Graph
from tests import ROOT
from tests.host.resources import truth
from tests.host.resources.truth import CASES, STATES, fleet_run, nodes
from tests.host.resources.truth_case import Case
from tests.host.resources.truth_runs import barrier, batches, cell, compared, figures, names, same
from tests.lab import Host

PAGE = ROOT / "docs" / "measured.md"
BATCHES = batches()
BARRIER = "command:barrier"
_FOUND: dict[tuple[str, str], tuple[int, int, int]] = {}


@contextmanager
def prepared(batch: str, host: Host) -> Iterator[dict[str, list[Graph]]]:
    """Prepare a host for the cases of a batch, and return their graphs. Afterwards, nothing of them runs any more."""
    try:
        for case in BATCHES[batch]:
            case.bare(host, root(case))
        yield {case.type: case.declare(root(case), []) for case in BATCHES[batch]}
    finally:
        for case in BATCHES[batch]:
            case.done(host, root(case))


def root(case: Case) -> str:
    """Return the directory of a case on hosts."""
    return f"/srv/{case.type}"


def note(state: str, graphs: dict[str, list[Graph]], planned: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Note the figures of each case. The barrier belongs to all cases."""
    of_case = {name: names(declared) | {BARRIER} for name, declared in graphs.items()}
    found = {name: figures({key: planned[key] for key in planned if key in own}) for name, own in of_case.items()}
    _FOUND.update({(name, state): counts for name, counts in found.items()})
    return found


# Each batch has its own playbook. In one playbook for all types, the nodes of earlier batches would be resources that
# the definition no longer contains, and each run would load the code of their types.
@pytest.mark.parametrize("batch", BATCHES)
def test_apply_does_exactly_the_planned_actions_for_every_type(batch: str, booted: Host) -> None:
    with prepared(batch, booted) as graphs:
        declared = [graph for of_case in graphs.values() for graph in of_case]
        planned, again = compared(booted, declared, batch)
        assert all(acting > 0 for _, acting, _ in note("bare", graphs, planned).values())
        # The last apply found a converged host, and changed nothing.
        planned = nodes(fleet_run(booted, declared, "plan", batch))
        same(planned, again)
        assert all(found[1:] == (0, 0) for found in note("converged", graphs, planned).values())
        for case in BATCHES[batch]:
            case.drift(booted, root(case))
        drifted = note("drifted", graphs, compared(booted, declared, batch)[0])
        assert [name for name, found in drifted.items() if not sum(found[1:])] == []


@pytest.fixture(scope="module")
def halfway(apt_packages: Any) -> Iterator[Host]:
    """Give a separate host for runs that first fail at the barrier."""
    from tests import lab

    host = lab.booted_host("halfway")
    apt_packages.use(host)
    yield host
    host.stop()


@pytest.mark.parametrize("batch", BATCHES)
def test_apply_does_exactly_the_planned_actions_after_a_failed_run(batch: str, halfway: Host) -> None:
    with prepared(batch, halfway) as graphs:
        # The barrier is in the first layer, so later layers never start.
        place = f"/srv/{batch}"
        declared = [*(graph for of_case in graphs.values() for graph in of_case), barrier(place)]
        failed = fleet_run(halfway, declared, "apply", batch)
        assert failed["status"] == "failed"
        assert nodes(failed)[BARRIER]["outcome"] == "failed"
        halfway.write(f"{place}-open", "")
        note("half-failed", graphs, compared(halfway, declared, batch)[0])


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
