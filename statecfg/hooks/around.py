"""Hooks around resources: the data that hosts need for them, and the calls of hooks that run on the controller."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from statecfg.hooks.registration.model import Registration
from statecfg.problems import InvalidInput, problem
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.names import ResourceEvent
from statecfg.remote.hooks import result
from statecfg.remote.hooks.result import Judged
from statecfg.remote.wire.frames import INLINE, encode_value
from statecfg.store import StoreError, hosts
from statecfg.store.hooks import objects

if TYPE_CHECKING:
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.exec.types import HookTypes, Schema
    from statecfg.store.hooks.records import HookInput

LARGEST = 4 << 20  # bytes of the files of a hook type whose hooks run on hosts


class WireHook(TypedDict):
    """An exec hook as `remote.hooks.order.HookOrder` reads it. `events` has only events of resources."""

    name: str
    type: str
    order: int
    events: Sequence[str]
    select: Mapping[str, Sequence[str]]
    on_failure: str
    deadline: float
    where: str


class WireHookFiles(TypedDict):
    """What else a host needs to run a hook: name → mode and content, and the digest of these files."""

    id: int | None
    digest: str
    files: Mapping[str, tuple[int, Any]]
    schema: Schema
    configuration: Mapping[str, Any]


class WireHookWithFiles(WireHook, WireHookFiles):
    """An exec hook that runs on the host."""


class CallResult(TypedDict):
    """The result of a hook's call as `remote.hooks.lifecycle` reads it.

    `error`: why the hook failed, or the error that it reported nevertheless. `entry`: the text for the log, shortened.
    `waited`: seconds until the hook started.
    """

    ok: bool
    error: NotRequired[str]
    severity: NotRequired[str]
    entry: NotRequired[Mapping[str, Any]]
    waited: NotRequired[float]


class AroundResources:
    """The exec hooks that one run calls for events of resources. Several threads may use it.

    :param hooks: the hooks of the run
    :param cancel: set when the user stops the run
    """

    def __init__(self, engine: HookEngine, hooks: Iterable[Registration], cancel: threading.Event) -> None:
        self.engine, self.hooks, self.cancel = engine, hooks, cancel
        self.contents: dict[str, Blob] = {}  # large files of hooks that run on hosts, by digest
        self._files: dict[str, WireHookFiles] = {}  # what hosts need to run a hook, by the name of the hook
        self._running, self._ended = 0, threading.Condition()

    def of_host(self, host: str) -> list[WireHook]:
        """Return the hooks that may be called on a host, as the executor reads them."""
        hooks = []
        for hook in self.hooks:
            if hook.select.hosts is None or self.engine.within(hook.select.hosts, host):
                order = to_wire(hook)
                if order["events"]:
                    hooks.append(self._with_files(hook, order) if hook.where == "host" else order)
        return hooks

    def _with_files(self, hook: Registration, order: WireHook) -> WireHookWithFiles:
        return {**order, **self._files_of(hook)}

    def _files_of(self, hook: Registration) -> WireHookFiles:
        """Return what a host needs to run a hook. The files are read once for all hosts."""
        if hook.name not in self._files:
            self._files[hook.name] = self._read(hook)
        return self._files[hook.name]

    def _read(self, hook: Registration) -> WireHookFiles:
        type = self.engine.types.find(hook.exec.type)
        files: dict[str, tuple[int, Any]] = {}
        total, digest = 0, hashlib.sha256()
        for path in sorted(path for path in Path(type.folder).rglob("*") if path.is_file()):
            name, data = str(path.relative_to(type.folder)), path.read_bytes()
            mode = 0o700 if path.stat().st_mode & 0o100 else 0o600
            total += len(data)
            digest.update(f"{name}\0{mode:o}\0{len(data)}\0".encode() + data)
            files[name] = mode, encode_value(Blob.of(data), INLINE, self.contents)
        if total > LARGEST:
            detail = f"the files of the hook type {hook.exec.type} have {total} bytes, and each host would receive them"
            hint = f"the limit is {LARGEST}; you can also let the hook run on the controller"
            raise InvalidInput([problem("SC0651", detail, hint)])
        stored = objects.get(self.engine.store, hook.name)
        return {
            "id": stored.id if stored is not None else None,
            "digest": digest.hexdigest(),
            "files": files,
            "schema": type.schema,
            "configuration": dict(hook.exec.configuration),
        }

    def call(
        self,
        host: str,
        playbook: str,
        question: Mapping[str, Any],
        abandoned: Callable[[], bool],
        begun: Callable[[], None],
    ) -> CallResult:
        """Call a hook that runs on the controller.

        :param question: the host's frame: `hook`, `event`, `seconds` and `resource`
        :param abandoned: returns whether the host no longer waits
        :param begun: called when the hook starts
        """
        requested_at = started = time.monotonic()

        def begin() -> None:
            nonlocal started
            started = time.monotonic()
            begun()

        def stopped() -> bool:
            return abandoned() or self.cancel.is_set() or self.engine.over.is_set()

        try:
            with self._ended:
                self._running += 1
            record = hosts.get(self.engine.store, host)
            hook_input: HookInput = {}
            if record is not None:
                hook_input = self.engine.caller.hook_input(record, playbook, question["resource"])
            name, event, seconds = question["hook"], question["event"], float(question["seconds"])
            judged = self.engine.resource(name, event, hook_input, seconds, stopped, begin)
        except (StoreError, InvalidInput) as error:
            return {"ok": False, "error": str(error)}
        finally:
            with self._ended:
                self._running -= 1
                self._ended.notify_all()
        result: CallResult = {"ok": True} if judged is None else _result(judged)
        return {**result, "waited": started - requested_at}

    def wait(self) -> None:
        """Wait until no call is running. Each call has a deadline."""
        with self._ended:
            while self._running:
                self._ended.wait(1.0)


def merged(declared: Iterable[Registration], stored: Iterable[Registration], types: HookTypes) -> list[Registration]:
    """Return the exec hooks of a project and of a store, by order and name. The project overrides the store.

    A hook is called only for events for which its type has a program.
    """
    kept = {hook.name: hook for hook in stored}
    for hook in declared:
        if hook.protocol == "exec":
            handled = types.find(hook.exec.type).events()
            in_store = kept.get(hook.name)
            configuration = (in_store or hook).exec.configuration
            events = tuple(event for event in hook.events if event in handled)
            kept[hook.name] = replace(hook, events=events, exec=replace(hook.exec, configuration=configuration))
    return sorted(kept.values(), key=lambda hook: (hook.order, hook.name))


def to_wire(hook: Registration) -> WireHook:
    """Return an exec hook as the executor reads it. `events` has only events of resources."""
    return {
        "name": hook.name,
        "type": hook.exec.type,
        "order": hook.order,
        "events": [event for event in ResourceEvent.ALL if event in hook.events],
        "select": hook.select.wire(),
        "on_failure": hook.on_failure,
        "deadline": hook.deadline,
        "where": hook.where,
    }


def _result(judged: Judged) -> CallResult:
    entry = result.shortened(judged.entry)
    return {"ok": judged.sound, "severity": judged.severity, "entry": entry, "error": result.why(judged)}
