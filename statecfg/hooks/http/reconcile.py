"""What HTTP hooks mean for a playbook on a host: reshaped before it is applied, finalized before it is destroyed.

The order of things is that of TriggerMesh Scoby's reconciliation: conditions put right, children rendered, hooks called
with object and children, finalizers added, generation observed; then the children are applied, and say how it went.
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statecfg import dialects
from statecfg.hooks import waited
from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.http import conditions, exchange
from statecfg.hooks.http.address import AddressError, resolve
from statecfg.hooks.http.calls import FINALIZE, PRE_RECONCILE, Failure, Reply
from statecfg.hooks.http.children import Children
from statecfg.hooks.http.described import described, digest, leak
from statecfg.hooks.http.held import Held
from statecfg.hooks.registration import files
from statecfg.hooks.registration.model import HttpHook, Registration
from statecfg.problems import InvalidInput
from statecfg.remote.hooks.on_failure import RULES
from statecfg.run.hook_failure import HookFailure
from statecfg.store import Busy, objects
from statecfg.store.objects import Reconciled

if TYPE_CHECKING:
    from statecfg.graph.graph import Graph
    from statecfg.playbook.inventory import Host, Inventory
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store

SLOT = 0.34  # seconds: the first wait between two tries; the next ones are twice as long each
LONGEST_WAIT = 30.0
FINALIZER = "statecfg/"  # and the name of the hook

Json = dict[str, Any]


@dataclass(frozen=True)
class Finalized:
    """What became of the end of a playbook on a host.

    :param ok: whether the resources may go now
    :param fired: what was called, as reports have it
    :param left: finalizers that still stand
    """

    ok: bool
    fired: list[Json]
    left: list[str]


def wait_after(attempts: int) -> float:
    """Return the seconds to wait after so many tries that failed, 1 or more: 0.34, 0.68, … 30."""
    wait: float = SLOT * 2 ** min(attempts - 1, 16)
    return min(LONGEST_WAIT, wait)


class Reconciler:
    """Calls the HTTP hooks of a run.

    :param registrations: all of the project; those of other protocols are left alone
    :param run: the run's id
    :param inventory: what `select.hosts` selects from, and where a `Host` of an address is
    :param cancel: set to stop waiting between two tries
    :raises InvalidInput: a registration selects hosts that there are not
    """

    def __init__(
        self,
        store: Store,
        registrations: Iterable[Registration],
        run: str,
        inventory: Inventory,
        cancel: threading.Event | None = None,
    ) -> None:
        self.store, self.run, self.inventory = store, run, inventory
        self.cancel = cancel or threading.Event()
        self.fired: dict[str, list[Json]] = {}  # by host, as reports have it
        self.tell: Callable[[str], object] = len  # is told in a line what is waited for; by itself, nobody is
        self.addresses = {name: host.address or name for name, host in inventory.hosts.items()}
        self.hooks = [each for each in registrations if each.protocol == "http"]
        self.chosen = _hosts_of(self.hooks, inventory)

    def concerns(self, host: str) -> list[str]:
        """Return the names of the hooks that are called for a host."""
        return [hook.name for hook in self.hooks_of(host, PRE_RECONCILE, FINALIZE)]

    def hooks_of(self, host: str, *phases: str) -> list[Registration]:
        """Return the hooks that are called for a host, in order; with `phases`, those of one of them."""
        return [
            each
            for each in self.hooks
            if each.http is not None
            and (not phases or set(phases) & set(each.http.capabilities))
            and (self.chosen[each.name] is None or host in (self.chosen[each.name] or ()))
        ]

    def reshape(
        self, host: Host, playbook: str, graph: Graph, variables: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> Graph:
        """Return the graph of a host as its hooks want it.

        :param playbook: its name in the project
        :param graph: right as it is; what hooks make of it is checked again
        :param variables: those of the host in the playbook
        :param secrets: value of each secret that went into graph and variables, by name
        :raises HookFailure: a hook failed, and its policy is not to go on
        :raises InvalidInput: a hook returned children that no graph can be made of
        """
        hooks = self.hooks_of(host.name, PRE_RECONCILE, FINALIZE)
        if not hooks:
            return graph
        spec = {"host": host.name, "playbook": playbook, "vars": Held(secrets).shown(dict(variables))}
        definition = digest(spec, graph, secrets)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked(host.name, playbook))
            except Busy as error:
                text = f"another run reconciles it: {error.detail}"
                raise HookFailure(hooks[0].name, host.name, PRE_RECONCILE, text, None) from None
            known = objects.ensure(self.store, playbook, host.name, spec, definition)
            known = objects.keep_status(self.store, known, conditions.sanitised(known.status, _types(hooks)))
            for hook in hooks:
                if PRE_RECONCILE in _http(hook).capabilities:
                    known, graph = self._reshaped(hook, known, graph, secrets, _types(hooks))
                if FINALIZE in _http(hook).capabilities and _finalizer(hook) not in known.finalizers:
                    known = objects.keep_finalizers(self.store, known, [*known.finalizers, _finalizer(hook)])
            status = {**known.status, "observedGeneration": known.generation}
            objects.keep_status(self.store, known, status)
        return graph

    def _reshaped(
        self, hook: Registration, known: Reconciled, graph: Graph, secrets: Mapping[str, str], types: Sequence[str]
    ) -> tuple[Reconciled, Graph]:
        children = Children(graph, hook, secrets)
        reply, tries = self._asked(hook, PRE_RECONCILE, known, children.sent, secrets)
        if reply.error is None:
            known = self._with_status(known, reply, types)
        if reply.error is None and reply.children is not None:
            try:
                graph = children.replaced(reply.children)
            except InvalidInput as error:
                first = error.problems[0]
                reply = Reply(error=Failure(first.detail, permanent=True))
                if not RULES[hook.on_failure].continues:
                    self._note(hook, PRE_RECONCILE, known, "failed", first.detail)
                    raise
        self._judged(hook, PRE_RECONCILE, known, reply, tries)
        return known, graph

    def finalize(self, host: str, playbook: str) -> Finalized:
        """Tell the hooks that a playbook on a host comes to its end, before its resources are removed.

        A finalizer stands until its hook has succeeded, or said to go on; when none stands any more, the object is
        gone. One of a hook that is registered no more stands until the hook is registered again, or `forget` is called.
        """
        hooks = self.hooks_of(host, FINALIZE)
        ok, before = True, len(self.fired.get(host, ()))
        with self._locked(host, playbook):
            known = objects.get(self.store, playbook, host)
            if known is None:
                return Finalized(True, [], [])
            known = objects.delete_asked(self.store, known)
            known = objects.keep_status(self.store, known, conditions.sanitised(known.status, _types(hooks)))
            # A hook that was registered after the last apply is asked as well.
            every = [*known.finalizers, *(name for name in map(_finalizer, hooks) if name not in known.finalizers)]
            known = objects.keep_finalizers(self.store, known, every)
            for hook in hooks:
                reply, tries = self._asked(hook, FINALIZE, known, None, {})
                known = self._with_status(known, reply, _types(hooks))
                if reply.error is None or reply.error.proceed:
                    left = [name for name in known.finalizers if name != _finalizer(hook)]
                    known = objects.keep_finalizers(self.store, known, left)
                try:
                    self._judged(hook, FINALIZE, known, reply, tries)
                except HookFailure:
                    ok = False
            unknown = [name for name in known.finalizers if name not in map(_finalizer, hooks)]
            for name in unknown:
                error = f"its finalizer {name} stands, and no hook of that name is registered for this host"
                error += "; register it again, or pass --no-hooks"
                self._enter(host, name.removeprefix(FINALIZER), FINALIZE, "failed", error)
            if not known.finalizers:
                objects.forget(self.store, known)
        return Finalized(ok and not unknown, self.fired.get(host, [])[before:], known.finalizers)

    def settled(self, host: str, playbook: str, ok: bool, message: str = "") -> None:
        """Enter how the run of a playbook on a host ended: the conditions Applied and Ready."""
        if objects.get(self.store, playbook, host) is None:
            return
        with self._locked(host, playbook):
            known = objects.get(self.store, playbook, host)
            if known is not None:
                status = conditions.applied(known.status, ok, _types(self.hooks_of(host)), message)
                objects.keep_status(self.store, known, status)

    def forget(self, host: str, playbook: str) -> None:
        """Take the object out of the store without calling any hook, as `--no-hooks` has it."""
        with self._locked(host, playbook):
            known = objects.get(self.store, playbook, host)
            if known is not None:
                objects.forget(self.store, known)

    # One hook

    def _asked(
        self,
        hook: Registration,
        phase: str,
        known: Reconciled,
        children: Mapping[str, Any] | None,
        secrets: Mapping[str, str],
    ) -> tuple[Reply, int]:
        """Return the last reply of a hook, and how often it was asked: again and again where its policy is retry."""
        given = described(self.store, known)
        wrong = leak(given, children, secrets)
        if wrong is not None:
            return Reply(error=Failure(wrong, permanent=True)), 0
        try:
            url = resolve(_http(hook), self.addresses)
        except AddressError as error:
            return Reply(error=Failure(str(error), permanent=True)), 0
        exchange.ready()
        key = hashlib.sha256("\0".join((self.run, hook.name, known.host, known.playbook, phase)).encode()).hexdigest()
        end = time.monotonic() + hook.deadline
        tries = 0
        while True:
            left = max(end - time.monotonic(), 0.1)
            own = _http(hook).timeout
            seconds = min(own, left) if own > 0 else left
            what = waited.text(hook.name, phase, "", tries + 1, seconds)
            with waited.telling(self.tell, f"{known.host}: {what}"):
                reply = http_hooks.call(url, seconds, _http(hook).form_factor, phase, given, children, key[:32])
            tries += 1
            failed, wait = reply.error, wait_after(tries)
            if failed is None or failed.proceed or failed.permanent or not RULES[hook.on_failure].repeats:
                return reply, tries
            if time.monotonic() + wait >= end or self.cancel.wait(wait):
                return reply, tries

    def _judged(self, hook: Registration, phase: str, known: Reconciled, reply: Reply, tries: int) -> None:
        """Enter what came of a call, and what is owed from it. Raises HookFailure where the policy is not to go on."""
        error = reply.error
        if error is None or error.proceed or error.permanent:
            objects.settle(self.store, known, hook.name, phase)
        if error is None:
            self._note(hook, phase, known, "ok")
            return
        message = error.message or "it gave no message"
        goes_on = error.proceed or RULES[hook.on_failure].continues
        again = None
        if not error.proceed and not error.permanent:
            owed = objects.owe(self.store, known, hook.name, phase, tries, wait_after(max(tries, 1)), message)
            again = owed.next
        self._note(hook, phase, known, "continued" if goes_on else "owed" if again is not None else "failed", message)
        if not goes_on:
            raise HookFailure(hook.name, known.host, phase, message, again)

    def _with_status(self, known: Reconciled, reply: Reply, types: Sequence[str]) -> Reconciled:
        """Keep the status that a hook returned; of the object, nothing else is ever taken."""
        status = reply.object.get("status") if reply.object is not None else None
        if not isinstance(status, dict):
            return known
        return objects.keep_status(self.store, known, conditions.returned(status, known.status, types))

    def _locked(self, host: str, playbook: str) -> AbstractContextManager[object]:
        """Lock an object against reconciliation by other runs. Raises Busy if another run holds the lock too long."""
        name = hashlib.sha256(f"{playbook}\0{host}".encode()).hexdigest()[:32]
        return self.store.lock(f"object {name}", sum(hook.deadline for hook in self.hooks_of(host)))

    def _note(self, hook: Registration, phase: str, known: Reconciled, status: str, error: str = "") -> None:
        entry = self._enter(known.host, hook.name, phase, status, error)
        severity = {"ok": "info", "continued": "warn"}.get(status, "error")
        objects.log(self.store, known, severity, {key: value for key, value in entry.items() if value is not None})

    def _enter(self, host: str, hook: str, phase: str, status: str, error: str) -> Json:
        entry = _fired(hook, phase, status, error)
        self.fired.setdefault(host, []).append(entry)
        return entry


def retry_due(store: Store, project: Project, now: float | None = None) -> list[Json]:
    """Make the calls that are owed and due; return what came of each, as reports have it, with `host` and `playbook`.

    A finalize is called. A pre-reconcile shapes what a run applies, so it is left to the next apply, and said to be.

    :param now: what is due by then (seconds since 1970); None: by now
    :raises InvalidInput: a registration or the inventory is wrong
    """
    due = objects.owed(store, time.time() if now is None else now)
    reconciler = Reconciler(store, files.load(project), uuid.uuid4().hex, dialects.inventory(project))
    found: list[Json] = []
    for item in due:
        about = {"host": item.host, "playbook": item.playbook}
        if item.phase == PRE_RECONCILE:
            error = f"{item.error}; an apply of {item.playbook} on {item.host} asks it again"
            found.append({**about, **_fired(item.hook, item.phase, "owed", error)})
        elif not any(known.items() >= {**about, "event": FINALIZE}.items() for known in found):
            fired = reconciler.finalize(item.host, item.playbook).fired
            found += [{**about, **each} for each in fired]
    return found


def _fired(hook: str, phase: str, status: str, error: str) -> Json:
    """Return what came of a call, as reports have it."""
    entry: Json = {"hook": hook, "event": phase, "name": None, "where": "controller", "status": status}
    return {**entry, "error": error} if error else entry


def _hosts_of(hooks: Iterable[Registration], inventory: Inventory) -> dict[str, set[str] | None]:
    """Return, by the name of a hook, the hosts it is for; None for all. Raises InvalidInput."""
    chosen: dict[str, set[str] | None] = {}
    wrong = []
    for hook in hooks:
        pattern = hook.select.hosts
        try:
            found = None if pattern is None else {host.name for host in inventory.select(pattern, None, hook.position)}
            chosen[hook.name] = found
        except InvalidInput as error:
            wrong += error.problems
    if wrong:
        raise InvalidInput(wrong)
    return chosen


def _http(hook: Registration) -> HttpHook:
    assert hook.http is not None
    return hook.http


def _finalizer(hook: Registration) -> str:
    return FINALIZER + hook.name


def _types(hooks: Iterable[Registration]) -> list[str]:
    """Return the types of conditions that hooks own."""
    return sorted({name for hook in hooks for name in _http(hook).conditions if name not in conditions.OWN})
