"""The next hook of a unit, for random members and states."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from statecfg.unit_rules.scheduler import ADDED, MODIFIED
from statecfg.unit_rules.workflow import Entered, Life, due
from tests.unit.unit_rules.test_workflow import CACHE, DB, STEPS


@given(
    st.sampled_from([life for life, _ in STEPS.values()]),
    st.lists(st.sampled_from([DB, CACHE]), unique=True),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_due_hook_fits_members_and_dying_state(
    life: Life, relations: list[Entered], flags: tuple[bool, bool, bool]
) -> None:
    dying, ends, happened = flags
    events = ((7, "db/0", MODIFIED), (8, "c/9", ADDED)) if happened else ()
    there = [replace(each, dying=ends, events=events) for each in relations]
    found = due(replace(life, dying=dying), there, None)
    if found is None:
        return
    assert found.remote in ("", *found.members) or found.event == "departed"
    assert list(found.members) == sorted(set(found.members))
    if dying:
        assert found.event in ("departed", "broken") or found.hook == "stop"
        assert found.hook != "stop" or not any(each.dying for each in there)
    assert (found.relation is None) == (found.event == "")
