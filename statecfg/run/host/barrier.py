"""The barrier of a run: no host changes anything until every definition that depends on facts is complete and valid."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.run.awaited import RefusedHost
from statecfg.run.host.actions import TellFacts
from statecfg.run.host.events import Unjoined

if TYPE_CHECKING:
    from statecfg.run.awaited import Awaited
    from statecfg.run.job import Job

    Step = Mapping[str, Any] | Job | RefusedHost  # a request for more facts, the completed job, or why there is none

WAIT = 0.5  # seconds; a wait without timeout would delay Ctrl-C


class Barrier:
    """Passes the facts of hosts from their drivers to the main thread, and completed jobs back to the drivers.

    :param awaited: completes the jobs; None if no host waits for facts
    :param hosts: the hosts that wait for facts
    :ivar decided: set when all definitions are valid, or when the run has ended because one is wrong
    """

    def __init__(self, awaited: Awaited | None, hosts: Iterable[str]) -> None:
        self.awaited, self.waiting = awaited, set(hosts)
        self.decided = threading.Event()
        if awaited is None:
            self.decided.set()
        self._broken = False
        self._arrivals: queue.SimpleQueue[tuple[str, TellFacts | None]] = queue.SimpleQueue()
        self._steps: dict[str, Step] = {}

    # Called by the drivers

    def received(self, host: str, facts: TellFacts) -> None:
        """Note the facts that a host sent."""
        self._arrivals.put((host, facts))

    def gone(self, host: str) -> None:
        """Note that the session with a host has ended."""
        self._arrivals.put((host, None))

    def open(self) -> bool:
        """Return whether hosts may make changes.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        if self._broken:
            raise Unjoined
        return self.decided.is_set()

    def ready(self, host: str) -> bool:
        """Return whether it is known what to do next with a host that has answered.

        :raises Unjoined: the run has ended because a definition is wrong
        """
        self.open()
        return host in self._steps

    def step(self, host: str) -> Step:
        """Return what to do next with a host that is `ready`."""
        return self._steps.pop(host)

    # Called by the main thread

    def complete_jobs(self) -> None:
        """Wait for the facts of all hosts, and complete their jobs.

        :raises InvalidInput: a definition is wrong; no host changes anything
        """
        if self.awaited is None:
            return
        try:
            self._collect(self.awaited)
            self._steps.update(self.awaited.finish())
        except BaseException:
            self._broken = True
            raise
        finally:
            self.decided.set()

    def _collect(self, awaited: Awaited) -> None:
        for host in awaited.names:
            if host not in self.waiting:  # this run does not visit it, for example because it refuses a saved plan
                self._ask(awaited, awaited.lost(host))
        while awaited.waiting_for_facts:
            try:
                host, facts = self._arrivals.get(timeout=WAIT)
            except queue.Empty:
                continue
            if host in self.waiting:
                found = awaited.lost(host) if facts is None else awaited.add(host, facts.values, facts.failed)
                self._ask(awaited, found)

    def _ask(self, awaited: Awaited, names: Mapping[str, Sequence[str]]) -> None:
        self._steps.update((host, awaited.request(wanted)) for host, wanted in names.items())
