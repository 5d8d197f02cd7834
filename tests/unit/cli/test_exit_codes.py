"""The exit status for each outcome, and for several outcomes at once."""

from __future__ import annotations

import itertools

from statecfg.cli import exit_codes
from tests.each import each


def report(mode="plan", **hosts):
    return {"format": 1, "mode": mode, "hosts": hosts}


def host(status="ok", *outcomes, **more):
    nodes = [{"name": f"n{i}", "outcome": outcome} for i, outcome in enumerate(outcomes)]
    return {"status": status, "layers": [nodes], **more}


GOING, FORGOTTEN = [{"outcome": "changed"}], [{"outcome": "unchanged"}]


@each(
    ("given", "detailed", "expected"),
    [
        (report(), False, 0),
        (report(a=host("ok", "unchanged")), True, 0),
        (report(a=host("ok", "changed")), False, 0),
        (report(a=host("ok", "changed")), True, 2),
        (report(a=host("ok", "unknown")), False, 0),
        (report(a=host("ok", "unknown")), True, 2),
        (report(a=host("ok", owed=["service:x"])), True, 2),
        (report(a=host("ok", "failed")), False, 1),
        (report("apply", a=host("ok", "changed")), True, 0),
        (report("apply", a=host("ok", "unknown")), False, 3),
        (report("apply", a=host("failed", "failed", "skipped")), False, 1),
        (report("apply", a=host("unknown")), False, 3),
        (report("apply", a=host("unreachable")), False, 4),
        (report("apply", a=host("refused")), False, 6),
        (report("apply", a=host("locked")), False, 7),
        (report("apply", a=host("failed"), b=host("unreachable"), c=host("unknown")), False, 3),
        (report("apply", a=host("locked"), b=host("unreachable"), c=host("refused")), False, 4),
        (report("plan", a=host("ok", "changed"), b=host("refused")), True, 6),
        (report("plan", a=host("ok", removals=[GOING])), False, 0),
        (report("plan", a=host("ok", removals=[GOING])), True, 2),
        (report("plan", a=host("ok", removals=[FORGOTTEN])), True, 2),
        (report("plan", a=host("ok", left=[GOING])), True, 0),
        (report("plan", a={**host(), "layers": [[{"outcome": "unchanged", "state": "PRE_CREATED"}]]}), True, 2),
        (report("verify", a=host("ok", "unchanged")), False, 0),
        (report("verify", a=host("ok", "changed")), False, 2),
        (report("verify", a=host("ok", "unknown")), False, 2),
        (report("verify", a=host("ok", left=[GOING])), False, 2),
        (report("verify", a=host("ok", owed=["service:x"])), False, 2),
        (report("verify", a=host("failed", "changed", "failed")), False, 1),
        (report("prune", a=host("ok", removals=[GOING])), True, 0),
        (report("destroy", a=host("failed", removals=[[{"outcome": "failed"}]])), False, 1),
        (report("prune", a=host("unknown", removals=[[{"outcome": "unknown"}]])), False, 3),
        (report("apply", a=host("refused", refusal="3 of the 4 resources")), False, 5),
        (report("apply", a=host("refused", refusal="it is protected"), b=host("refused")), False, 6),
        (report("apply", a=host("ok", "changed", fired=[{"status": "ok"}, {"status": "continued"}])), False, 0),
        (report("apply", a=host("ok", "changed", fired=[{"status": "owed"}])), False, 1),
        (report("apply", a=host("ok", fired=[{"status": "failed"}])), False, 1),
        (report("history", a=host("ok")), False, 0),
    ],
)
def test_report_determines_the_exit_status(given, detailed, expected):
    assert exit_codes.of_report(given, detailed) == expected


def test_worst_exit_status_wins_in_the_documented_order():
    order = (3, 8, 1, 4, 7, 6, 5, 2, 0)
    for worse, better in itertools.combinations(order, 2):
        assert exit_codes.worst([better, worse, better]) == worse
    assert exit_codes.worst([]) == 0
