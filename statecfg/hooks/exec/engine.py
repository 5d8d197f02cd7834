"""The engine of exec hooks: events queue calls, and the calls run strictly one at a time. Source: Razor."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from statecfg import dialects
from statecfg.hooks.exec import input, types
from statecfg.hooks.exec.call import Caller
from statecfg.hooks.exec.hooks import ExecHooks
from statecfg.hooks.exec.lock import HookLock, never
from statecfg.problems import InvalidInput, problem, suggest
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.hooks import run
from statecfg.remote.hooks.result import Judged
from statecfg.store import Busy
from statecfg.store.hooks import log, queue
from statecfg.store.hooks.records import HookInput, HookObject, Queued, Spec

if TYPE_CHECKING:
    from statecfg.hooks.exec.types import HookTypes
    from statecfg.playbook.inventory import Inventory
    from statecfg.playbook.project import Project
    from statecfg.store.connection import Connection
    from statecfg.store.database import Store
    from statecfg.store.hosts import HostRecord
    from statecfg.store.lock import StoreLock

BUDGET = 120.0  # seconds for all hooks of one event
WAIT = 1800.0  # seconds that a host waits for the lock: hooks of other hosts must not fail it
Within = Callable[[str, str], bool]


def everywhere(pattern: str, host: str) -> bool:
    """Return whether a pattern selects a host by its name alone, without an inventory."""
    from statecfg.playbook import host_patterns

    chosen, _ = host_patterns.match(pattern, host_patterns.SelectableNames([host], {}), "hosts")
    return host in chosen


class HookEngine:
    """Runs exec hooks.

    The effects and the end of a call are stored in one transaction. If an engine is killed during a call, the call is
    still in the queue. The next engine ends what is left of the program and starts the call again.

    :param store: hooks, queue, log, hosts
    :param types: the available hook types
    :param within: returns whether a pattern of the inventory selects a host
    :param path: directories before the plain PATH of the programs
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
        self.store, self.types, self.within = store, types, within
        self.lock = HookLock(store)
        self.hooks = ExecHooks(store, types)
        self.caller = Caller(store, types, path, keep)
        self.tell: Callable[[str], object] = len  # receives a line about the hook that a run waits for
        self.over = threading.Event()  # once it is set, no further queued call is started

    def trigger(
        self,
        event: str,
        host: HostRecord,
        policy: str | None = None,
        change: Callable[[Connection], object] | None = None,
        refused: Callable[[HookObject, Judged], object] | None = None,
    ) -> list[int]:
        """Queue the hook calls of a host's event; return their positions in the queue.

        A hook without a program for the event is skipped. If a program is not executable or a type can't be used, that
        is logged immediately.

        :param policy: the playbook of the event; by default the one that is bound to the host
        :param change: changes the store together with the event: in the same transaction, so that programs see the
            change, and the event is queued only if the change is stored
        :param refused: receives each hook whose program can't be run, and the reason
        """
        hooks = self.hooks.every()
        playbook = input.playbook_of(host, policy)
        hook_input: HookInput = self.caller.hook_input(host, playbook) if hooks else {}
        ready: list[Queued] = []
        unfit: list[tuple[Queued, Judged]] = []
        for hook, spec in hooks:
            if not self._selects(spec, event, host.name):
                continue
            item = Queued(0, hook, event, host.id, hook_input, playbook)
            type, failure = self.caller.ready(item)
            if failure is not None:
                unfit.append((item, failure))
            elif type is not None:
                ready.append(item)

        def enter(connection: Connection) -> list[int]:
            if change is not None:
                change(connection)
            for item, judged in unfit:
                log.write(connection, item, judged)
            return queue.enqueue(connection, ready)

        if not ready and not unfit and change is None:
            return []
        positions = self.store.attempt(enter)
        if refused is not None:
            for item, judged in unfit:
                refused(item.hook, judged)
        return positions

    def drain(self, deadline: float = BUDGET) -> list[tuple[Queued, Judged]]:
        """Run the calls that are queued now, oldest first, one at a time across all processes; return their results.

        Results of calls that other processes run in the meantime are in the log. Inside a hook's program, nothing runs:
        the process that runs the program continues with the queue.

        :param deadline: seconds after which no further call is started; the next call of `drain` starts the rest
        """
        end = time.monotonic() + deadline
        upto = queue.last(self.store)
        done: list[tuple[Queued, Judged]] = []
        if not upto or run.RUNNING in os.environ:
            return done
        with contextlib.suppress(Busy):
            while not self.over.is_set():
                # Take the lock for each call, because a host may be waiting for its own hook.
                with self._locked(end - time.monotonic(), self.over.is_set) as lock:
                    if time.monotonic() >= end:
                        break
                    item = self.store.attempt(lambda connection: queue.begin(connection, upto))
                    if item is None:
                        break
                    done.append((item, self.caller.call(lock, item, None, self.caller.keep)))
        return done

    def run(
        self, name: str, event: str, host: HostRecord, policy: str | None = None, debug: bool = False
    ) -> Judged | None:
        """Run a hook immediately; return its result, or None if it has no program for the event.

        :param debug: keep the program's input and output in the log
        :raises InvalidInput: there is no such hook or event
        :raises Busy: other hooks ran for two minutes, or this process is a hook itself
        """
        if event not in HostEvent.ALL:
            detail = f"event must refer to one of {', '.join(HostEvent.ALL)}"
            raise InvalidInput([problem("SC0604", detail, suggest(event, HostEvent.ALL))])
        playbook = input.playbook_of(host, policy)
        keep = self.caller.keep | {"input", "output"} if debug else self.caller.keep
        item = self._item(name, event, self.caller.hook_input(host, playbook), playbook)
        with self._alone(BUDGET) as lock:
            return self._now(lock, item, None, keep)

    def resource(
        self,
        name: str,
        event: str,
        hook_input: HookInput,
        deadline: float | None = None,
        stopped: Callable[[], bool] = never,
        begun: Callable[[], object] = never,
    ) -> Judged | None:
        """Run a hook for an event of a resource as soon as no other hook runs; return as `run` does.

        :param hook_input: the program's input, from `Caller.hook_input`
        :param deadline: seconds after the call started; by default the deadline of the hook
        :param stopped: returns whether to stop waiting
        :param begun: called when the call starts
        :raises Busy: other hooks ran for half an hour, it was stopped, or this process is a hook itself
        """
        policy = hook_input.get("policy")
        item = self._item(name, event, hook_input, policy["name"] if policy else None)
        with self._alone(WAIT, stopped) as lock:
            begun()
            return self._now(lock, item, deadline, self.caller.keep)

    def _item(self, name: str, event: str, hook_input: HookInput, playbook: str | None) -> Queued:
        node = hook_input.get("node")
        return Queued(0, self.hooks.find(name), event, node["id"] if node else None, hook_input, playbook)

    def _now(self, lock: StoreLock, item: Queued, deadline: float | None, keep: frozenset[str]) -> Judged | None:
        if self.caller.ready(item) == (None, None):
            return None
        return self.caller.call(lock, item, deadline, keep)

    @contextlib.contextmanager
    def _alone(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[StoreLock]:
        if run.RUNNING in os.environ:
            raise Busy(
                "a running hook started this command, and hooks run one at a time",
                "cause an event instead: statecfg queues the hook for it",
            )
        with self._locked(wait, stopped) as lock:
            yield lock

    @contextlib.contextmanager
    def _locked(self, wait: float, stopped: Callable[[], bool] = never) -> Iterator[StoreLock]:
        """Hold the lock. First end the programs that a killed engine left running."""
        with self.lock.hold(wait, stopped) as lock:
            run.end_left(self.store.label)
            yield lock

    def _selects(self, spec: Spec, event: str, host: str) -> bool:
        return (not spec.events or event in spec.events) and (spec.hosts is None or self.within(spec.hosts, host))


def of_project(project: Project, store: Store, inventory: Inventory | None = None) -> HookEngine:
    """Return the engine of a project, with its settings.

    :param inventory: selects hosts; by default the project's inventory
    :raises InvalidInput: the project's inventory is wrong
    """
    settings = project.settings
    keep = {"input": settings.hooks.store_hook_input, "output": settings.hooks.store_hook_output}
    kept = frozenset(name for name, wanted in keep.items() if wanted)
    within = selecting(dialects.inventory(project) if inventory is None else inventory)
    return HookEngine(store, types.of_project(project), within, types.execution_path(project), kept)


def selecting(inventory: Inventory) -> Within:
    """Return a function that tells whether a pattern selects a host of an inventory."""

    @functools.cache
    def chosen(pattern: str) -> frozenset[str]:
        try:
            return frozenset(host.name for host in inventory.select(pattern))
        except InvalidInput:  # it selects nothing in this inventory; it was checked when the hook was created
            return frozenset()

    return lambda pattern, host: host in chosen(pattern)
