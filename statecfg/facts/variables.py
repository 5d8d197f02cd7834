"""Variables of a host, as definitions read them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from statecfg.problems import InvalidInput, positions, problem, suggest

NO_VARS: Mapping[str, Any] = MappingProxyType({})


class UnknownVariable(InvalidInput, AttributeError, KeyError):
    """A play uses a variable that is not set. `getattr` and `get` with a default catch it as usual."""


class Vars(Mapping[str, Any]):
    """A host's variables, as items or attributes. Reading an unknown variable raises an error that lists all names.

    :param values: name → value
    :param note: called with each name that is looked up, whether it exists or not, and with None if all names are; None
        records nothing
    """

    __slots__ = ("_note", "_values")

    def __init__(self, values: Mapping[str, Any] = NO_VARS, note: Callable[[str | None], None] | None = None) -> None:
        self._values, self._note = dict(values), note

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key))
        name = name if name in self._values else name.replace("-", "_")
        if self._note is not None:
            self._note(name)
        return self._values[name] if name in self._values else self.__missing__(key)

    def __missing__(self, key: object) -> Any:
        name = str(getattr(key, "name", key))
        hint = suggest(name, self._values, "variables here") or "set it in the inventory, in the play's vars or with -e"
        location = positions.of_frame(sys._getframe(1))
        raise UnknownVariable([problem("SC0514", f"the variable {name} is not defined", hint, location)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        if self._note is not None:
            self._note(None)
        return iter(self._values)

    def __len__(self) -> int:
        if self._note is not None:
            self._note(None)
        return len(self._values)

    def __repr__(self) -> str:
        return f"Vars({', '.join(self)})"  # names only: values may be secrets

    def __deepcopy__(self, memo: dict[int, Any]) -> Vars:
        """Return a copy that records what is read, too."""
        return Vars(copy.deepcopy(self._values, memo), self._note)

    def extended(self, more: Mapping[str, Any]) -> Vars:
        """Return these variables with more of them, which override those of the same name."""
        return Vars({**self._values, **more}, self._note)

    @property
    def unrecorded(self) -> Mapping[str, Any]:
        """All variables, for templates, which record by themselves what they read."""
        return dict(self._values)
