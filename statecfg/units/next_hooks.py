"""Start the due hooks of units, and let hosts continue when no hook is left to run."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from statecfg.remote.graph.names import Mode
from statecfg.store import services
from statecfg.store.database import Store
from statecfg.store.units.records import DueStep
from statecfg.units.state import RunHost, RunUnit, wake

MOST = 25  # how often a unit's hook may run for the same remote unit in one run


class NextHooks:
    """Decides what the hosts of a run do next.

    :param mode: "apply", "prune" or "destroy"
    :param run: the run's id
    :param hosts: the hosts of the run
    :param cancel: set when the user stops the run: no further hook is started
    """

    def __init__(
        self, store: Store, mode: str, run: str, hosts: Mapping[str, RunHost], cancel: threading.Event
    ) -> None:
        self.store, self.mode, self.run, self.hosts, self.cancel = store, mode, run, hosts, cancel
        self._serial = 0

    def start(self) -> None:
        """Start the hooks that can start, and let hosts continue that have nothing to wait for.

        :raises StoreError: the store can't be used
        """
        for host in self.hosts.values():
            if host.phase in ("before", "after"):
                self._feed(host)
            if host.phase == "before" and not host.steps:
                self._remove_units(host)
        finished = all(host.phase in ("after", "gone") and not host.steps for host in self.hosts.values())
        for host in self.hosts.values():
            # After the user stopped the run, no hook is started, so there is nothing to wait for.
            if finished or (self.cancel.is_set() and host.phase == "after" and not host.steps):
                host.let_go("")

    def _feed(self, host: RunHost) -> None:
        """Start a due hook on a host if no hook runs there.

        Charms on one host share its packages: two that install at the same time would fail on each other's locks.
        Source of the rule: juju's machine lock.
        """
        for unit in list(host.units.values()):
            if self.cancel.is_set() or host.steps:
                return
            if unit.over or unit.running or unit.quiet or unit.blocked or unit.dying != (host.phase == "before"):
                continue
            if self.mode != Mode.APPLY and not unit.dying:
                continue  # its events stay queued for the next apply
            with self.store.reading() as connection:
                step = services.next_in(connection, unit.id, self.run)
                row = services.unit_in(connection, unit.id)
            unit.state = row.condition.state if row is not None else "gone"
            if step is None:
                unit.quiet = True
            elif self._ends(unit, step):
                self._start(host, unit, step)

    def _ends(self, unit: RunUnit, step: DueStep) -> bool:
        """Count a due hook; return whether it may run. Block its unit if the hook ran too often."""
        about = step.relation
        key = (step.hook, about.id if about is not None else "", about.remote if about is not None else "")
        unit.counts[key] += 1
        if unit.counts[key] <= MOST:
            return True
        remote = f" about {about.remote}" if about is not None and about.remote else ""
        unit.endless = True
        self.store.attempt(lambda connection: services.endless_in(connection, step))
        unit.blocked = f"stopped an endless loop: {step.hook}{remote} ran {MOST} times in this run"
        return False

    def _start(self, host: RunHost, unit: RunUnit, step: DueStep) -> None:
        self._serial += 1
        unit.running, host.steps[self._serial] = step, unit
        wire = {**step.wire(), "addresses": host.addresses}
        if host.tell is not None:
            host.tell({"type": "unit", "id": self._serial, "do": "hook", "step": wire})

    def _remove_units(self, host: RunHost) -> None:
        """Remove the dying units without further hooks. Then let the host continue, or say why it must not."""
        left = [unit for unit in host.units.values() if unit.dying and not unit.over and not self._removed(host, unit)]
        if self.cancel.is_set():
            host.let_go("cancelled" if left else "")
        elif all(unit.quiet or unit.blocked for unit in left):
            names = ", ".join(unit.name for unit in left)
            why = (
                f"{names} must be removed first, but its hooks failed. Nothing was removed. "
                f"`statecfg service show {names}` shows why"
            )
            host.let_go(why if left and self.mode != Mode.APPLY else "")

    def _removed(self, host: RunHost, unit: RunUnit) -> bool:
        """Remove a dying unit if no hook of it is left; return whether it was removed."""
        with self.store.reading() as connection:
            if not services.over_in(connection, unit.id):
                return False
        unit.state = "gone"
        woken = self.store.attempt(lambda on: services.gone_in(on, unit.id, time.time()))
        wake(self.hosts.values(), woken)
        if host.tell is not None:
            self._serial += 1
            host.tell({"type": "unit", "id": self._serial, "do": "remove", "unit": unit.name})
        unit.over, unit.blocked = True, ""
        return True
