"""Where the facts come from that definitions read: the hosts of this run, `--facts`, or the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.facts.catalogue import NAMES, OWN
from statecfg.facts.recorded import StoredFacts
from statecfg.facts.view import HostFacts, RecordedFacts

if TYPE_CHECKING:
    from statecfg.facts.own import OwnFact
    from statecfg.run.choice import Choice

NOTHING = StoredFacts({}, {})


class FactSource:
    """The facts of all hosts that are known so far.

    :param choice: the recorded facts, and where the store's facts come from
    :param own: the project's own facts by name
    :param visited: the hosts that this run visits
    :ivar collected: host of this run → name → value of the facts that it has sent
    """

    def __init__(self, choice: Choice, own: Mapping[str, OwnFact], visited: Collection[str]) -> None:
        self.known, self.own = choice.known, own
        self.collected: dict[str, dict[str, Any]] = {host: {} for host in visited}
        self._stored: Mapping[str, StoredFacts] | None = None

    def of(self, host: str) -> HostFacts:
        """Return the known facts of a host."""
        oldest, given = self.known.oldest, self._existing(self.known.facts.get(host, NOTHING))
        sent = self.collected.get(host)
        if sent:  # these have no time, because they are of this run
            times = {name: at for name, at in given.at.items() if name not in sent}
            given = StoredFacts({**given.values, **sent}, times)
        if sent is not None or self.known.stored is None:
            return RecordedFacts(host, given, self.own, oldest) if given.values else HostFacts({}, self.own)
        return RecordedFacts(host, self._existing(self.stored.get(host, NOTHING)), self.own, oldest, final=True)

    @property
    def stored(self) -> Mapping[str, StoredFacts]:
        """The facts in the store. They are read when a definition first needs them.

        :raises StoreError: the store can't be used
        """
        if self._stored is None:
            self._stored = self.known.stored() if self.known.stored is not None else {}
        return self._stored

    def _existing(self, recorded: StoredFacts) -> StoredFacts:
        """Return the recorded facts that exist in the catalogue or in the project."""
        names = {*NAMES, *(f"{OWN}.{name}" for name in self.own)}
        return StoredFacts({name: value for name, value in recorded.values.items() if name in names}, recorded.at)
