"""Failing hooks: each policy at each event, on the controller and on the host, and in the following runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from statecfg.remote.graph.names import ResourceEvent
from tests import lab
from tests.host.run.hooked import Site, fired, outcomes, states
from tests.lab.fixtures import or_skip

POLICIES = ("abort", "continue", "retry")
CASES = [(event, policy) for event in ResourceEvent.ALL for policy in POLICIES]
A, B, C = "file:/srv/site-a", "file:/srv/site-b", "file:/srv/site-c"
# Fails while one of two files exists, one on the controller and one on the host.
SWITCH = """#!/bin/sh
cat > /dev/null
[ -e {root}/cold ] || [ -e /srv/cold ] || exit 0
echo '{{"error": {{"message": "the oven is cold"}}}}'
exit 3
"""
RUNS = ("created", "created again", "updated", "updated again", "removed", "removed again")


@dataclass
class Seen:
    """What a run left on a host: its report, and the states in its ledger."""

    report: dict[str, Any]
    states: dict[str, str]
    code: int

    @property
    def told(self) -> tuple[Any, ...]:
        """The status of the run, and the outcome and the state of each node in it."""
        found = outcomes(self.report)
        nodes = (f"{name[-1]} {found.get(name, '-')} {self.states.get(name, '-')}" for name in (A, B, C))
        return (self.report["status"], *(text for text in nodes if not text.endswith(" - -")))

    @property
    def fired(self) -> list[tuple[str, str]]:
        """The nodes for which the hook was called, and the result of each call."""
        return [(name[-1], status) for _, _, name, status in fired(self.report)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Seen]]]:
    """Give the results of six runs for each case. The hook fails in every other run."""
    with or_skip():
        machines = lab.light_hosts(len(CASES), prefix="policy")
    try:
        yield runs(Site(tmp_path_factory.mktemp("policies") / "site", machines))
    finally:
        for host in machines:
            host.stop()


def runs(site: Site) -> dict[str, list[Seen]]:
    for number, ((event, policy), host) in enumerate(zip(CASES, site.hosts, strict=True)):
        where = "host" if number % 2 else "controller"
        name = f"{event}-{policy}"
        select = {"hosts": host.name, "tags": ["a", "c"]}
        more = {"where": where, "onFailure": policy, "select": select}
        site.hook(name, {event: SWITCH.format(root=site.root)}, **more)
    found: dict[str, list[Seen]] = {f"{event} {policy}": [] for event, policy in CASES}
    contents = [{"a": "1", "b": "1", "c": "1"}] * 2 + [{"a": "2", "b": "1", "c": "1"}] * 2 + [{"a": "2"}] * 2
    for number, defined in enumerate(contents):
        site.files(**defined)
        switch(site, cold=number % 2 == 0)
        words = ["--prune", "--forks", "18"] if number > 3 else ["--forks", "18"]
        ran = site.run("apply", "site.yml", "--yes", "--json", *words, code=None)
        for (event, policy), host in zip(CASES, site.hosts, strict=True):
            report = ran.json()["hosts"][host.name]
            found[f"{event} {policy}"].append(Seen(report, states(host), ran.code))
    return found


def switch(site: Site, cold: bool) -> None:
    for path in (site.root / "cold", *(host.path("/srv/cold") for host in site.hosts)):
        path.write_text("") if cold else path.unlink(missing_ok=True)


def ok(*nodes: str) -> tuple[str, ...]:
    return ("ok", *nodes)


def failed(*nodes: str) -> tuple[str, ...]:
    return ("failed", *nodes)


ALL_NEW = ok("a changed RESOLVED", "b changed RESOLVED", "c changed RESOLVED")
ALL_SAME = ok("a unchanged RESOLVED", "b unchanged RESOLVED", "c unchanged RESOLVED")
A_NEW = ok("a changed RESOLVED", "b unchanged RESOLVED", "c unchanged RESOLVED")
GONE = ok("a unchanged RESOLVED", "b changed -", "c changed -")
REST = ok("a unchanged RESOLVED")
QUIET = (ALL_NEW, ALL_SAME, A_NEW, ALL_SAME, GONE, REST)  # with a hook that never fails
Told = tuple[str, ...]
# For each case and each run in which the hook fails: the report and the hook calls of that run and of the next run.
EXPECTED: dict[str, dict[int, tuple[Told, str, Told, str]]] = {
    "pre-reconcile abort": {
        0: (failed("a failed -", "b skipped -", "c skipped -"), "a failed", ALL_NEW, "a ok, c ok"),
        2: (failed("a failed RESOLVED", "b skipped RESOLVED", "c skipped RESOLVED"), "a failed", A_NEW, "a ok, c ok"),
        4: (failed("a failed RESOLVED", "b changed -", "c changed -"), "a failed", REST, "a ok"),
    },
    "pre-reconcile continue": {
        0: (ALL_NEW, "a continued, c continued", ALL_SAME, "a ok, c ok"),
        2: (A_NEW, "a continued, c continued", ALL_SAME, "a ok, c ok"),
        4: (GONE, "a continued", REST, "a ok"),
    },
    "pre-reconcile retry": {
        0: (failed("a skipped -", "b skipped -", "c skipped -"), "a owed", ALL_NEW, "a ok, c ok"),
        2: (failed("a skipped RESOLVED", "b skipped RESOLVED", "c skipped RESOLVED"), "a owed", A_NEW, "a ok, c ok"),
        4: (failed("a skipped RESOLVED", "b changed -", "c changed -"), "a owed", REST, "a ok"),
    },
    "post-create abort": {
        0: (
            failed("a failed RESOLUTION_ERROR", "b skipped -", "c skipped -"), "a failed",
            ok("a unchanged RESOLVED", "b changed RESOLVED", "c changed RESOLVED"), "a ok, c ok",
        ),
    },
    "post-create continue": {0: (ALL_NEW, "a continued, c continued", ALL_SAME, "")},
    "post-create retry": {
        0: (
            ok("a changed RESOLUTION_ERROR", "b changed RESOLVED", "c changed RESOLUTION_ERROR"), "a owed, c owed",
            ALL_SAME, "a ok, c ok",
        ),
    },
    "post-update abort": {
        2: (failed("a failed RESOLVED", "b skipped RESOLVED", "c skipped RESOLVED"), "a failed", ALL_SAME, ""),
    },
    "post-update continue": {2: (A_NEW, "a continued", ALL_SAME, "")},
    "post-update retry": {2: (A_NEW, "a owed", ALL_SAME, "a ok")},
    "pre-delete abort": {
        4: (failed("a unchanged RESOLVED", "b skipped RESOLVED", "c failed RESOLVED"), "c failed", GONE, "c ok"),
    },
    "pre-delete continue": {4: (GONE, "c continued", REST, "")},
    "pre-delete retry": {
        4: (failed("a unchanged RESOLVED", "b skipped RESOLVED", "c skipped RESOLVED"), "c owed", GONE, "c ok"),
    },
    "finalize abort": {
        4: (failed("a unchanged RESOLVED", "b skipped RESOLVED", "c failed IN_DELETION"), "c failed", GONE, "c ok"),
    },
    "finalize continue": {4: (GONE, "c continued", REST, "")},
    "finalize retry": {
        4: (failed("a unchanged RESOLVED", "b skipped RESOLVED", "c skipped IN_DELETION"), "c owed", GONE, "c ok"),
    },
    "post-delete abort": {
        4: (
            failed("a unchanged RESOLVED", "b skipped RESOLVED", "c failed IN_DELETION"), "c failed",
            ok("a unchanged RESOLVED", "b changed -", "c unchanged -"), "c ok",
        ),
    },
    "post-delete continue": {4: (GONE, "c continued", REST, "")},
    "post-delete retry": {
        4: (
            ok("a unchanged RESOLVED", "b changed -", "c changed IN_DELETION"), "c owed",
            ok("a unchanged RESOLVED", "c unchanged -"), "c ok",
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize("case", EXPECTED)
def test_a_failing_hook_follows_its_policy_until_it_is_repaired(seen: dict[str, list[Seen]], case: str) -> None:
    for number, (run, found) in enumerate(zip(RUNS, seen[case], strict=True)):
        what = EXPECTED[case].get(number - number % 2)
        told, fires = what[2 * (number % 2) :][:2] if what is not None else (QUIET[number], "")
        assert (found.told, ", ".join(" ".join(pair) for pair in found.fired)) == (told, fires), run
        assert found.code == (1 if number % 2 == 0 else 0)  # the exit code for all hosts


@pytest.mark.parametrize("case", [case for case in EXPECTED if not case.endswith("continue")])
def test_a_hook_failure_names_the_hook_and_its_error(seen: dict[str, list[Seen]], case: str) -> None:
    event, _, policy = case.partition(" ")
    (number,) = list(EXPECTED[case])[-1:]
    host = seen[case][number].report
    (told, *_) = [each for each in host["fired"] if each["status"] in ("failed", "owed")]
    assert told["error"] == "the oven is cold" and told["event"] == event
    (node,) = [node for part in ("removals", "layers") for layer in host[part] for node in layer
               if node["name"] == told["name"]]  # fmt: skip
    said = f"the {event} hook {event}-{policy} failed: the oven is cold"
    if policy == "abort":
        assert node["reason"] == said
    elif event not in ("post-create", "post-update"):  # both policies leave the node unchanged
        assert node["reason"] == f"{said}; a later run tries again"
