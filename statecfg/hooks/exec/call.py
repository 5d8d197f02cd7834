"""One call of an exec hook: prepare its input, run its program, store the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.hooks import waited
from statecfg.hooks.exec import input
from statecfg.problems import InvalidInput, durations
from statecfg.remote.hooks import result, run
from statecfg.remote.hooks.output import ERROR
from statecfg.remote.hooks.result import Judged
from statecfg.store import hosts
from statecfg.store.hooks import objects, queue
from statecfg.store.hooks.records import Queued

if TYPE_CHECKING:
    from statecfg.hooks.exec.types import HookType, HookTypes
    from statecfg.store.connection import Connection
    from statecfg.store.database import Store
    from statecfg.store.hooks.queue import Metadata
    from statecfg.store.hooks.records import Configuration, HookInput
    from statecfg.store.hosts import HostRecord
    from statecfg.store.lock import StoreLock

MOST = 10  # maximum number of starts of a call: a program that always kills its worker would block the queue forever


class Caller:
    """Runs the programs of exec hooks and stores their results.

    :param types: the available hook types
    :param path: directories before the plain PATH of the programs
    :param keep: which of "input" and "output" the log keeps as well
    """

    def __init__(self, store: Store, types: HookTypes, path: tuple[str, ...], keep: frozenset[str]) -> None:
        self.store, self.types, self.path, self.keep = store, types, path, keep
        self.waited = ""  # the running call, as progress shows it; "" if no program runs

    def hook_input(
        self, host: HostRecord, playbook: str | None, resource: Mapping[str, Any] | None = None
    ) -> HookInput:
        """Return the input of a program except for its hook: node, policy and, if the event has one, the resource."""
        policy = input.policy(playbook, hosts.bound(self.store, playbook)) if playbook else None
        hook_input: HookInput = {"node": input.node(host), "policy": policy}
        return hook_input if resource is None else {**hook_input, "resource": dict(resource)}

    def ready(self, item: Queued) -> tuple[HookType | None, Judged | None]:
        """Return the type to run, or the failure to log. Both are None if the type has no program for the event."""
        try:
            type = self.types.find(item.hook.type, Path(item.hook.folder))
        except InvalidInput as error:
            return None, _failed(
                item.event, "; ".join(f"{problem.summary}: {problem.detail}" for problem in error.problems)
            )
        path = type.handler(item.event)
        if path and not run.executable(path):
            return None, result.not_executable(item.event, path)
        return (type if path else None), None

    def call(self, lock: StoreLock, item: Queued, deadline: float | None, keep: frozenset[str]) -> Judged:
        """Run the program of a call and store its result.

        :param lock: held during the call
        :param deadline: seconds; None for the deadline of the hook
        :param keep: which of "input" and "output" the log keeps as well
        """
        type, failure = self.ready(item)
        if item.started >= MOST:
            text = f"abandoned: it was started {item.started} times, and each time the process that ran it was killed"
            failure = _failed(item.event, text)
        elif type is None and failure is None:
            failure = _failed(item.event, f"the hook type {item.hook.type} no longer has the program {item.event}")
        if failure is not None or type is None:
            assert failure is not None
            return self._store(lock, item, _unchanged(failure))
        return self._run(lock, self._fresh(item), type, deadline, keep)

    def _run(
        self, lock: StoreLock, item: Queued, type: HookType, deadline: float | None, keep: frozenset[str]
    ) -> Judged:
        node, policy = item.hook_input.get("node"), item.hook_input.get("policy")
        hook_input = {"node": node, "hook": input.hook(item.hook, item.event), "policy": policy, **item.hook_input}
        seconds = durations.deadline(item.hook.spec.deadline) if deadline is None else deadline
        host = "" if node is None else node["name"]
        self.waited = waited.text(item.hook.name, item.event, host, item.started or 1, seconds)
        try:
            done = run.invoke(str(type.folder), item.event, hook_input, seconds, self.path, self.store.label)
        finally:
            self.waited = ""

        def judge(configuration: Configuration, metadata: Metadata | None) -> Judged:
            judged = result.judge(item.event, type.schema, configuration, metadata, done)
            texts = {"input": done.given, "output": done.stdout}
            for name in sorted(keep):
                if texts[name]:
                    judged.entry[name] = texts[name].decode("utf-8", "replace")
            return judged

        return self._store(lock, item, judge)

    def _store(self, lock: StoreLock, item: Queued, judge: queue.Judge) -> Judged:
        def with_resource(configuration: Configuration, metadata: Metadata | None) -> Judged:
            judged = judge(configuration, metadata)
            if resource := item.hook_input.get("resource"):
                judged.entry["resource"] = resource["name"]
            return judged

        def store(connection: Connection) -> Judged:
            lock.hold(connection)
            return queue.finish(connection, item, with_resource)

        return self.store.attempt(store)

    def _fresh(self, item: Queued) -> Queued:
        """Return a call with the current hook, node and policy. The node of a forgotten host stays as queued."""
        hook = objects.get(self.store, item.hook.name)
        # Find the host by number, because the queue also contains the calls of other projects.
        host = hosts.by_number(self.store, item.host) if item.host is not None else None
        hook_input = item.hook_input
        if host is not None:
            hook_input = {**hook_input, **self.hook_input(host, item.playbook)}
        return replace(
            item, hook=hook if hook is not None and hook.id == item.hook.id else item.hook, hook_input=hook_input
        )


def _failed(event: str, error: str) -> Judged:
    return Judged(ERROR, {"event": event, "error": error}, {}, {}, sound=False)


def _unchanged(judged: Judged) -> queue.Judge:
    def keep(configuration: Configuration, metadata: Metadata | None) -> Judged:
        return Judged(judged.severity, judged.entry, configuration, metadata, judged.detail, judged.sound)

    return keep
