"""Frozen classes behave as those of Python's own `dataclass`."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from statecfg.problems import frozen
from tests.each import each


def classes(dataclass: Any, slots: bool) -> tuple[Any, Any]:
    """Return a class with fields of all kinds, and a class that inherits from it."""

    @dataclass(frozen=True, slots=slots)
    class Base:
        """A class."""

        name: str
        hidden: str = dataclasses.field(default="h", repr=False, compare=False)
        many: tuple[int, ...] = ()
        made: str = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.name * 2)

    @dataclass(frozen=True, slots=slots)
    class More(Base):
        """Another class."""

        extra: int = 0

        def __repr__(self) -> str:
            return f"More {self.extra}"

    return Base, More


@each("slots", [False, True])
def test_frozen_classes_behave_as_pythons_own(slots: bool) -> None:
    found = []
    for dataclass in (dataclasses.dataclass, frozen.dataclass):
        base, more = classes(dataclass, slots)
        one, same, other = base("a"), base("a", "x"), base("b", many=(1,))
        found.append(
            [
                repr(one), repr(other), repr(more("a", extra=3)), one == same, one == other, one == "a",
                one != more("a"), hash(one) == hash(same), len({one, same, other}), dataclasses.asdict(other),
                dataclasses.replace(other, name="c") == base("c", many=(1,)), copy.copy(other) == other,
                copy.deepcopy(other) == other, other.made, [field.name for field in dataclasses.fields(more)],
                hasattr(one, "__dict__"), base.__doc__, base.__match_args__,
            ]
        )  # fmt: skip
    assert found[0] == found[1]


@each("slots", [False, True])
def test_a_frozen_object_can_not_be_changed(slots: bool) -> None:
    base, _ = classes(frozen.dataclass, slots)
    one = base("a")
    for name in ("name", "many", "made", "new"):
        with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
            setattr(one, name, "b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    with pytest.raises(TypeError):
        base()
    assert one == base("a")
