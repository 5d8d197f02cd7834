"""The event bus of a run: it tells hooks, services and the store what happens to hosts and resources."""

from __future__ import annotations

import contextlib
import getpass
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.hooks.around import AroundResources, merged
from statecfg.hooks.event_queue import EventQueue
from statecfg.hooks.exec import engine as engines
from statecfg.hooks.exec import input
from statecfg.hooks.host_log import HostLog
from statecfg.hooks.late_reconciler import LateReconciler
from statecfg.hooks.registration import files
from statecfg.hooks.registration.model import Registration
from statecfg.hooks.run_mark import RunMark
from statecfg.hooks.store_problems import StoreProblems
from statecfg.problems import InvalidInput, problem
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import HookStatus, HostStatus, Mode
from statecfg.run.report_model import HostData
from statecfg.store import StoreError, facts, hosts, left_hosts, machines, opened, runs
from statecfg.store.machines import MachineIdentity, Machines
from statecfg.units import in_run

if TYPE_CHECKING:
    from statecfg.hooks.around import CallResult
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.http.asking import Fired
    from statecfg.hooks.http.reconcile import Reconciler
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.run.fleet import Options
    from statecfg.run.job import Job
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import Unit
    from statecfg.store.connection import Connection
    from statecfg.store.hooks.records import Policy
    from statecfg.store.hosts import HostRecord
    from statecfg.store.left_hosts import LeftHost
    from statecfg.units.in_run import UnitsInRun
    from statecfg.units.state import Tell

Json = Mapping[str, Any]  # of reports, and of the frames of units


