"""`hosts` and `groups`: what a definition reads about all hosts of the inventory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from statecfg.facts.catalogue import Facts
from statecfg.facts.reading import CURRENT, InventoryView, KnownHost, Reading
from statecfg.facts.variables import Vars
from statecfg.facts.view import CurrentFacts
from statecfg.problems import InvalidInput, Problem, positions, problem, suggest
from statecfg.remote.graph.model import Keyword

ALL = "all"
FIELDS = ("name", "address", "groups", "vars", "facts")
INSIDE = "read them inside the function of a play"


class UnknownHost(InvalidInput, AttributeError, KeyError):
    """A definition reads a host or group that does not exist. `get` with a default catches it as usual."""


class UnknownField(InvalidInput, AttributeError, KeyError):
    """A definition reads something that hosts don't have, by a keyword or an index."""


def unknown_field(key: object, names: Iterable[str]) -> UnknownField:
    """Return the error for a field that a host does not have.

    :param names: the fields that it has
    """
    detail, help = f"a host has no `{_name(key)}`", suggest(_name(key), list(names), "it has")
    return UnknownField([_here(problem("SC0504", detail, help))])


class NamedHost(str):
    """A host that a definition reads. As text, it is its name.

    A playbook may keep it in a variable or a cache, and use it in the evaluation for another host. So it looks for the
    evaluation that is running each time it reads something.
    """

    __slots__ = ("_host",)

    _host: KnownHost

    def __new__(cls, host: KnownHost) -> NamedHost:
        """Return a host of the inventory."""
        result = super().__new__(cls, host.name)
        result._host = host
        return result

    def __contains__(self, key: object) -> bool:
        """Return whether a keyword, as in `(:address db)`, names a field; or whether the name contains a string."""
        return key in FIELDS if isinstance(key, Keyword) or not isinstance(key, str) else super().__contains__(key)

    def __getitem__(self, key: Any) -> Any:
        """Return a field by its name, as in Hy's `(:address db)`; for a number or a slice, a part of the text."""
        if isinstance(key, int | slice):
            return super().__getitem__(key)
        return getattr(self, _name(key)) if _name(key) in FIELDS else self.__missing__(key)

    def __missing__(self, key: object) -> Any:
        raise unknown_field(key, FIELDS)

    @property
    def name(self) -> str:
        """Its name in the inventory."""
        return self._host.name

    @property
    def address(self) -> str:
        """The address that statecfg connects to; the name if the inventory sets no address."""
        return self._host.address

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that contain it, sorted."""
        return self._host.groups

    @property
    def vars(self) -> Vars:
        """Its variables: those of its groups, its own, and those of the command line. Those of plays are not there."""
        return _current()[0].vars_of(self._host)

    @property
    def facts(self) -> Facts:
        """Its facts: of this run if the run visits it, otherwise those in the store."""
        _current()
        return CurrentFacts(lambda: _current()[0].facts_of(self._host.name)).view


class Hosts(Mapping[str, NamedHost]):
    """All hosts of the inventory by name, sorted by name."""

    __slots__ = ()

    def __getitem__(self, key: object) -> NamedHost:
        inventory = _current()[1]
        try:
            return NamedHost(inventory.host(_name(key)))
        except InvalidInput as wrong:
            raise UnknownHost([_here(item) for item in wrong.problems]) from None

    def __getattr__(self, name: str) -> NamedHost:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __missing__(self, key: object) -> NamedHost:
        return self[key]  # which raises an error with suggestions

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(_current()[1].hosts))

    def __len__(self) -> int:
        return len(_current()[1].hosts)

    def __repr__(self) -> str:
        return "<hosts>"


class Groups(Mapping[str, tuple[NamedHost, ...]]):
    """All groups of the inventory by name. A group is a tuple of its hosts, sorted by name."""

    __slots__ = ()

    def __getitem__(self, key: object) -> tuple[NamedHost, ...]:
        inventory = _current()[1]
        name = _name(key)
        if name not in inventory.groups and name != ALL:
            help = suggest(name, list(self), "available")
            raise UnknownHost([_here(problem("SC0404", f"the inventory has no group `{name}`", help))])
        return tuple(NamedHost(inventory.host(member)) for member in sorted(inventory.members(name)))

    def __getattr__(self, name: str) -> tuple[NamedHost, ...]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __missing__(self, key: object) -> tuple[NamedHost, ...]:
        return self[key]  # which raises an error with suggestions

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*_current()[1].groups, ALL}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return "<groups>"


hosts, groups = Hosts(), Groups()


def _name(key: object) -> str:
    """Return the name in a key: a string, or a keyword of Hy."""
    return str(key) if isinstance(key, str) else str(getattr(key, "name", key))


def _current() -> tuple[Reading, InventoryView]:
    """Return what the current evaluation has read, and the hosts that it can read.

    :raises InvalidInput: no definition is being evaluated
    """
    reading = CURRENT.get()
    if reading is None or reading.inventory is None:
        detail = "`hosts` and `groups` are known only while a play is evaluated"
        raise InvalidInput([_here(problem("SC0505", detail, INSIDE))])
    return reading, reading.inventory


def _here(item: Problem) -> Problem:
    """Return a problem at the source location of the playbook that is running."""
    return replace(item, locations=(positions.of_frame(sys._getframe(1)),))
