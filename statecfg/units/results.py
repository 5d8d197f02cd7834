"""Handle the frames of hosts about hooks: requests, log lines and results."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.names import HookStatus
from statecfg.run.deployment import Deployment
from statecfg.run.host import frames
from statecfg.run.report_model import UnitHook
from statecfg.store import services
from statecfg.store.database import Store
from statecfg.store.units.records import UnitRequestError
from statecfg.units import ahead
from statecfg.units.hook_log import HookLog
from statecfg.units.state import RunHost, RunUnit, Tell, wake

Json = Mapping[str, Any]
InHook = frames.UnitAskFrame | frames.UnitPortFrame | frames.UnitStatusFrame


class Results:
    """Stores the results of hooks.

    :param run: the run's id
    :param hosts: the hosts of the run
    :param addresses: host → `private-address` and `public-address`, if the inventory defines them
    :param cancel: set when the user stops the run
    """

    def __init__(
        self,
        store: Store,
        deployment: Deployment,
        run: str,
        hosts: Mapping[str, RunHost],
        addresses: Mapping[str, Mapping[str, str]],
        cancel: threading.Event,
        log: HookLog,
    ) -> None:
        self.store, self.deployment, self.run, self.hosts = store, deployment, run, hosts
        self.addresses, self.cancel, self.log = addresses, cancel, log

    def take(self, host: RunHost, frame: frames.Frame, tell: Tell | None, address: str) -> None:
        """Handle a frame of a host.

        :param tell: sends a frame to the host
        :param address: the host's address in its connection
        :raises StoreError: the store can't be used
        """
        if isinstance(frame, frames.UnitsFrame):
            self._arrived(host, frame, tell, address)
        elif isinstance(frame, frames.UnitLogFrame):
            if frame.unit in host.units:
                self.log.add(frame.unit, frame.hook, frame.level, frame.text)
        elif isinstance(frame, frames.UnitDoneFrame):
            unit = host.steps.pop(frame.id, None)
            if unit is not None:
                self._done(unit, frame)
        elif isinstance(frame, InHook) and frame.id in host.steps:
            unit = host.steps[frame.id]
            if unit.running is not None:
                self._during(host, unit, frame)

    def lost(self, host: RunHost) -> None:
        """Handle the end of the session with a host: its running hooks have failed.

        :raises StoreError: the store can't be used
        """
        host.phase, host.tell = "gone", None
        for unit in list(host.steps.values()):
            self._failed(
                unit,
                "the connection to the host was lost while it ran",
            )
        host.steps.clear()
        self.log.write()

    def _arrived(self, host: RunHost, frame: frames.UnitsFrame, tell: Tell | None, address: str) -> None:
        """Handle the frame of a host that waits for its units, before or after its resources change."""
        host.phase, host.tell, host.sound = frame.phase, tell, host.sound and frame.ok
        defined = self.addresses[host.name]
        host.addresses = {key: defined.get(key) or address for key in ("private-address", "public-address")}
        if frame.phase == "after" and host.sound:
            project = self.deployment.project
            self.store.attempt(lambda connection: services.addressed_in(connection, project, host.name, host.addresses))
            wake(self.hosts.values())
        if not host.sound:
            for unit in host.units.values():
                unit.blocked = unit.blocked or "its host failed: no hook was run"

    def _during(self, host: RunHost, unit: RunUnit, frame: InHook) -> None:
        """Answer a request of a running hook, or store a change that takes effect immediately."""
        if isinstance(frame, frames.UnitPortFrame):
            self.store.attempt(lambda on: services.port_in(on, unit.id, frame.open, frame.port))
        elif isinstance(frame, frames.UnitStatusFrame):
            self.store.attempt(lambda on: services.status_in(on, unit.id, frame.status, frame.message))
        elif host.tell is not None:
            host.tell(self._answer(unit, frame))

    def _answer(self, unit: RunUnit, frame: frames.UnitAskFrame) -> Json:
        answer: Json = {"type": "unit-told", "id": frame.id, "ask": frame.ask}
        secrets = self.deployment.secrets.get(unit.service, {})
        try:
            with self.store.reading() as connection:
                values = services.read_in(connection, unit.id, list(frame.node), secrets)
        except UnitRequestError as wrong:
            return {**answer, "error": [wrong.code, str(wrong)]}
        return {**answer, "values": values}

    def _done(self, unit: RunUnit, frame: frames.UnitDoneFrame) -> None:
        """Handle the end of a hook. Store all its changes if it succeeded, otherwise its failure."""
        step, now = unit.running, time.time()
        if step is None:
            return
        status = HookStatus.FAILED if not frame.ok else HookStatus.OK if frame.ran else "missing"
        entry = ahead.as_report(step)
        entry["status"], entry["seconds"] = status, round(frame.seconds, 3)
        if not frame.ok:
            self._failed(unit, frame.error, entry)
            return
        unit.running = None
        changes: Any = frame.changes.to_json()
        woken = self.store.attempt(lambda on: services.commit_in(on, step, self.run, changes, now))
        unit.hooks.append(entry)  # only after the store has the changes
        self._ended(unit)
        wake(self.hosts.values(), woken)

    def _failed(self, unit: RunUnit, why: str, entry: UnitHook | None = None) -> None:
        """Store that a hook failed."""
        step, unit.running = unit.running, None
        if step is None:
            return
        unit.hooks.append({**(entry or {**ahead.as_report(step), "status": HookStatus.FAILED}), "error": why})
        self.store.attempt(lambda on: services.fail_in(on, step, self.run, why, time.time()))
        self._ended(unit)

    def _ended(self, unit: RunUnit) -> None:
        if self.cancel.is_set():  # no further hook is started, so nothing else reads the unit's state
            with self.store.reading() as connection:
                row = services.unit_in(connection, unit.id)
            unit.state = row.condition.state if row is not None else "gone"
        self.log.write()
        unit.quiet = False
