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
from statecfg.remote.graph.names import Mode, ResourceEvent
from statecfg.store import address, hosts, left_hosts, opened
from statecfg.units import in_run

if TYPE_CHECKING:
    from statecfg.hooks.registration.model import Registration
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.run.deployment import Deployment
    from statecfg.run.fleet import Job, Options
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import Unit

Json = dict[str, Any]


class Preview:
    """The hooks that a run would call. It calls and stores nothing.

    :param playbook: its name in the ledgers of hosts
    :raises InvalidInput: a registration is wrong
    :raises StoreError: the store exists, but can't be used
    """

    run = ""  # a plan is not a run

    def __init__(self, project: Project, inventory: Inventory, playbook: str, url: str | None = None) -> None:
        declared = files.load(project)
        self.warnings = [warning for each in declared for warning in each.warnings]
        self.types = exec_types.of_project(project)
        self.selects = exec_hooks.selecting(inventory)
        self.there = address.chosen(project, url).there()
        self._opened, self.playbook = partial(opened, project, url), playbook
        self.units: dict[str, list[Unit]] = {}  # host → the hooks of its units that are due
        stored: list[Registration] = []
        self.ledgers: dict[str, str] = {}  # lineage of each host's ledger, as the store knows it
        if self.there:
            with opened(project, url) as store:
                stored = exec_hooks.of_project(project, store, inventory).hooks.registrations(
                    each.name for each in declared
                )
                self.ledgers.update(hosts.lineages(store, playbook))
        self.hooks = merged(declared, stored, self.types)
        self.http = [each for each in declared if each.protocol == "http"]

    def of_host(self, host: str) -> list[Json]:
        """Return the hooks around resources of a host, as the executor reads them."""
        found = [to_wire(each) for each in self.hooks if self._within(each, host)]
        return [wire for wire in found if wire["events"]]

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, list[Job]]:
        """Return the options and jobs of the run, with the hooks that it would call around resources."""
        known = [replace(job, ledger=self.ledgers.get(job.host.name, "")) for job in jobs]
        if options.deployment is not None and options.mode == Mode.PLAN:
            whose = self._look_ahead(options.deployment, jobs)
            known = [replace(job, units=whose[job.host.name]) for job in known]
        return replace(options, hooks={job.host.name: self.of_host(job.host.name) for job in jobs}), known

    def _look_ahead(self, deployment: Deployment, jobs: Sequence[Job]) -> dict[str, Json]:
        """Find the hooks of units that an apply would run; return host → the owner of its units."""
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(self._opened()) if self.there else None
            found = stack.enter_context(in_run.looked_ahead(store, deployment, "apply", jobs))
            self.units = {name: found.orders.due(name) for name in found.orders.ahead.due}
            return {job.host.name: found.orders.owner(job.host.name) for job in jobs}

    def enter(self, report: Mapping[str, Any]) -> None:
        """Store nothing."""

    def at_once(self, host: str) -> tuple[str, list[Json]]:
        """Return the key of the report, and the hooks that a run would call for the host as a whole."""
        return "hooks", [
            {"hook": each.name, "event": ResourceEvent.PRE_RECONCILE, "name": "", "where": "controller"}
            for each in self.http
            if each.http is not None
            and ResourceEvent.PRE_RECONCILE in each.http.capabilities
            and self._within(each, host)
        ]

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Return nothing: no hook was called."""
        return {}

    def left_hosts(self, work: Work) -> list[Json]:
        """Return the hosts that the playbook no longer contains, as in reports."""
        if not self.there:
            return []
        file, path = work.project.relative(work.playbook or Path()), str(work.playbook)
        with self._opened() as store:
            return left_hosts.find(store, self.playbook, file, work.everywhere, work.inventory, path)

    def due(self, host: str) -> list[Unit]:
        """Return the hooks of units that are due on a host."""
        return self.units.get(host, [])

    def _within(self, each: Registration, host: str) -> bool:
        pattern = each.select.hosts
        return pattern is None or self.selects(pattern, host)
