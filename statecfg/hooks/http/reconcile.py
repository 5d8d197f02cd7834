"""Reconciliation of a playbook on a host: HTTP hooks change it before an apply, and finalize it before a removal.

The order of the steps is that of TriggerMesh Scoby's reconciliation: complete the conditions, render the children, call
the hooks with object and children, add finalizers, store the observed generation; then apply the children, and store
the result.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

from statecfg import dialects
from statecfg.graph.graph import Graph
from statecfg.hooks.http import conditions
from statecfg.hooks.http.asking import NO_MESSAGE, Asking, Fired, fired, http_of
from statecfg.hooks.http.calls import FINALIZE, PRE_RECONCILE, Failure, Reply
from statecfg.hooks.http.children import HookChildren
from statecfg.hooks.http.described import digest
from statecfg.hooks.http.foreseen import applied
from statecfg.hooks.http.held import Held
from statecfg.hooks.registration import files
from statecfg.hooks.registration.model import Registration
from statecfg.playbook.inventory import Host, Inventory
from statecfg.playbook.project import Project
from statecfg.problems import InvalidInput, Problem
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HookStatus
from statecfg.remote.graph.on_failure import RULES
from statecfg.run.hook_failure import HookFailure
from statecfg.store import Busy, answers, locks, objects
from statecfg.store.database import Store
from statecfg.store.objects import Reconciled

FINALIZER = "statecfg/"  # followed by the name of the hook


@dataclass(frozen=True)
class Finalized:
    """The result of finalizing a playbook on a host.

    :param ok: whether the resources may be removed now
    :param fired: the calls, as in reports
    :param left: the remaining finalizers
    """

    ok: bool
    fired: list[Fired]
    left: list[str]


class OwedResult(Fired):
    """The result of an owed call, as in reports."""

    host: str
    playbook: str


class Reconciler:
    """Calls the HTTP hooks of a run.

    :param registrations: all registrations of the project; other protocols are ignored
    :param run: the run's id
    :param inventory: resolves `select.hosts` and the addresses of references to a `Host`
    :param cancel: set when the user stops the run
    :raises InvalidInput: a registration selects hosts that do not exist
    """

    def __init__(
        self,
        store: Store,
        registrations: Iterable[Registration],
        run: str,
        inventory: Inventory,
        cancel: threading.Event | None = None,
    ) -> None:
        self.store, self.inventory = store, inventory
        self.asking = Asking(store, run, inventory, cancel or threading.Event())
        self.hooks = [hook for hook in registrations if hook.protocol == "http"]
        self.chosen = _hosts_of(self.hooks, inventory)
        self.unsure: set[str] = set()  # hosts on which a hook failed, so that it is unknown what it would have added

    @property
    def fired(self) -> dict[str, list[Fired]]:
        """The calls by host, as in reports."""
        return self.asking.fired

    def concerns(self, host: str) -> list[str]:
        """Return the names of the hooks that are called for a host."""
        return [hook.name for hook in self.hooks_of(host, PRE_RECONCILE, FINALIZE)]

    def hooks_of(self, host: str, *phases: str) -> list[Registration]:
        """Return the hooks that are called for a host, in order.

        :param phases: only hooks that take part in one of these phases; by default all
        """
        return [
            hook
            for hook in self.hooks
            if hook.http is not None
            and (not phases or set(phases) & set(hook.http.capabilities))
            and (self.chosen[hook.name] is None or host in (self.chosen[hook.name] or ()))
        ]

    def reshape(
        self, host: Host, playbook: str, graph: Graph, variables: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> Graph:
        """Return the graph of a host after its hooks changed it.

        :param playbook: its name in the project
        :param graph: a valid graph; what hooks return is validated again
        :param variables: of the host in the playbook
        :param secrets: name → value, of each secret in graph and variables
        :raises HookFailure: a hook failed, and its failure rule stops the run
        :raises InvalidInput: a hook returned children that do not form a graph
        """
        hooks = self.hooks_of(host.name, PRE_RECONCILE, FINALIZE)
        if not hooks:
            return graph
        spec = {"host": host.name, "playbook": playbook, "vars": Held(secrets).to_json(dict(variables))}
        definition = digest(spec, graph, secrets)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked(host.name, playbook))
            except Busy as error:
                text = f"another run reconciles it: {error.detail}"
                raise HookFailure(hooks[0].name, host.name, PRE_RECONCILE, text, None) from None
            object = objects.ensure(self.store, playbook, host.name, spec, definition)
            object = objects.keep_status(self.store, object, conditions.sanitised(object.status, _types(hooks)))
            for hook in hooks:
                if PRE_RECONCILE in http_of(hook).capabilities:
                    object, graph = self._reshaped(hook, object, graph, secrets, _types(hooks))
                if FINALIZE in http_of(hook).capabilities and _finalizer(hook) not in object.finalizers:
                    object = objects.keep_finalizers(self.store, object, [*object.finalizers, _finalizer(hook)])
            status = {**object.status, "observedGeneration": object.generation}
            objects.keep_status(self.store, object, status)
        return graph

    def _reshaped(
        self, hook: Registration, object: Reconciled, graph: Graph, secrets: Mapping[str, str], types: Sequence[str]
    ) -> tuple[Reconciled, Graph]:
        children = HookChildren(graph, hook, secrets)
        reply, attempts = self.asking.ask(hook, PRE_RECONCILE, object, children.sent, secrets)
        if reply.error is None:
            object = self._with_status(object, reply, types)
        if reply.error is None and reply.children is not None:
            try:
                graph = children.replaced(reply.children)
            except InvalidInput as error:
                first = error.problems[0]
                reply = Reply(error=Failure(first.detail, permanent=True))
                if not RULES[hook.on_failure].continues:
                    self.asking.log(hook, PRE_RECONCILE, object, HookStatus.FAILED, first.detail)
                    raise
        if reply.error is None:
            answers.keep(self.store, object, hook.name, children.sent, reply.children or children.sent)
        elif reply.error.proceed or RULES[hook.on_failure].continues:
            graph, kept = self._as_before(hook, object, children, graph)
            reply = replace(reply, error=replace(reply.error, message=f"{reply.error.message or NO_MESSAGE}; {kept}"))
        self.asking.finish(hook, PRE_RECONCILE, object, reply, attempts)
        return object, graph

    def _as_before(
        self, hook: Registration, object: Reconciled, children: HookChildren, graph: Graph
    ) -> tuple[Graph, str]:
        """Return the graph with the last answer of a hook that failed now, and in words what happens with its children.

        Without a usable answer, nothing may be pruned on the host: the hook may have added it.
        """
        answer = answers.last(self.store, object.playbook, object.host, hook.name)
        if answer is not None:
            try:
                return children.replaced(applied(children.sent, answer)), "its last answer stays in force"
            except InvalidInput:  # the definition has changed too much since then
                answer = None
        self.unsure.add(object.host)
        return graph, "its last answer is unknown, so this run prunes nothing on this host"

    def finalize(self, host: str, playbook: str) -> Finalized:
        """Call the hooks that finalize a playbook on a host, before its resources are removed.

        A finalizer is removed when its hook succeeds or allows to continue. Without finalizers, the object is deleted.
        The finalizer of a hook that is no longer registered stays until the hook is registered again, or until
        `forget` is called.
        """
        hooks = self.hooks_of(host, FINALIZE)
        ok, before = True, len(self.fired.get(host, ()))
        with self._locked(host, playbook):
            object = objects.get(self.store, playbook, host)
            if object is None:
                return Finalized(True, [], [])
            object = objects.delete_asked(self.store, object)
            object = objects.keep_status(self.store, object, conditions.sanitised(object.status, _types(hooks)))
            # A hook that was registered after the last apply is called as well.
            every = [*object.finalizers, *(name for name in map(_finalizer, hooks) if name not in object.finalizers)]
            object = objects.keep_finalizers(self.store, object, every)
            for hook in hooks:
                object, done = self._finalized(hook, object, _types(hooks))
                ok = ok and done
            unknown = [name for name in object.finalizers if name not in map(_finalizer, hooks)]
            for name in unknown:
                error = f"its finalizer {name} exists, but no hook of that name is registered for this host"
                error += "; register it again, or pass --no-hooks"
                self.asking.enter(host, name.removeprefix(FINALIZER), FINALIZE, HookStatus.FAILED, error)
            if not object.finalizers:
                objects.forget(self.store, object)
        return Finalized(ok and not unknown, self.fired.get(host, [])[before:], object.finalizers)

    def _finalized(self, hook: Registration, object: Reconciled, types: Sequence[str]) -> tuple[Reconciled, bool]:
        """Call one hook; return the object, and whether this hook allows removing the resources."""
        reply, attempts = self.asking.ask(hook, FINALIZE, object, None, {})
        object = self._with_status(object, reply, types)
        if reply.error is None or reply.error.proceed:
            left = [name for name in object.finalizers if name != _finalizer(hook)]
            object = objects.keep_finalizers(self.store, object, left)
        try:
            self.asking.finish(hook, FINALIZE, object, reply, attempts)
        except HookFailure:
            return object, False
        return object, True

    def run_ended(self, host: str, playbook: str, ok: bool, message: str = "") -> None:
        """Store how the run of a playbook on a host ended: the conditions Applied and Ready."""
        if objects.get(self.store, playbook, host) is None:
            return
        with self._locked(host, playbook):
            object = objects.get(self.store, playbook, host)
            if object is not None:
                status = conditions.applied(object.status, ok, _types(self.hooks_of(host)), message)
                objects.keep_status(self.store, object, status)

    def forget(self, host: str, playbook: str) -> None:
        """Delete the object from the store without calling any hook (`--no-hooks`)."""
        with self._locked(host, playbook):
            object = objects.get(self.store, playbook, host)
            if object is not None:
                objects.forget(self.store, object)

    def _with_status(self, object: Reconciled, reply: Reply, types: Sequence[str]) -> Reconciled:
        """Store the status that a hook returned. Other changes of the object are ignored."""
        status = reply.object.get("status") if reply.object is not None else None
        if not isinstance(status, dict):
            return object
        return objects.keep_status(self.store, object, conditions.returned(status, object.status, types))

    def _locked(self, host: str, playbook: str) -> AbstractContextManager[object]:
        """Lock an object against reconciliation by other runs.

        :raises Busy: another run holds the lock too long
        """
        name = hashlib.sha256(f"{playbook}\0{host}".encode()).hexdigest()[:32]
        return locks.taken(self.store, f"object {name}", sum(hook.deadline for hook in self.hooks_of(host)))


def retry_due(store: Store, project: Project, now: float | None = None) -> list[OwedResult]:
    """Make the owed calls that are due; return their results.

    Only finalize is called. A pre-reconcile changes what a run applies, so the next apply calls it.

    :param now: calls that are due by then (seconds since 1970); by default the current time
    :raises InvalidInput: a registration or the inventory is wrong
    """
    due = objects.owed(store, time.time() if now is None else now)
    reconciler = Reconciler(store, files.load(project), uuid.uuid4().hex, dialects.inventory(project))
    results: list[OwedResult] = []
    finalized: set[tuple[str, str]] = set()  # host and playbook
    for item in due:
        calls: list[Fired] = []
        if item.phase == PRE_RECONCILE:
            error = f"{item.error}; an apply of {item.playbook} on {item.host} calls it again"
            calls = [fired(item.hook, item.phase, HookStatus.OWED, error)]
        elif (item.host, item.playbook) not in finalized:
            finalized.add((item.host, item.playbook))
            calls = reconciler.finalize(item.host, item.playbook).fired
        results += [{"host": item.host, "playbook": item.playbook, **call} for call in calls]
    return results


def _hosts_of(hooks: Iterable[Registration], inventory: Inventory) -> dict[str, set[str] | None]:
    """Return hook → its hosts, None for all hosts.

    :raises InvalidInput: a pattern is wrong
    """
    chosen: dict[str, set[str] | None] = {}
    problems: list[Problem] = []
    for hook in hooks:
        pattern = hook.select.hosts
        try:
            hosts = None if pattern is None else {host.name for host in inventory.select(pattern, None, hook.position)}
            chosen[hook.name] = hosts
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(problems)
    return chosen


def _finalizer(hook: Registration) -> str:
    return FINALIZER + hook.name


def _types(hooks: Iterable[Registration]) -> list[str]:
    """Return the types of conditions that hooks own."""
    return sorted({name for hook in hooks for name in http_of(hook).conditions if name not in conditions.OWN})
