"""Calls one HTTP hook for a playbook on a host: retries, logs the result, and stores owed calls."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import NotRequired, TypedDict

from statecfg.hooks import waited
from statecfg.hooks.http import calls, exchange
from statecfg.hooks.http.address import AddressError, resolve
from statecfg.hooks.http.calls import Failure, Reply
from statecfg.hooks.http.children import Child
from statecfg.hooks.http.described import described, leak
from statecfg.hooks.registration.model import HttpHook, Registration
from statecfg.playbook.inventory import Inventory
from statecfg.remote.graph.names import HookStatus
from statecfg.remote.graph.on_failure import RULES
from statecfg.run.hook_failure import HookFailure
from statecfg.store import objects
from statecfg.store.database import Store
from statecfg.store.objects import Reconciled

SLOT = 0.34  # seconds: the first wait between two attempts; each further wait is twice as long
LONGEST_WAIT = 30.0
NO_MESSAGE = "the hook gave no message"


class HookCall(TypedDict):
    """A hook that is called for an event, as in reports. `name` is the resource; None or "" for the host as a whole."""

    hook: str
    event: str
    name: str | None
    where: str
    answer: NotRequired[str]
    at: NotRequired[float]


class Fired(HookCall):
    """A hook that was called, as in reports."""

    status: str
    error: NotRequired[str]


class Asking:
    """Calls the HTTP hooks of a run.

    :param run: the run's id
    :param inventory: has the addresses of hosts
    :param cancel: set when the user stops the run
    """

    def __init__(self, store: Store, run: str, inventory: Inventory, cancel: threading.Event) -> None:
        self.store, self.run, self.cancel = store, run, cancel
        self.addresses = {name: host.address or name for name, host in inventory.hosts.items()}
        self.fired: dict[str, list[Fired]] = {}  # by host
        self.tell: Callable[[str], object] = len  # receives a line about the hook that the run waits for

    def ask(
        self,
        hook: Registration,
        phase: str,
        object: Reconciled,
        children: Mapping[str, Child] | None,
        secrets: Mapping[str, str],
    ) -> tuple[Reply, int]:
        """Return the last reply of a hook, and the number of attempts. The failure rule decides whether it is
        retried."""
        sent = described(self.store, object)
        refusal = leak(sent, children, secrets)
        if refusal is not None:
            return Reply(error=Failure(refusal, permanent=True)), 0
        try:
            url = resolve(http_of(hook), self.addresses)
        except AddressError as error:
            return Reply(error=Failure(str(error), permanent=True)), 0
        exchange.ready()
        key = hashlib.sha256("\0".join((self.run, hook.name, object.host, object.playbook, phase)).encode()).hexdigest()
        end = time.monotonic() + hook.deadline
        attempts = 0
        while True:
            left = max(end - time.monotonic(), 0.1)
            own = http_of(hook).timeout
            seconds = min(own, left) if own > 0 else left
            text = waited.text(hook.name, phase, "", attempts + 1, seconds)
            with waited.telling(self.tell, f"{object.host}: {text}"):
                reply = calls.call(url, seconds, http_of(hook).form_factor, phase, sent, children, key[:32])
            attempts += 1
            failed, wait = reply.error, wait_after(attempts)
            if failed is None or failed.proceed or failed.permanent or not RULES[hook.on_failure].repeats:
                return reply, attempts
            if time.monotonic() + wait >= end or self.cancel.wait(wait):
                return reply, attempts

    def finish(self, hook: Registration, phase: str, object: Reconciled, reply: Reply, attempts: int) -> None:
        """Log the result of a call, and store an owed call.

        :raises HookFailure: the run must not continue
        """
        error = reply.error
        if error is None or error.proceed or error.permanent:
            objects.forget_owed(self.store, object, hook.name, phase)
        if error is None:
            self.log(hook, phase, object, HookStatus.OK)
            return
        message = error.message or NO_MESSAGE
        continues = error.proceed or RULES[hook.on_failure].continues
        again = None
        if not error.proceed and not error.permanent:
            wait = wait_after(max(attempts, 1))
            again = objects.owe(self.store, object, hook.name, phase, attempts, wait, message).next
        status = HookStatus.CONTINUED if continues else HookStatus.OWED if again is not None else HookStatus.FAILED
        self.log(hook, phase, object, status, message)
        if not continues:
            raise HookFailure(hook.name, object.host, phase, message, again)

    def log(self, hook: Registration, phase: str, object: Reconciled, status: str, error: str = "") -> None:
        """Add the result of a call to the report and to the log."""
        entry = self.enter(object.host, hook.name, phase, status, error)
        severity = {HookStatus.OK: "info", HookStatus.CONTINUED: "warn"}.get(status, "error")
        objects.log(self.store, object, severity, {key: value for key, value in entry.items() if value is not None})

    def enter(self, host: str, hook: str, phase: str, status: str, error: str) -> Fired:
        """Add the result of a call to the report; return the entry."""
        entry = fired(hook, phase, status, error)
        self.fired.setdefault(host, []).append(entry)
        return entry


def wait_after(attempts: int) -> float:
    """Return the seconds to wait after this number of failed attempts, 1 or more: 0.34, 0.68, … 30."""
    wait: float = SLOT * 2 ** min(attempts - 1, 16)
    return min(LONGEST_WAIT, wait)


def fired(hook: str, phase: str, status: str, error: str) -> Fired:
    """Return the result of a call as in reports."""
    entry: Fired = {"hook": hook, "event": phase, "name": None, "where": "controller", "status": status}
    return {**entry, "error": error} if error else entry


def http_of(hook: Registration) -> HttpHook:
    """Return how an HTTP hook is called."""
    assert hook.http is not None
    return hook.http