class Bus:
    """The hooks of a run, and the store that records its hosts.

    Errors of the store while hosts are being changed are collected in `problems`; the hosts finish nevertheless.

    :param run: the run's id
    :param who: "user@machine"
    :param silent: call no hook (`--no-hooks`)
    :param url: URL of the store; None for the project's or the default one
    :param cancel: set when the user stops the run
    :raises InvalidInput: a registration is wrong
    :raises StoreError: the store can't be used
    """

    def __init__(
        self,
        project: Project,
        inventory: Inventory,
        run: str,
        who: str,
        silent: bool = False,
        url: str | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        cancel = cancel or threading.Event()
        self.store = opened(project, url)
        self.problems = StoreProblems()
        self.mode, self.playbook = "", ""
        self.ledgers: dict[str, str] = {}  # host → lineage of its ledger after the last run of the playbook
        self.units: UnitsInRun | None = None
        self.machines, self.inventory = Machines(), inventory
        self.mark = RunMark(self.store, run, who)
        self.host_log = HostLog(self.store)
        with contextlib.ExitStack() as undo:
            undo.callback(self.store.close)
            engine = engines.of_project(project, self.store, inventory)
            declared = files.load(project)
            self.warnings = [warning for registration in declared for warning in registration.warnings]
            http = [] if silent else [hook for hook in declared if hook.protocol == "http"]
            self.http = LateReconciler(self.store, http, run, inventory, cancel)
            hooks = _hooks_of_run(engine, declared, silent)
            self.around = AroundResources(engine, hooks, cancel)
            self.events = EventQueue(engine, silent, self.problems, cancel)
            undo.pop_all()

    @property
    def run(self) -> str:
        """The run's id."""
        return self.mark.run

    @property
    def reconciler(self) -> Reconciler | None:
        """What calls the HTTP hooks; None if the run has none."""
        return self.http.current

    @property
    def left(self) -> int:
        """The number of hook calls that were still queued at the end."""
        return self.events.left

    # Before the run

    def begin(self, mode: str, playbook: str, tell: Callable[[str], object] = len) -> None:
        """Set the mode of the run and its playbook, before any host is contacted.

        :param tell: receives a line about the hook that the run waits for; by default, it is dropped
        """
        self.mode, self.playbook, self.events.engine.tell = mode, playbook, tell
        self.http.use(tell=tell)

    def keep(self, names: Collection[str], file: str, reports: Mapping[str, HostData]) -> None:
        """Destroy nothing on the machines of these hosts by another name.

        :param names: the hosts that the playbook names
        :param file: the playbook, relative to the project
        :param reports: the hosts' parts of the report of an apply
        """
        self.machines.named = machines.known(self.store, names, file, self.inventory, reports)

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, list[Job]]:
        """Return the options and jobs of the run, with the hooks of each host and the store's data about it."""
        self.mark.mask = options.hooks.mask
        self.around.cancel = self.events.cancel = options.cancel
        self.http.use(cancel=options.cancel)
        around = {job.host.name: self.around.of_host(job.host.name) for job in jobs}
        policy = input.policy(self.playbook, hosts.bound(self.store, self.playbook))
        self.ledgers = hosts.lineages(self.store, self.playbook)
        self.units = in_run.of_run(self.store, options.deployment, self.mode, self.run, jobs, options.cancel)
        records = hosts.named(self.store, {job.host.name for job in jobs})
        joined = self._with_units([self._with_host(job, records.get(job.host.name), policy) for job in jobs], options)
        self.mark.begin(self.mode, self.playbook, [job.host.name for job in jobs])
        return replace(options, run=self.run, hooks=replace(options.hooks, around=around, events=self)), joined

    def _with_host(self, job: Job, record: HostRecord | None, policy: Policy) -> Job:
        """Return a job with the store's data about its host."""
        ledger = self.ledgers.get(job.host.name, "")
        node: Mapping[str, Any] = input.node(record) if record is not None else {"name": job.host.name}
        self.host_log.expect(job.host.name, record.metadata if record is not None else {})
        definition, contents = job.definition, self.around.contents
        if contents:
            definition = replace(definition, blobs={**definition.blobs, **contents})
        return replace(job, definition=definition, ledger=ledger, for_hooks={"node": node, "policy": policy})

    def _with_units(self, jobs: Iterable[Job], options: Options) -> list[Job]:
        """Return the jobs with the data that their hosts need about their units."""
        if self.units is not None:
            return [self.units.with_units(job, options.expected) for job in jobs]
        owner = in_run.owner(self.store, options.deployment, self.mode)
        due = options.expected.units if options.expected is not None else {}
        return [replace(job, units=owner, differs=("units",) if due.get(job.host.name) else ()) for job in jobs]

    def at_once(self, host: str) -> tuple[str, list[Fired]]:
        """Return the key of the report, and the hooks that were called for the host as a whole."""
        calls = () if self.reconciler is None else self.reconciler.fired.get(host, ())
        return "fired", [{**call, "name": ""} for call in calls]

    def left_hosts(self, work: Work, reports: Mapping[str, HostData]) -> list[LeftHost]:
        """Return the hosts that the playbook no longer contains, as in reports."""
        file, path = work.project.relative(work.playbook or Path()), str(work.playbook)
        left: list[LeftHost] = []
        with self.problems.collecting():
            left += left_hosts.find(self.store, self.playbook, file, work.everywhere, work.inventory, path, reports)
        return left

    def due(self, host: str) -> list[Unit]:
        """Return the hooks of units that are due on a host."""
        return self.units.due(host) if self.units is not None else []

    # During the run; called from many threads

    def collected(self, host: str, values: Mapping[str, Any]) -> None:
        """Store the facts that a host sent because its definition uses them."""
        with self.problems.collecting():
            facts.keep(self.store, host, values)

    def planned(self, host: str, report: HostData) -> None:
        """Store the facts of a host that has made its plan, and fire the events that follow from them."""
        if self.due(host):
            report["units"] = self.due(host)
        with self.problems.collecting():
            sent = report.get("facts") or {}
            ledger, peer = str(report.get("ledger") or ""), str(report.get("peer") or "")
            address, machine_id = machines.address(self.inventory, host), str(sent.get("machine_id") or "")
            self.machines.met[host] = MachineIdentity(ledger, peer, address, machine_id)
            events = hosts.check_in(self.store, host, sent, report.get("ledger", ""), str(sent.get("boot_id", "")))
            for event in events:
                self.events.fire(event, host, None)

    def going(self, host: str) -> None:
        """Store that a playbook is about to be applied to a host, and the services that it declares."""
        if self.units is not None:
            self.units.store_declared()
        with self.problems.collecting():
            if self.mode == Mode.APPLY and hosts.bind(self.store, host, self.playbook):
                self.events.fire(HostEvent.BOUND, host, self.playbook)

    def unit(self, host: str, frame: Json, tell: Tell, address: str) -> None:
        """Handle a host's frame about its units."""
        if self.units is not None:
            self.units.take(host, frame, tell, address)

    def hook(self, host: str, question: Json, abandoned: Callable[[], bool], begun: Callable[[], None]) -> CallResult:
        """Call a hook around a resource on the controller; return the result of `AroundResources.call`."""
        return self.around.call(host, self.playbook, question, abandoned, begun)

    def may_go(self, host: str) -> str:
        """Finalize a host with the HTTP hooks before its resources are destroyed.

        :returns: why the resources must stay, "" if they may be destroyed
        """
        if self.mode != Mode.DESTROY:
            return ""
        why = self.machines.refusal(host)
        if why:
            return why
        try:
            reconciler = self.http.of(host, self.playbook)
            if reconciler is None:
                return ""
            if self.events.silent:
                reconciler.forget(host, self.playbook)
                return ""
            done = reconciler.finalize(host, self.playbook)
        except (StoreError, InvalidInput) as error:
            return str(error)
        failed = [
            f"{fired['hook']}: {fired.get('error', '')}" for fired in done.fired if fired["status"] != HookStatus.OK
        ]
        return "" if done.ok else f"finalize failed ({'; '.join(failed)}); nothing was removed"

    def finished(self, host: str, report: HostData) -> None:
        """Store how the run ended on a host, and fire the events that follow from it."""
        if self.units is not None:
            self.units.finished(host, report)
        with self.problems.collecting():
            for fired in report.get("fired", ()):
                if fired["where"] == "host":
                    self.host_log.enter(host, self.playbook, fired)
        done = report["status"] == HostStatus.OK and not report.get("declined")
        ended = report["status"] in (HostStatus.OK, HostStatus.FAILED, HostStatus.UNKNOWN)
        if self.mode == Mode.APPLY and ended:
            with self.problems.collecting():
                reconciler = self.http.of(host, self.playbook)
                if reconciler is not None:
                    why = report["error"]["summary"] if "error" in report else ""
                    reconciler.run_ended(host, self.playbook, done, why)
        with self.problems.collecting():
            self._enter_end(host, report, done)

    def _enter_end(self, host: str, report: HostData, done: bool) -> None:
        installed, project = self.mode == Mode.APPLY and done, self.store.project
        if installed and self.units is not None:
            self.units.store_declared()
        ledger = str(report.get("ledger") or "")
        ledger = "" if ledger == self.ledgers.get(host) else ledger

        def enter(connection: Connection) -> bool:
            self.mark.host_finished(connection, host, report)
            if installed:
                return hosts.applied_in(connection, project, host, self.playbook, ledger)
            if ledger:
                hosts.went_by_in(connection, project, host, self.playbook, ledger)
            return False

        def unbind(connection: Connection) -> None:
            hosts.unbind_in(connection, project, host, self.playbook)

        if self.store.attempt(enter):
            self.events.fire(HostEvent.BOUND, host, self.playbook)
        if installed:
            self.events.fire(HostEvent.INSTALLED, host, self.playbook)
        elif self.mode == Mode.DESTROY and done:
            record = hosts.get(self.store, host)
            if record is not None and self.playbook in record.playbooks:
                self.events.fire(HostEvent.UNBOUND, host, self.playbook, unbind)

    # After the run

    def enter(self, report: Mapping[str, Any]) -> None:
        """Store the run.

        :param report: of all its hosts, redacted
        """
        self.mark.end()
        with self.problems.collecting():
            runs.record(self.store, report, self.mark.started, time.time(), self.mark.who)

    def waits_for_hooks(self, host: str) -> bool:
        """Return whether hooks of the host's own events were called, which may still fail."""
        return host in self.events.called

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Wait for the hooks of the hosts' own events; return host → failed hooks."""
        return self.events.failed()

    def close(self) -> None:
        """Wait for the queued hooks, at most two minutes, and close the store.

        Hooks that are running at that time, or when the user stops the run, may finish. The others stay queued.
        """
        try:
            self.events.wait()
            self.events.engine.over.set()
            self.around.wait()
            self.events.join()
            if self.units is not None:
                self.units.close()
                self.problems += self.units.problems
            self.events.check_interrupted()
        except KeyboardInterrupt:
            self.events.stop()
            self.around.wait()
            raise
        finally:
            with self.problems.collecting():
                self.mark.give_up()
                self.events.count()
            self.store.close()


_GRANT = "a user with Full Control can grant it: statecfg hook grant %s USER, or fullControl in its registration"


def _hooks_of_run(engine: HookEngine, declared: Sequence[Registration], silent: bool) -> list[Registration]:
    """Return the exec hooks of the project and the store. Declared hooks of the project are created on first use.

    :param silent: the run calls no hooks; the user must have Full Control of all of them
    :raises InvalidInput: a hook is wrong, or the user may not skip it
    """
    user = getpass.getuser()
    for registration in declared:
        if registration.protocol == "exec":
            engine.hooks.adopt(registration, user)
    hooks = merged(declared, engine.hooks.registrations(), engine.types)
    if not silent:
        return hooks
    # Source of the rule: only users with Full Control of a type may turn its hooks off for an operation.
    refusals = [
        problem(
            "SC0650", f"{user} does not have Full Control of the hook {hook.name}", _GRANT % hook.name, hook.position
        )
        for hook in (*hooks, *(registration for registration in declared if registration.protocol == "http"))
        if user not in hook.full_control
    ]
    if refusals:
        raise InvalidInput(refusals)
    return []
