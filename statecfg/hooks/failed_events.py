"""Failed hooks of a host's own events, as reports and commands show them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.hooks.output import ERROR
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log


def of(store: Store, queued: Mapping[int, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the failed hooks among queued calls, oldest first, each with its host.

    :param queued: position in the queue → the host's name
    """
    logged = hook_log.events(store, invocations=tuple(queued)) if queued else ()
    for event in reversed(logged):
        if (event.severity == ERROR or _not_run(event.entry)) and event.invocation is not None:
            yield queued[event.invocation], entry(event.hook or "", event.entry, event.detail)


def entry(hook: str, logged: Mapping[str, Any], detail: str) -> dict[str, str]:
    """Return a failed hook as in reports: `hook`, `event` and `error`."""
    why = logged.get("error") or detail or logged.get("msg") or "see its log"
    text = why.get("message") if isinstance(why, dict) else why
    return {"hook": hook, "event": str(logged.get("event", "")), "error": str(text or json.dumps(why)).strip()}


def _not_run(logged: Mapping[str, Any]) -> bool:
    """Return whether a log entry is about a program that was not executable."""
    return "exit_status" not in logged and "error" not in logged and "msg" in logged
