"""The event bus of a run: what is true of a host or a resource goes to the hooks that are for it, and to the store."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.hooks import failed_events, host_events, waited
from statecfg.hooks.exec import engine as exec_hooks
from statecfg.hooks.exec import input as exec_input
from statecfg.hooks.exec import types as exec_types
from statecfg.hooks.http.reconcile import Reconciler
from statecfg.hooks.registration import model as registration
from statecfg.hooks.registration.model import RESOURCE_EVENTS, Registration
from statecfg.hooks.under_way import UnderWay
from statecfg.problems import InvalidInput, problem
from statecfg.remote.graph.model import Blob
from statecfg.remote.hooks import result as hook_result
from statecfg.remote.hooks.result import Judged
from statecfg.remote.machine.process import CHILDREN
from statecfg.remote.wire.frames import INLINE, encode_value
from statecfg.store import StoreError, hooks, hosts, left_hosts, opened, runs
from statecfg.units import in_run

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.run.fleet import Job, Options
    from statecfg.run.prepare import Work
    from statecfg.store.hooks import HookObject
    from statecfg.units.in_run import UnitsInRun

DRAIN = 120.0  # seconds that the end of a run waits for hooks that are still queued
LARGEST = 4 << 20  # bytes of a hook type's files, where it runs on hosts
Json = dict[str, Any]


class Bus:
    """The hooks of a run, and the store that remembers its hosts.

    What goes wrong with the store while hosts are being changed ends up in `problems`: the hosts finish all the same.

    :param run: the run's id
    :param who: "user@machine"
    :param silent: call no hook (`--no-hooks`)
    :param url: where the store is, None for the project's or the default one
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
        self.project, self.run, self.who, self.silent = project, run, who, silent
        self.store = opened(project, url)
        self.started = time.time()
        self.problems: list[str] = []
        self.playbook = ""
        self.contents: dict[str, Blob] = {}  # large files of hooks that run on hosts, by digest
        self.mode = ""
        self.left = 0  # invocations of hooks that are still queued at the end
        self.cancel = cancel or threading.Event()
        self.ledgers: dict[str, str] = {}  # of hosts, by lineage, as they were when runs of the playbook last ended
        self._sent: dict[str, Json] = {}  # what hosts need of the hooks that run there
        self._metadata: dict[str, Json] = {}  # of hosts, as hooks that run on them know it
        self.units: UnitsInRun | None = None
        self._calls, self._called = 0, threading.Condition()
        self._triggered: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None
        self._under_way = UnderWay(self.store, run)
        self._worked = threading.Event()
        self._interrupted = False  # while hooks of hosts were waited for
        self._refused: dict[str, list[Json]] = {}  # host → hooks of its events whose program can't be run
        self._queued: dict[int, str] = {}  # invocation → host, of those that this run has queued
        with contextlib.ExitStack() as undo:
            undo.callback(self.store.close)
            self.engine = exec_hooks.of_project(project, self.store, inventory)
            declared = registration.load(project)
            self.warnings = [warning for each in declared for warning in each.warnings]
            self.reconciler = Reconciler(self.store, () if silent else declared, run, inventory, self.cancel)
            user = getpass.getuser()
            self.hooks = self._exec_hooks(declared, user)
            if silent:
                self._need_full_control([*self.hooks, *(each for each in declared if each.protocol == "http")], user)
                self.hooks = []
            undo.pop_all()

    def _exec_hooks(self, declared: Iterable[Registration], user: str) -> list[Registration]:
        """Return the exec hooks of project and store; those that the project declares are made on first use."""
        for each in declared:
            if each.protocol == "exec":
                self.engine.adopt(each, user)
        return merged(declared, self.engine.registrations(), self.engine.types)

    def _need_full_control(self, found: Iterable[Registration], user: str) -> None:
        """Raise InvalidInput for hooks that this user may not pass by.

        Source of the rule: only who has Full Control of a type may turn its hooks off for an operation.
        """
        wrong = [
            problem("SC0650", f"{user} has no Full Control of the hook {each.name}", _GRANT % each.name, each.position)
            for each in found
            if user not in each.full_control
        ]
        if wrong:
            raise InvalidInput(wrong)

    # Before the run

    def begin(self, mode: str, playbook: str) -> None:
        """Say what the run does, and for which playbook, before any host is talked to."""
        self.mode, self.playbook = mode, playbook

    def join(self, options: Options, jobs: Sequence[Job]) -> tuple[Options, list[Job]]:
        """Return how to run, and on what: with the hooks of each host, and with what the store knows of it."""
        self.cancel = self.reconciler.cancel = options.cancel
        around = {job.host.name: self.of_host(job.host.name) for job in jobs}
        policy = exec_input.policy(self.playbook, hooks.bound(self.store, self.playbook))
        self.ledgers = hosts.lineages(self.store, self.playbook)
        known = []
        for job in jobs:
            ledger, node = self.ledgers.get(job.host.name, ""), self.known(job.host.name)
            self._metadata[job.host.name] = node.get("metadata") or {}
            definition = replace(job.definition, blobs={**job.definition.blobs, **self.contents})
            known.append(replace(job, definition=definition, ledger=ledger, node=node, policy=policy))
        self.units = in_run.of_run(self.store, options.deployment, self.mode, self.run, jobs, options.cancel)
        due = options.units or {}
        owner = in_run.owner(self.store, options.deployment, self.mode) if self.units is None else {}
        known = [
            replace(job, units=owner, differs=("units",) if due.get(job.host.name) else ())
            if self.units is None
            else self.units.with_units(job, options.units)
            for job in known
        ]
        names = [job.host.name for job in known]
        self._under_way.begin(self.started, self.mode, self.who, self.playbook, names)
        return replace(options, run=self.run, events=self, hooks=around), known

    def at_once(self, host: str) -> tuple[str, list[Json]]:
        """Return the key of a report and the hooks that were called for a host as a whole."""
        return "fired", [{**each, "name": ""} for each in self.reconciler.fired.get(host, ())]

    def left_hosts(self, work: Work) -> list[Json]:
        """Return the hosts that left the playbook, as reports have them."""
        file, path = work.project.relative(work.playbook or Path()), str(work.playbook)
        found: list[Json] = []
        with self._careful():
            found += left_hosts.find(self.store, self.playbook, file, work.everywhere, work.inventory, path)
        return found

    def due(self, host: str) -> list[Json]:
        """Return the hooks of units that are due on a host."""
        return self.units.due(host) if self.units is not None else []

    def known(self, host: str) -> Json:
        """Return a host as hooks are told of it."""
        record = hosts.get(self.store, host)
        return exec_input.node(record) if record is not None else {"name": host}

    def of_host(self, host: str) -> list[Json]:
        """Return the hooks around resources that may fire on a host, as the executor takes them."""
        found = []
        for each in self.hooks:
            if each.select.hosts is None or self.engine.within(each.select.hosts, host):
                wire = around_resources(each)
                if wire["events"]:
                    found.append({**wire, **self._files_of(each)} if each.where == "host" else wire)
        return found

    def _files_of(self, each: Registration) -> Json:
        """Return what every host needs to run a hook, read once for all of them."""
        if each.name not in self._sent:
            self._sent[each.name] = self._for_host(each)
        return self._sent[each.name]

    def _for_host(self, each: Registration) -> Json:
        """Return what a host needs to run a hook: its files, by name with their mode, and its configuration."""
        kind = self.engine.types.find(each.type)
        files: dict[str, Any] = {}
        total, digest = 0, hashlib.sha256()
        for path in sorted(path for path in Path(kind.folder).rglob("*") if path.is_file()):
            name, data = str(path.relative_to(kind.folder)), path.read_bytes()
            mode = 0o700 if path.stat().st_mode & 0o100 else 0o600
            total += len(data)
            digest.update(f"{name}\0{mode:o}\0{len(data)}\0".encode() + data)
            files[name] = [mode, encode_value(Blob.of(data), INLINE, self.contents)]
        if total > LARGEST:
            detail = f"the files of the hook type {each.type} have {total} bytes, and go to every host"
            raise InvalidInput([problem("SC0651", detail, f"at most {LARGEST}; or let it run on the controller")])
        object = hooks.get(self.store, each.name)
        return {
            "id": object.id if object is not None else None,
            "digest": digest.hexdigest(),
            "files": files,
            "schema": kind.schema,
            "configuration": dict(each.configuration),
        }

    # While hosts are talked to; from many threads

    def planned(self, host: str, report: Json) -> None:
        """Enter that a host has checked in; fire what is true of it now."""
        if self.due(host):
            report["units"] = self.due(host)
        with self._careful():
            facts = report.get("facts") or {}
            events = hosts.check_in(self.store, host, facts, report.get("ledger", ""), str(facts.get("boot_id", "")))
            for event in events:
                self._fire(event, host, None)

    def going(self, host: str) -> None:
        """Enter that a playbook is about to be applied to a host, and the services that it declares."""
        if self.units is not None:
            self.units.going()
        with self._careful():
            if self.mode == "apply" and hosts.bind(self.store, host, self.playbook):
                self._fire(host_events.BOUND, host, self.playbook)

    def unit(self, host: str, frame: Json, tell: Callable[[Json], None], address: str) -> None:
        """Take in what a host says of its units."""
        if self.units is not None:
            self.units.take(host, frame, tell, address)

    def hook(self, host: str, question: Json, gone: Callable[[], bool], begun: Callable[[], None]) -> Json:
        """Call a hook around a resource that runs here; return {"ok", "error", …} as `Lifecycle` takes it."""
        asked = started = time.monotonic()

        def begin() -> None:
            nonlocal started
            started = time.monotonic()
            begun()

        def stopped() -> bool:
            return gone() or self.cancel.is_set() or self.engine.over.is_set()

        try:
            with self._called:
                self._calls += 1
            record = hosts.get(self.store, host)
            given = self.engine.given(record, self.playbook, question["resource"]) if record is not None else {}
            name, event, seconds = question["hook"], question["event"], float(question["seconds"])
            judged = self.engine.resource(name, event, given, seconds, stopped, begin)
        except (StoreError, InvalidInput) as wrong:
            return {"ok": False, "error": str(wrong)}
        finally:
            with self._called:
                self._calls -= 1
                self._called.notify_all()
        return {**({"ok": True} if judged is None else _answer(judged)), "waited": started - asked}

    def may_go(self, host: str) -> str:
        """Tell the HTTP hooks that a host's resources are about to be destroyed; return why they must stay, or ""."""
        if self.mode != "destroy":
            return ""
        if self.silent:
            self.reconciler.forget(host, self.playbook)
            return ""
        try:
            done = self.reconciler.finalize(host, self.playbook)
        except (StoreError, InvalidInput) as wrong:
            return str(wrong)
        failed = [f"{each['hook']}: {each.get('error', '')}" for each in done.fired if each["status"] != "ok"]
        return "" if done.ok else f"finalize failed ({'; '.join(failed)}); nothing was removed"

    def finished(self, host: str, report: Json) -> None:
        """Enter how the run ended on a host; fire what is true now."""
        if self.units is not None:
            self.units.finished(host, report)
        with self._careful():
            for fired in report.get("fired", ()):
                if fired["where"] == "host":
                    self._log(host, fired)
        done = report["status"] == "ok" and not report.get("declined")
        if self.mode == "apply" and report["status"] in ("ok", "failed", "unknown"):
            with self._careful():
                self.reconciler.settled(host, self.playbook, done, (report.get("error") or {}).get("summary", ""))
        with self._careful():
            installed = self.mode == "apply" and done
            if installed:
                self.going(host)
            self.store.attempt(lambda connection: self._over_on(connection, host, report, installed))
            if installed:
                self._fire(host_events.INSTALLED, host, self.playbook)
            elif self.mode == "destroy" and done:
                record = hosts.get(self.store, host)
                if record is not None and self.playbook in record.playbooks:
                    self._fire(host_events.UNBOUND, host, self.playbook, lambda made: self._unbind_in(made, host))
        ledger = str(report.get("ledger") or "")
        if ledger and ledger != self.ledgers.get(host):
            with self._careful():
                hosts.went_by(self.store, host, self.playbook, ledger)

    def _unbind_in(self, connection: Connection, host: str) -> None:
        hosts.unbind_in(connection, self.store.project, host, self.playbook)

    def _over_on(self, connection: Any, host: str, report: Json, installed: bool) -> None:
        if installed:
            hosts.installed_in(connection, self.store.project, host, self.playbook)
        runs.host_finished(connection, self.run, host, report["status"], report.get("summary") or {})

    def _log(self, host: str, fired: Json) -> None:
        """Put what a hook did on a host into its log here, and the metadata it set into the host's record."""
        record, object = hosts.get(self.store, host), hooks.get(self.store, fired["hook"])
        if record is None or object is None:
            return
        severity = fired.get("severity") or ("info" if fired["status"] == "ok" else "error")
        entry = fired.get("entry") or {"event": fired["event"], "error": fired.get("error", "")}
        item = hooks.Queued(0, object, fired["event"], record.id, {}, self.playbook)
        said = fired.get("error", "")
        detail = "" if said in json.dumps(entry, ensure_ascii=False) else said
        judged = Judged(severity, {**entry, "resource": fired["name"]}, {}, None, detail)
        self.store.attempt(lambda connection: hooks.log(connection, item, judged))
        if fired.get("metadata") is not None:
            # What others have set meanwhile stays: only what this hook changed is taken over.
            before, now = self._metadata.get(host, {}), fired["metadata"]
            changed = {key: value for key, value in now.items() if key not in before or before[key] != value}
            hosts.set_metadata(self.store, host, changed, [key for key in before if key not in now])
            self._metadata[host] = now

    def _fire(
        self, event: str, host: str, playbook: str | None, change: Callable[[Connection], object] | None = None
    ) -> None:
        """Queue the hooks of a host's event; they run beside the run, in their order. `change` as of `trigger`."""
        record = hosts.get(self.store, host)
        if self.silent or record is None:
            if change is not None:
                self.store.attempt(change)
            return

        def refused(hook: HookObject, judged: Judged) -> None:
            self._refused.setdefault(host, []).append(failed_events.entry(hook.name, judged.entry, judged.detail))

        queued = self.engine.trigger(event, record, playbook, change, refused)
        if not queued:
            return
        self._queued.update(dict.fromkeys(queued, host))
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, daemon=True)
            self._worker.start()
        self._triggered.put(True)

    def _work(self) -> None:
        try:
            while self._triggered.get():
                with self._careful():
                    self.engine.drain(DRAIN)
        finally:
            self._worked.set()

    @contextlib.contextmanager
    def _careful(self) -> Any:
        """Keep what goes wrong with the store for the end of the run."""
        try:
            yield
        except (StoreError, InvalidInput) as wrong:
            if str(wrong) not in self.problems:
                self.problems.append(str(wrong))

    # The end

    def enter(self, report: Mapping[str, Any]) -> None:
        """Enter the run; `report` is of all its hosts, redacted."""
        self._under_way.end()
        with self._careful():
            runs.record(self.store, report, self.started, time.time(), self.who)

    def close(self) -> None:
        """Wait for the hooks that are queued, at most two minutes, and let go of the store.

        What runs by then, or when the user stops, may end; what was not begun stays queued.
        """
        try:
            self._await_queue()
            self.engine.over.set()
            self._await_calls()
            if self.units is not None:
                self.units.close()
                self.problems += self.units.problems
            if self._interrupted:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._stop()
            raise
        finally:
            with self._careful():
                self._under_way.give_up()
                self.left = hooks.waiting(self.store)
            self.store.close()

    def failed_events(self) -> dict[str, list[Json]]:
        """Return by host the hooks of the host's own events that failed, once what this run has queued is done."""
        try:
            self._await_queue()
        except KeyboardInterrupt:  # the report of what was done comes first: `close` raises it again
            self._interrupted = True
            self._stop()
        found = {host: list(entries) for host, entries in self._refused.items()}
        with self._careful():
            for host, failed in failed_events.of(self.store, self._queued):
                found.setdefault(host, []).append(failed)
        return found

    def _stop(self) -> None:
        """End the hook that runs, and begin no other."""
        CHILDREN.stop()
        self.engine.over.set()
        self._await_calls()

    def _await_queue(self) -> None:
        """Wait for the hooks that are queued, at most two minutes and not once the user stops."""
        if self._worker is not None:
            self._triggered.put(False)
            begun, told, stops = time.monotonic(), "", (self.cancel, self.engine.over)
            while time.monotonic() < begun + DRAIN and not any(each.is_set() for each in stops):
                if self._worked.wait(0.2):
                    break
                what = self.engine.waited or "waits for its turn to call hooks: another statecfg calls some now"
                if time.monotonic() > begun + waited.MOMENT and what != told:
                    self.reconciler.tell(what)
                    told = what

    def _await_calls(self) -> None:
        """Wait until no hook runs any more; each has its deadline."""
        with self._called:
            while self._calls:
                self._called.wait(1.0)
        if self._worker is not None:
            self._worked.wait()  # an interrupted join() takes a thread for ended


