"""What one evaluation of a definition reads about hosts: facts and variables, of its own host and of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from statecfg.facts.variables import NO_VARS, Vars
from statecfg.facts.view import HostFacts, RecordedFacts
from statecfg.graph import host_text
from statecfg.problems import SourceLocation

Missing = Mapping[str, Mapping[SourceLocation, None]]  # name of a fact → where it was read


class KnownHost(Protocol):
    """The data of a host in the inventory that definitions can read."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def address(self) -> str:
        """The address to connect to."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that contain it."""

    @property
    def vars(self) -> Mapping[str, Any]:
        """The merged variables of its groups and its own."""


class InventoryView(Protocol):
    """The part of an inventory that definitions can read."""

    @property
    def hosts(self) -> Mapping[str, KnownHost]:
        """Name → host."""

    @property
    def groups(self) -> Mapping[str, object]:
        """Name → group."""

    def host(self, name: str) -> KnownHost:
        """Return a host by its name.

        :raises InvalidInput: there is no host with this name
        """

    def members(self, group: str) -> list[str]:
        """Return the names of the hosts in a group."""


class Reading:
    """The one object through which a definition reads facts and variables. It records everything that is read.

    :param host: the name of the definition's host
    :param facts: returns the known facts of a host by its name
    :param inventory: the hosts that the definition can read; None for none
    :param extra: variables of the command line, which override those of the inventory
    :ivar names: the names of the host's variables in its plays
    :ivar looked_up: the names of the host's variables that were looked up, whether they exist or not; None: all names
    :ivar attributes: the fields of `host` that were read, such as `name`
    :ivar by_name: the hosts whose facts were read through `hosts` or `groups`
    :ivar variables: the variables that were read, such as `port`, or `hosts[db1].vars.port` of another host
    """

    def __init__(
        self,
        host: str,
        facts: Callable[[str], HostFacts] = lambda host: HostFacts(),
        inventory: InventoryView | None = None,
        extra: Mapping[str, Any] = NO_VARS,
    ) -> None:
        self.host, self.inventory = host, inventory
        self.names: set[str] = set()
        self.looked_up: set[str | None] = set()
        self.attributes: set[str] = set()
        self.by_name: set[str] = set()
        self.variables: dict[str, None] = {}
        self._known, self._extra = facts, extra
        self._facts: dict[str, HostFacts] = {}
        self._watch = host_text.Watch()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what the block reads through `hosts`, `groups` and templates."""
        token = CURRENT.set(self)
        try:
            with host_text.watching(self._watch):
                yield
        finally:
            CURRENT.reset(token)

    # Reading

    @property
    def own(self) -> HostFacts:
        """The facts of the definition's host."""
        return self.facts(self.host)

    def facts(self, host: str) -> HostFacts:
        """Return the facts of a host."""
        if host not in self._facts:
            self._facts[host] = self._known(host)
        return self._facts[host]

    def vars(self, variables: Mapping[str, Any]) -> Vars:
        """Return the variables of the definition's host in a play.

        :param variables: name → value
        """
        return Vars(variables, self.look_up)

    def vars_of(self, host: KnownHost) -> Vars:
        """Return the variables of another host: those of the inventory, and of the command line.

        A playbook may keep them and read them in another evaluation, which then records them.
        """
        variables = {**host.vars, **self._extra}

        def note(name: str | None) -> None:
            if name in variables:
                (CURRENT.get() or self).variables[f"hosts[{host.name}].vars.{name}"] = None

        return Vars(variables, note)

    def facts_of(self, host: str) -> HostFacts:
        """Return the facts of a host that the definition names; it may be its own host."""
        self.by_name.add(host)
        return self.facts(host)

    def look_up(self, name: str | None) -> None:
        """Record that a variable of the definition's host was looked up.

        :param name: its name, whether it exists or not; None if all names were
        """
        self.looked_up.add(name)
        if name is not None and name in self.names:
            self.variables[name] = None

    # What was read

    @property
    def hosts_facts(self) -> Mapping[str, HostFacts]:
        """Host → its facts, of which some may have been read."""
        return self._facts

    @property
    def missing(self) -> dict[str, Missing]:
        """Host → the facts that were read and are not known yet, each with the source locations that read it."""
        return {host: facts.missing for host, facts in self._facts.items() if facts.missing}

    @property
    def used(self) -> Mapping[str, Any]:
        """Path of a value, such as `os.family` or `hosts[db1].ipv4` → the value that was read."""
        return {
            path if host == self.host else f"hosts[{host}].{path}": value
            for host, facts in self._facts.items()
            for path, value in facts.used.items()
        }

    @property
    def recorded(self) -> dict[str, RecordedFacts]:
        """Host → the facts that were used and were collected earlier than in this run."""
        found = {host: facts for host, facts in self._facts.items() if isinstance(facts, RecordedFacts)}
        return {host: facts for host, facts in found.items() if facts.times}


CURRENT: ContextVar[Reading | None] = ContextVar("the reading of the definition that is being evaluated", default=None)


def note(name: str) -> None:
    """Record that a template looked up a name, which may be a variable of the definition's host."""
    reading = CURRENT.get()
    if reading is not None:
        reading.look_up(name)


def named(host: str, own: str, names: Iterable[str]) -> list[str]:
    """Return the names of facts as the definition of a host writes them.

    :param host: the host of the facts
    :param own: the host of the definition
    """
    return [name if host == own else f"hosts[{host}].{name}" for name in names]
