"""The answers of HTTP hooks that a plan uses: of a dry run where a service declares it, otherwise the last ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from statecfg.graph.graph import Graph
from statecfg.hooks.http import calls, exchange
from statecfg.hooks.http.address import AddressError, resolve
from statecfg.hooks.http.asking import HookCall, http_of
from statecfg.hooks.http.calls import PRE_RECONCILE, Failure, Reply
from statecfg.hooks.http.children import HookChildren
from statecfg.hooks.http.described import described_new, leak
from statecfg.hooks.http.held import Held
from statecfg.hooks.registration.model import Registration
from statecfg.playbook.inventory import Host, Inventory
from statecfg.problems import InvalidInput
from statecfg.store import answers
from statecfg.store.answers import Children, LastAnswer
from statecfg.store.database import Store

DRY_RUN, LAST, FAILED, UNKNOWN = "dry-run", "last", "failed", "unknown"


def applied(sent: Mapping[str, Any], answer: LastAnswer) -> dict[str, Any]:
    """Return the children that a hook would return now, if it changed them as in an earlier answer.

    :param sent: the children that it would receive now
    """
    result = dict(sent)
    for key, child in answer.children.items():
        if key in answer.sent and key in sent:
            result[key] = _changed(sent[key], answer.sent[key], child)
        elif key not in answer.sent and key not in sent:
            result[key] = child
    return result


def _changed(now: Any, before: Any, after: Any) -> Any:
    """Return a value with the changes from `before` to `after`, field by field."""
    if now == before or not all(isinstance(value, dict) for value in (now, before, after)):
        return now if after == before else after
    result = {key: value for key, value in now.items() if key in after or key not in before}
    for key, value in after.items():
        if key not in before or before[key] != value:
            result[key] = _changed(now[key], before[key], value) if key in now and key in before else value
    return result


class Foreseen:
    """Changes graphs like the HTTP hooks of a run, for a plan.

    :param hooks: the registrations of HTTP hooks
    :param within: tells whether a hook is called for a host
    :param opened: opens the store; None if there is none yet
    :ivar calls: host → the hooks that an apply would call, and which answer the plan uses
    """

    unsure: frozenset[str] = frozenset()

    def __init__(
        self,
        hooks: Iterable[Registration],
        within: Callable[[Registration, str], bool],
        inventory: Inventory,
        opened: Callable[[], AbstractContextManager[Store]] | None,
    ) -> None:
        self.hooks = [hook for hook in hooks if PRE_RECONCILE in http_of(hook).capabilities]
        self.within, self.opened = within, opened
        self.addresses = {name: host.address or name for name, host in inventory.hosts.items()}
        self.calls: dict[str, list[HookCall]] = {}
        self._reading = threading.Lock()

    def concerns(self, host: str) -> list[str]:
        """Return the names of the hooks that are called for a host."""
        return [hook.name for hook in self.hooks if self.within(hook, host)]

    def reshape(
        self, host: Host, playbook: str, graph: Graph, variables: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> Graph:
        """Return the graph of a host as its hooks would probably change it; see `Reconciler.reshape`."""
        spec = {"host": host.name, "playbook": playbook, "vars": Held(secrets).to_json(dict(variables))}
        called: list[HookCall] = []
        for hook in (hook for hook in self.hooks if self.within(hook, host.name)):
            children = HookChildren(graph, hook, secrets)
            answer, about = self._answer(hook, host.name, playbook, spec, children, secrets)
            if answer is not None:
                try:
                    graph = children.replaced(answer)
                except InvalidInput:
                    about = {"answer": FAILED}
            call: HookCall = {"hook": hook.name, "event": PRE_RECONCILE, "name": "", "where": "controller"}
            called.append({**call, **about})  # type: ignore[typeddict-item]  # the keys of `_answer`
        self.calls[host.name] = called
        return graph

    def _answer(
        self,
        hook: Registration,
        host: str,
        playbook: str,
        spec: Mapping[str, Any],
        children: HookChildren,
        secrets: Mapping[str, str],
    ) -> tuple[Children | None, dict[str, Any]]:
        """Return the children that a hook would return, None if they are unknown; and what reports say about it."""
        error = ""
        if http_of(hook).dry_run:
            reply = self._dry_run(hook, host, playbook, spec, children, secrets)
            if reply.error is None:
                return reply.children or children.sent, {"answer": DRY_RUN}
            error = reply.error.message
        # SQLite: the store is opened for each answer, because its connections belong to one thread.
        with self._reading, self.opened() if self.opened is not None else nullcontext() as store:
            answer = None if store is None else answers.last(store, playbook, host, hook.name)
        about = {"error": error} if error else {}
        if answer is None:
            return None, {"answer": UNKNOWN, **about}
        return applied(children.sent, answer), {"answer": LAST, "at": answer.at, **about}

    def _dry_run(
        self,
        hook: Registration,
        host: str,
        playbook: str,
        spec: Mapping[str, Any],
        children: HookChildren,
        secrets: Mapping[str, str],
    ) -> Reply:
        """Ask a service what it would answer. It has declared that it changes nothing then."""
        sent = described_new(playbook, host, spec, time.time())
        refusal = leak(sent, children.sent, secrets)
        if refusal is not None:
            return Reply(error=Failure(refusal))
        try:
            url = resolve(http_of(hook), self.addresses)
        except AddressError as error:
            return Reply(error=Failure(str(error)))
        exchange.ready()
        own = http_of(hook).timeout
        seconds = min(own, hook.deadline) if own > 0 else hook.deadline
        body = calls.request(http_of(hook).form_factor, PRE_RECONCILE, sent, children.sent, dry_run=True)
        return calls.sent(url, seconds, body, PRE_RECONCILE)
