"""Exec hooks, as Razor has them: events put them into a queue, which is worked off strictly one at a time."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from statecfg import dialects
from statecfg.hooks import waited
from statecfg.hooks.exec import input as exec_input
from statecfg.hooks.exec import types as exec_types
from statecfg.hooks.exec.line import Line, never
from statecfg.hooks.host_events import EVENTS as HOST_EVENTS
from statecfg.hooks.registration.model import EVENTS, Registration, Selector
from statecfg.problems import InvalidInput, durations, problem, suggest
from statecfg.remote.hooks import result as hook_result
from statecfg.remote.hooks import run as hook_run
from statecfg.remote.hooks.result import Judged
from statecfg.store import Busy, hooks, hosts
from statecfg.store.hooks import HookObject, Queued, Spec

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from statecfg.hooks.exec.types import HookType, HookTypes
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store
    from statecfg.store.hosts import HostRecord
    from statecfg.store.turns import Turn

BUDGET = 120.0  # seconds for all hooks of one event.
WAIT = 1800.0  # seconds that the turn is waited for while a host waits: hooks of other hosts are no failure of its own
MOST = 10  # times that an invocation is begun: one that each time takes down who runs it would stop the queue for ever
Within = Callable[[str, str], bool]


def everywhere(pattern: str, host: str) -> bool:
    """Tell whether a pattern selects a host where there is no inventory: by its name alone."""
    from statecfg.playbook import host_patterns

    chosen, _ = host_patterns.match(pattern, host_patterns.Names([host], {}), "hosts")
    return host in chosen


class Engine:
    """Runs exec hooks.

    An invocation that was being run when its engine was killed is still in the queue, since its effects and its end are
    stored in one transaction. What is left of its program is ended, and it is taken up again: nothing that its program
    asked for has been stored yet.

    :param store: hooks, queue, log, hosts
    :param types: the types of hooks that there are
    :param within: tells whether a pattern of the inventory selects a host
    :param path: directories that come before the plain PATH of the programs
    :param keep: which of "input" and "output" the log keeps as well
    """

    def __init__(
        self,
        store: Store,
        types: HookTypes,
        within: Within = everywhere,
        path: tuple[str, ...] = (),
        keep: frozenset[str] = frozenset(),
    ) -> None:
        self.store, self.types, self.within, self.path, self.keep = store, types, within, path, keep
        self.line = Line(store)
        self.declared: dict[str, Registration] = {}
        self.over = threading.Event()  # once it is set, nothing more is begun of the queue
        self.waited = ""  # what runs now, as progress says it; "" for nothing

    def trigger(
        self,
        event: str,
        host: HostRecord,
        policy: str | None = None,
        change: Callable[[Connection], object] | None = None,
        refused: Callable[[HookObject, Judged], object] | None = None,
    ) -> list[int]:
        """Queue what an event of a host calls for; return the places in the queue.

        A hook without a program for the event is passed over; one whose program can't be executed or whose type can't
        be used is put into the log at once.

        :param policy: the playbook that the event is about; the one bound to the host where not given
        :param change: what else changes in the store with the event; done in the same transaction, so that programs see
            its result, and that the event is queued if and only if the change is stored
        :param refused: is told of each hook whose program can't be run, and why
        """
        known = hooks.every(self.store)
        playbook = exec_input.playbook_of(host, policy)
        given = self.given(host, playbook) if known else {}
        queue: list[Queued] = []
        unfit: list[tuple[Queued, Judged]] = []
        for hook in known:
            spec = self._spec(hook)
            if spec is None or (spec.events and event not in spec.events) or not self._selects(spec, host.name):
                continue
            item = Queued(0, hook, event, host.id, given, playbook)
            kind, wrong = self._ready(item)
            if wrong is not None:
                unfit.append((item, wrong))
            elif kind is not None:
                queue.append(item)

        def enter(connection: Connection) -> list[int]:
            if change is not None:
                change(connection)
            for item, judged in unfit:
                hooks.log(connection, item, judged)
            return hooks.enqueue(connection, queue)

        if not queue and not unfit and change is None:
            return []
        places = self.store.attempt(enter)
        if refused is not None:
            for item, judged in unfit:
                refused(item.hook, judged)
        return places

    def drain(self, deadline: float = BUDGET) -> list[tuple[Queued, Judged]]:
        """Run what is queued now, first come first served, one at a time over all processes; return what came of it.

        Waits for its turn; what others have run by then is in the log. A program that is a hook itself waits for
        nothing: whoever runs it goes on with the queue.

        :param deadline: seconds after which nothing more is begun; what is left is run by the next one to drain
        """
        end = time.monotonic() + deadline
        upto = hooks.last(self.store)
        done: list[tuple[Queued, Judged]] = []
        if not upto or hook_run.RUNNING in os.environ:
            return done
        with contextlib.suppress(Busy):
            while not self.over.is_set():
                # A turn for each: a host may be waiting for a hook of its own.
                with self._turn(end - time.monotonic(), self.over.is_set) as turn:
                    if time.monotonic() >= end:
                        break
                    item = self.store.attempt(lambda connection: hooks.begin(connection, upto))
                    if item is None:
                        break
                    done.append((item, self._work(turn, item)))
        return done

    def run(
        self, name: str, event: str, host: HostRecord, policy: str | None = None, debug: bool = False
    ) -> Judged | None:
        """Run a hook at once; return what came of it, None where it has no program for the event.

        :param debug: keep what the program read and wrote in the log
        :raises InvalidInput: there is no such hook or event
        :raises Busy: others ran hooks for two minutes, or this is a hook itself
        """
        if event not in HOST_EVENTS:
            detail = f"event must refer to one of {', '.join(HOST_EVENTS)}"
            raise InvalidInput([problem("SC0604", detail, suggest(event, HOST_EVENTS))])
        playbook = exec_input.playbook_of(host, policy)
        keep = self.keep | {"input", "output"} if debug else self.keep
        item = self._item(name, event, self.given(host, playbook), playbook)
        with self._alone(BUDGET) as turn:
            return self._now(turn, item, None, keep)

    def resource(
        self,
        name: str,
        event: str,
        given: Mapping[str, Any],
        deadline: float | None = None,
        stopped: Callable[[], bool] = never,
        begun: Callable[[], object] = never,
    ) -> Judged | None:
        """Run a hook for an event of a resource as soon as it is its turn; return as `run` does.

        :param given: what the program reads, as `given` makes it
        :param deadline: seconds, from when it is its turn; the hook's own where not given
        :param stopped: tells whether to wait for the turn no longer
        :param begun: called when the turn has come
        :raises Busy: the turn did not come in half an hour, it was stopped, or this is a hook itself
        """
        policy = given.get("policy") or {}
        item = self._item(name, event, given, policy.get("name"))
        with self._alone(WAIT, stopped) as turn:
            begun()
            return self._now(turn, item, deadline, self.keep)

    def _item(self, name: str, event: str, given: Mapping[str, Any], playbook: str | None) -> Queued:
        node = given.get("node") or {}
        return Queued(0, self.hook(name), event, node.get("id"), dict(given), playbook)

    def _now(self, turn: Turn, item: Queued, deadline: float | None, keep: frozenset[str]) -> Judged | None:
        kind, wrong = self._ready(item)
        if kind is None and wrong is None:
            return None
        return self._work(turn, item, deadline, keep)

    def given(
        self, host: HostRecord, playbook: str | None, resource: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return what a program reads, but for its own hook: node, policy and, for an event of one, the resource."""
        found: dict[str, Any] = {
            "node": exec_input.node(host),
            "policy": exec_input.policy(playbook, hooks.bound(self.store, playbook)) if playbook else None,
        }
        return found if resource is None else {**found, "resource": dict(resource)}

    def hook(self, name: str) -> HookObject:
        """Return a hook. Raises InvalidInput where there is none."""
        found = hooks.get(self.store, name)
        if found is None:
            there = [each.name for each in hooks.every(self.store)]
            hint = suggest(name, there, "there are") or "`statecfg hook create` makes one"
            raise InvalidInput([problem("SC0624", f"there is no hook `{name}`", hint)])
        return found

    def adopt(self, registration: Registration, user: str) -> HookObject:
        """Return the hook of a registration in the project; it is made, with that configuration, on first use.

        Raises InvalidInput where one of that name has another type, or its configuration does not fit.
        """
        known = hooks.get(self.store, registration.name)
        if known is None:
            kind = self.types.find(registration.type)
            chosen = registration.select
            spec = Spec(chosen.hosts, chosen.types, chosen.names, chosen.tags, registration.events)
            spec = replace(spec, where=registration.where, order=registration.order, on_failure=registration.failure)
            spec = replace(spec, deadline=f"PT{registration.deadline:g}S", declared=True)
            complete = kind.configured(registration.configuration)
            known, _ = hooks.create(self.store, registration.name, kind.name, str(kind.folder), complete, spec, user)
        if known.type != registration.type:
            detail = f"The hook {registration.name} already exists, and the hook_type fields do not match"
            hint = f"it is of the type {known.type}; rename one, or: statecfg hook delete {known.name}"
            raise InvalidInput([problem("SC0623", detail, hint, registration.position)])
        self.declared[registration.name.casefold()] = registration
        return known

    def _spec(self, hook: HookObject) -> Spec | None:
        """Return what a hook is called for: as the project says now; None for one that only others' projects declare.

        Such a hook is kept, with its configuration, for when it is declared again.
        """
        declared = self.declared.get(hook.name.casefold())
        if declared is None:
            return None if hook.spec.declared else hook.spec
        return replace(hook.spec, hosts=declared.select.hosts, events=declared.events)

    def registrations(self, declared: Iterable[str] = ()) -> list[Registration]:
        """Return the hooks of the store as registrations, by order and name.

        :param declared: names of those that this project declares; hooks that only other projects declare are left out
        """
        names = {*self.declared, *(name.casefold() for name in declared)}
        every = [hook for hook in hooks.every(self.store) if not hook.spec.declared or hook.name.casefold() in names]
        found = [self._registration(hook) for hook in every]
        return sorted(found, key=lambda each: (each.order, each.name))

    def _registration(self, hook: HookObject) -> Registration:
        spec = hook.spec
        warnings = []
        try:
            handled: tuple[str, ...] = tuple(self.types.find(hook.type, _folder(hook)).events())
        except InvalidInput as wrong:
            handled, warnings = spec.events, wrong.problems
        return Registration(
            hook.name,
            "exec",
            tuple(event for event in EVENTS if event in handled and event in (spec.events or EVENTS)),
            Selector(spec.hosts, spec.types, spec.names, spec.tags),
            spec.where,
            spec.order,
            durations.deadline(spec.deadline),
            spec.on_failure,
            hook.access,
            type=hook.type,
            configuration=hook.configuration,
            warnings=tuple(warnings),
        )

    # One invocation

    @contextlib.contextmanager
    def _alone(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[Turn]:
        if hook_run.RUNNING in os.environ:
            raise Busy("a hook started this, and hooks run one at a time", "let the event that you cause call the hook")
        with self._turn(wait, stopped) as turn:
            yield turn

    @contextlib.contextmanager
    def _turn(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[Turn]:
        """Have the turn, with nothing running any more that an engine left behind which was killed in its own."""
        with self.line.turn(wait, stopped) as turn:
            hook_run.end_left(self.store.shown)
            yield turn

    def _selects(self, spec: Spec, host: str) -> bool:
        return spec.hosts is None or self.within(spec.hosts, host)

    def _ready(self, item: Queued) -> tuple[HookType | None, Judged | None]:
        """Return the type to run, or what is to be logged instead; neither where it has no program for the event."""
        try:
            kind = self.types.find(item.hook.type, _folder(item.hook))
        except InvalidInput as wrong:
            said = "; ".join(f"{each.summary}: {each.detail}" for each in wrong.problems)
            return None, _failed(item.event, said)
        path = kind.handler(item.event)
        if path and not hook_run.executable(path):
            return None, hook_result.not_executable(item.event, path, {}, {})
        return (kind if path else None), None

    def _work(
        self, turn: Turn, item: Queued, deadline: float | None = None, keep: frozenset[str] | None = None
    ) -> Judged:
        """Run an invocation and store what came of it."""
        kind, wrong = self._ready(item)
        if item.started >= MOST:
            said = f"given up: it was begun {item.started} times, and each time whoever ran it was killed"
            wrong = _failed(item.event, said)
        if kind is None and wrong is None:
            said = f"the program {item.event} is gone from the hook type {item.hook.type}"
            wrong = _failed(item.event, said)
        if wrong is not None or kind is None:
            assert wrong is not None
            return self._settle(turn, item, _unchanged(wrong))
        item = self._fresh(item)
        own = {"hook": exec_input.hook(item.hook, item.event)}
        given = {"node": item.given.get("node"), **own, "policy": item.given.get("policy"), **item.given}
        seconds = durations.deadline(item.hook.spec.deadline) if deadline is None else deadline
        node = (item.given.get("node") or {}).get("name", "")
        self.waited = waited.text(item.hook.name, item.event, node, item.started or 1, seconds)
        try:
            done = hook_run.invoke(str(kind.folder), item.event, given, seconds, self.path, self.store.shown)
        finally:
            self.waited = ""
        schema, kept = kind.schema, self.keep if keep is None else keep

        def judge(configuration: dict[str, Any], metadata: dict[str, Any] | None) -> Judged:
            judged = hook_result.judge(
                item.event, schema, configuration, metadata, done.exit_status, done.stdout, done.stderr, done.reason
            )
            texts = {"input": done.given, "output": done.stdout}
            for name in sorted(kept):
                if texts[name]:
                    judged.entry[name] = texts[name].decode("utf-8", "replace")
            return judged

        return self._settle(turn, item, judge)

    def _settle(self, turn: Turn, item: Queued, judge: hooks.Judge) -> Judged:
        def about(configuration: dict[str, Any], metadata: dict[str, Any] | None) -> Judged:
            judged = judge(configuration, metadata)
            if item.given.get("resource"):
                judged.entry["resource"] = item.given["resource"]["name"]
            return judged

        def store(connection: Connection) -> Judged:
            turn.hold(connection)
            return hooks.settle(connection, item, about)

        return self.store.attempt(store)

    def _fresh(self, item: Queued) -> Queued:
        """Return an invocation with hook, node and policy as they are now; of a host that is forgotten, as queued."""
        hook = hooks.get(self.store, item.hook.name)
        # By its number: the queue holds what other projects have put into it, too.
        known = hosts.by_number(self.store, item.host) if item.host is not None else None
        given = dict(item.given)
        if known is not None:
            given.update(self.given(known, item.playbook))
        return replace(item, hook=hook if hook is not None and hook.id == item.hook.id else item.hook, given=given)


def of_project(project: Project, store: Store, inventory: Inventory | None = None) -> Engine:
    """Return the engine of a project, by its settings.

    :param inventory: the one that selects hosts; the project's where not given
    :raises InvalidInput: the project's inventory is wrong
    """
    settings = project.settings
    keep = {"input": settings.store_hook_input, "output": settings.store_hook_output}
    kept = frozenset(name for name, wanted in keep.items() if wanted)
    within = selecting(dialects.inventory(project) if inventory is None else inventory)
    return Engine(store, exec_types.of_project(project), within, exec_types.execution_path(project), kept)


def selecting(inventory: Inventory) -> Within:
    """Return what tells whether a pattern selects a host of an inventory."""

    @functools.cache
    def chosen(pattern: str) -> frozenset[str]:
        try:
            return frozenset(host.name for host in inventory.select(pattern))
        except InvalidInput:  # it selects nothing in this inventory; it was looked at when the hook was made
            return frozenset()

    return lambda pattern, host: host in chosen(pattern)


def _failed(event: str, said: str) -> Judged:
    return Judged(hook_result.ERROR, {"event": event, "error": said}, {}, {}, sound=False)


def _unchanged(judged: Judged) -> hooks.Judge:
    def keep(configuration: dict[str, Any], metadata: dict[str, Any] | None) -> Judged:
        return Judged(judged.severity, judged.entry, configuration, metadata, judged.detail, judged.sound)

    return keep


def _folder(hook: HookObject) -> Any:
    from pathlib import Path

    return Path(hook.folder)