_GRANT = "whoever has it may give it: statecfg hook grant %s USER, or fullControl in its registration"


def merged(
    declared: Iterable[Registration], stored: Iterable[Registration], types: exec_types.HookTypes
) -> list[Registration]:
    """Return the exec hooks of a project and of a store, by order and name; what the project says of one counts.

    A hook is called for those events only that its type has a program for.
    """
    kept = {each.name: each for each in stored}
    for each in declared:
        if each.protocol == "exec":
            handled = types.find(each.type).events()
            known = kept.get(each.name)
            configuration = known.configuration if known is not None else each.configuration
            events = tuple(event for event in each.events if event in handled)
            kept[each.name] = replace(each, events=events, configuration=configuration)
    return sorted(kept.values(), key=lambda each: (each.order, each.name))


def around_resources(each: Registration) -> Json:
    """Return an exec hook as the executor takes it; `events` are those of resources."""
    return {
        "name": each.name,
        "type": each.type,
        "order": each.order,
        "events": [event for event in RESOURCE_EVENTS if event in each.events],
        "select": each.select.wire(),
        "failure": each.failure,
        "deadline": each.deadline,
        "where": each.where,
    }


def _answer(judged: Judged) -> Json:
    """Return what came of a hook as the executor takes it."""
    entry = hook_result.shortened(judged.entry)
    return {"ok": judged.sound, "severity": judged.severity, "entry": entry, "error": hook_result.why(judged)}
