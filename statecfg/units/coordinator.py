"""Coordinate the units of a run: decide which hook runs next and on which host, until no hook is due.

When a hook of one unit succeeds, one transaction stores its settings and queues the hooks of the units that must
learn of them. So nothing is lost if a run is interrupted: the next run continues with the queue.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from statecfg.run.deployment import Deployment
from statecfg.run.host.frames import FRAME_CLASSES
from statecfg.run.report_model import Unit
from statecfg.store import StoreError, services
from statecfg.store.database import Store
from statecfg.units import ahead
from statecfg.units.hook_log import HookLog
from statecfg.units.inbox import Inbox
from statecfg.units.next_hooks import NextHooks
from statecfg.units.orders import HostOrders
from statecfg.units.results import Results
from statecfg.units.state import RunHost, RunUnit, Tell

Json = Mapping[str, Any]


class Coordinator:
    """The units of one run.

    Frames of hosts come from many threads. The coordinator's own thread handles them one after the other.

    :param store: the store with services, units and relations
    :param deployment: what the playbook declares
    :param mode: "apply", "prune" or "destroy"
    :param run: the run's id
    :param addresses: host → `private-address` and `public-address`, if the inventory defines them
    :param cancel: set when the user stops the run: no further hook is started
    """

    def __init__(
        self,
        store: Store,
        deployment: Deployment,
        mode: str,
        run: str,
        addresses: Mapping[str, Mapping[str, str]],
        cancel: threading.Event,
    ) -> None:
        self.store, self.deployment, self.mode = store, deployment, mode
        self.problems: list[str] = []
        self.orders = HostOrders(store, deployment, ahead.look(store, deployment, mode, run, tuple(addresses)))
        self.hosts = {name: RunHost(name) for name in addresses}
        for name, host in self.hosts.items():
            if not self.orders.ahead.names[name]:
                host.phase = "gone"  # no host waits for one without units
        self._log = HookLog(store, deployment)
        self._results = Results(store, deployment, run, self.hosts, addresses, cancel, self._log)
        self._next = NextHooks(store, mode, run, self.hosts, cancel)
        self._frames = Inbox()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def begin(self) -> None:
        """Store what the playbook declares. Called before each host is changed; only the first call has an effect.

        :raises StoreError: the store can't be written
        """
        with self._starting:
            if self._thread is not None:
                return
            hosts = tuple(self.hosts)
            self.store.attempt(lambda on: ahead.enter_in(on, self.deployment, self.mode, hosts))
            with self.store.reading() as connection:
                for unit in services.units_in(connection, self.deployment.project):
                    if (unit.name, unit.service) in self.orders.ahead.names.get(unit.host, ()):
                        here = self.hosts[unit.host].units
                        state = unit.condition.state
                        here[unit.name] = RunUnit(unit.id, unit.name, unit.service, unit.dying, state=state)
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    # Called from many threads

    def take(self, host: str, frame: Json, tell: Tell, address: str) -> None:
        """Queue a frame of a host. Wait while the host has too many queued frames."""
        if self._thread is not None:
            self._frames.put((host, frame, tell, address))

    def session_ended(self, host: str) -> None:
        """Queue the end of the session with a host, and wait until it is handled."""
        with self._starting:
            if self._thread is None:  # the host was lost before any host was about to be changed
                self.hosts[host].phase = "gone"
                return
        self._frames.put_at_once((host, {"type": "gone"}, None, ""))
        while self._thread.is_alive() and not self.hosts[host].left.wait(0.5):
            pass

    def report(self, host: str) -> list[Unit]:
        """Return the units of a host in the format of reports. Call `session_ended` first."""
        return [unit.report() for unit in self.hosts[host].units.values()] if host in self.hosts else []

    def close(self) -> None:
        """End the thread. Afterwards, nothing is sent to hosts."""
        if self._thread is not None:
            self._frames.put_at_once(("", {"type": "close"}, None, ""))
            self._thread.join()

    # The thread

    def _work(self) -> None:
        while True:
            # Also look once per second whether the user stopped the run.
            host, frame, tell, address = self._frames.get(1.0) or ("", {"type": "look"}, None, "")
            try:
                self._handle(host, frame, tell, address)
            except StoreError as wrong:
                self._stop(str(wrong))
            except Exception as wrong:  # a bug in statecfg: let the hosts continue, and report it
                self._stop(f"statecfg failed: {wrong!r}")
            if frame["type"] == "close":
                self._frames.close()
                return
            if frame["type"] == "gone":
                self.hosts[host].left.set()

    def _handle(self, host: str, frame: Json, tell: Tell | None, address: str) -> None:
        match frame["type"]:
            case "close":
                self._log.write()
                return
            case "gone":
                self._results.lost(self.hosts[host])
            case type if type in FRAME_CLASSES:
                parsed = FRAME_CLASSES[type].from_json({key: value for key, value in frame.items() if key != "type"})
                self._results.take(self.hosts[host], parsed, tell, address)
        self._next.start()

    def _stop(self, why: str) -> None:
        """Let all hosts continue. Without the store, no hook can be recorded."""
        if why not in self.problems:
            self.problems.append(why)
        for host in self.hosts.values():
            for unit in host.units.values():
                unit.blocked = unit.blocked or why
            if not host.steps:
                host.let_go(why if host.phase == "before" else "")
