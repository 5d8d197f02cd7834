"""The hooks that a run would call, for plans."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.hooks.around import merged, to_wire
from statecfg.hooks.exec import engine as exec_hooks
from statecfg.hooks.exec import types as exec_types
from statecfg.hooks.registration import files
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import Mode, ResourceEvent
from statecfg.store import address, hosts, left_hosts, opened
from statecfg.units import in_run

if TYPE_CHECKING:
    from statecfg.hooks.around import WireHook
    from statecfg.hooks.http.asking import HookCall
    from statecfg.hooks.http.foreseen import Foreseen
    from statecfg.hooks.registration.model import Registration
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.run.deployment import Deployment
    from statecfg.run.fleet import Options
    from statecfg.run.job import Job
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import HostData, Unit
    from statecfg.store.hosts import HostRecord
    from statecfg.store.left_hosts import LeftHost

HOST_EVENTS = frozenset(HostEvent.ALL)


class Preview:
    """The hooks that a run would call. It calls and stores nothing.

    :param playbook: its name in the ledgers of hosts
    :raises InvalidInput: a registration is wrong
    :raises StoreError: the store exists, but can't be used
    """

    run = ""  # a plan is not a run

    def __init__(self, project: Project, inventory: Inventory, playbook: str, url: str | None = None) -> None:
        declared = files.load(project)
        self.warnings = [warning for hook in declared for warning in hook.warnings]
        self.types = exec_types.of_project(project)
        self.selects = exec_hooks.selecting(inventory)
        self.there = address.chosen(project, url).there()
        self._opened, self.playbook = partial(opened, project, url), playbook
        self.events: dict[str, list[HookCall]] = {}  # host → the hooks of its own events
        self.units: dict[str, list[Unit]] = {}  # host → the hooks of its units that are due
        stored: list[Registration] = []
        self.ledgers: dict[str, str] = {}  # lineage of each host's ledger, as the store knows it
        if self.there:
            with opened(project, url) as store:
                hooks = exec_hooks.of_project(project, store, inventory).hooks
                stored = hooks.registrations(hook.name for hook in declared)
                self.ledgers.update(hosts.lineages(store, playbook))
        self.hooks = merged(declared, stored, self.types)
        http = [hook for hook in declared if hook.http is not None]
        # It shows what the services would answer, as far as that is known.
        self.reconciler: Foreseen | None = None
        if http:
            from statecfg.hooks.http.foreseen import Foreseen  # most projects have no HTTP hooks

            self.reconciler = Foreseen(http, self._within, inventory, self._opened if self.there else None)

    def of_host(self, host: str) -> list[WireHook]:
        """Return the hooks around resources of a host, as the executor reads them."""
        hooks = [to_wire(hook) for hook in self.hooks if self._within(hook, host)]
        return [hook for hook in hooks if hook["events"]]

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, list[Job]]:
        """Return the options and jobs of the run, with the hooks that it would call around resources."""
        joined = [replace(job, ledger=self.ledgers.get(job.host.name, "")) for job in jobs]
        if options.deployment is not None and options.mode in (Mode.PLAN, Mode.VERIFY):
            owners = self._look_ahead(options.deployment, jobs)
            joined = [replace(job, units=owners[job.host.name]) for job in joined]
        self._note_events([job.host.name for job in jobs])
        around = {job.host.name: self.of_host(job.host.name) for job in jobs}
        return replace(options, hooks=replace(options.hooks, around=around)), joined

    def _note_events(self, names: Sequence[str]) -> None:
        """Note the hooks of the hosts' own events that an apply would call. Whether facts will differ is unknown."""
        hooks = [hook for hook in self.hooks if not HOST_EVENTS.isdisjoint(hook.events)]
        if not hooks:
            return
        known: Mapping[str, HostRecord] = {}
        if self.there:
            with self._opened() as store:
                known = hosts.named(store, set(names))
        for name in names:
            record = known.get(name)
            due = {HostEvent.INSTALLED}
            if record is None or record.registered is None:
                due |= {HostEvent.REGISTERED, HostEvent.FACTS_CHANGED}
            if record is None or self.playbook not in record.playbooks:
                due.add(HostEvent.BOUND)
            self.events[name] = [
                {"hook": hook.name, "event": event, "name": "", "where": "controller"}
                for event in HostEvent.ALL
                for hook in hooks
                if event in due and event in hook.events and self._within(hook, name)
            ]

    def _look_ahead(self, deployment: Deployment, jobs: Sequence[Job]) -> dict[str, Mapping[str, Any]]:
        """Find the hooks of units that an apply would run; return host → the owner of its units."""
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(self._opened()) if self.there else None
            if not in_run.has_units(store, deployment):
                return {job.host.name: {} for job in jobs}
            orders = stack.enter_context(in_run.looked_ahead(store, deployment, Mode.APPLY, jobs)).orders
            self.units = {name: orders.due(name) for name in orders.ahead.due}
            return {job.host.name: orders.owner(job.host.name) for job in jobs}

    def enter(self, report: Mapping[str, Any]) -> None:
        """Store nothing."""

    def at_once(self, host: str) -> tuple[str, list[HookCall]]:
        """Return the key of the report, and the hooks that a run would call for the host as a whole."""
        calls: list[HookCall] = []
        if self.reconciler is not None and host in self.reconciler.calls:
            calls += self.reconciler.calls[host]
        elif self.reconciler is not None:
            event, where = ResourceEvent.PRE_RECONCILE, "controller"
            names = self.reconciler.concerns(host)
            calls += [{"hook": name, "event": event, "name": "", "where": where} for name in names]
        return "hooks", [*calls, *self.events.get(host, ())]

    def waits_for_hooks(self, host: str) -> bool:
        """Return False: no hook was called."""
        return False

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Return nothing: no hook was called."""
        return {}

    def left_hosts(self, work: Work, reports: Mapping[str, HostData]) -> list[LeftHost]:
        """Return the hosts that the playbook no longer contains, as in reports."""
        if not self.there:
            return []
        file, path = work.project.relative(work.playbook or Path()), str(work.playbook)
        with self._opened() as store:
            return left_hosts.find(store, self.playbook, file, work.everywhere, work.inventory, path, reports)

    def due(self, host: str) -> list[Unit]:
        """Return the hooks of units that are due on a host."""
        return self.units.get(host, [])

    def _within(self, hook: Registration, host: str) -> bool:
        pattern = hook.select.hosts
        return pattern is None or self.selects(pattern, host)
