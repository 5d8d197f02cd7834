"""Random frames of hosts: statecfg refuses them or reads them unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.run.strict import Invalid, Strict
from tests.unit.run.test_frames import CLASSES, JSON, TEXT, valid


def spots(value: Any) -> list[dict[str, Any]]:
    """Return all maps in a value, beginning with the value itself."""
    found = [value] if isinstance(value, dict) else []
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found += spots(inner)
    return found


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_valid_frame_is_read_unchanged_and_frozen(cls: type[Strict], data: st.DataObject) -> None:
    value = data.draw(valid(cls))
    read = cls.from_json(value)
    assert read.to_json() == value
    if value:
        with pytest.raises(AttributeError, match="can't be changed"):
            setattr(read, next(iter(value)), 1)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_frame_with_an_unknown_key_is_refused(cls: type[Strict], data: st.DataObject) -> None:
    value = data.draw(valid(cls))
    value["an unknown key"] = data.draw(JSON)
    with pytest.raises(Invalid, match="unknown key"):
        cls.from_json(value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damaged_frame_is_refused_or_read_unchanged(cls: type[Strict], data: st.DataObject) -> None:
    """If a frame contains random JSON in a random place, statecfg refuses it or reads it unchanged."""
    value = data.draw(valid(cls))
    spot = data.draw(st.sampled_from(spots(value)))
    key = data.draw(st.sampled_from(sorted(spot)) if spot else TEXT)
    spot[key] = data.draw(JSON)
    try:
        read = cls.from_json(value)
    except Invalid:
        return
    assert read.to_json() == value
