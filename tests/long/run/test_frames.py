"""Random frames of hosts: statecfg refuses them or reads them unchanged, and estimates their memory."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.run.strict import Free, Invalid, OneOf, Strict, weigh
from tests.unit.run.test_frames import CLASSES, names

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON that matches a type annotation."""
    origin, given_ = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        free = given_[1]
        if isinstance(free, OneOf):
            return st.sampled_from(free.allowed)
        assert isinstance(free, Free)
        if given_[0] not in (Any, Mapping[str, Any]):
            return of(given_[0])
        return st.dictionaries(TEXT, JSON, max_size=3) if free.map else JSON
    if origin is typing.Literal:
        return st.sampled_from(given_)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([st.none() if each is types.NoneType else of(each) for each in given_])
    if origin is tuple:
        return st.lists(of(given_[0]), max_size=2)
    if origin is Mapping:
        return st.dictionaries(TEXT, of(given_[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, Strict):
        return valid(hint)
    plain = {str: TEXT, int: st.integers(), float: st.integers() | st.floats(allow_nan=False), bool: st.booleans()}
    return plain[hint]


def valid(cls: type[Strict]) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for JSON that matches a class, with or without its optional keys."""
    hints = typing.get_type_hints(cls, include_extras=True)
    must, may = {}, {}
    for name in names(cls):
        (may if hasattr(cls, name) else must)[name] = of(hints[name])
    return st.fixed_dictionaries(must, optional=may)


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


@settings(max_examples=50)
@given(value=JSON)
def test_any_json_is_read_or_raises_invalid(value: Any) -> None:
    for cls in CLASSES:
        try:
            assert cls.from_json(value).to_json() == value
        except Invalid as problem:
            assert len(str(problem)) < 1000


@settings(max_examples=50)
@given(value=JSON)
def test_weigh_never_underestimates_the_memory_of_a_value(value: Any) -> None:
    def taken(item: Any) -> int:
        inner = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else []
        return sys.getsizeof(item) + sum(map(taken, inner))

    assert weigh(value) >= taken(value)
