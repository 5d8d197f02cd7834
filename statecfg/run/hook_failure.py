"""The failure of a hook that ends a host's run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import Mode


class HookFailure(StatecfgError):
    """A hook failed, and its policy ends the host's run before anything was changed.

    :param hook: its name
    :param host: whose run it ends
    :param phase: "pre-reconcile" or "finalize"
    :param message: why
    :param again: when it is to be tried again (seconds since 1970); None: never by itself
    """

    def __init__(self, hook: str, host: str, phase: str, message: str, again: float | None) -> None:
        self.hook, self.host, self.phase, self.message, self.again = hook, host, phase, message, again
        super().__init__(f"{phase} of the hook {hook}: {message}")


class Called(Protocol):
    """Who knows which hooks were called for a host as a whole."""

    def due(self, host: str) -> list[dict[str, Any]]:
        """Return the hooks of units that are due on a host."""

    def at_once(self, host: str) -> tuple[str, list[dict[str, Any]]]:
        """Return the key of a report and the hooks."""

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Return by host the hooks of the host's own events that failed."""


def complete(report: Mapping[str, Any], failed: Iterable[HookFailure], events: Called | None) -> dict[str, Any]:
    """Return a report with what hooks did before the hosts were talked to, or would do.

    :param failed: the hooks that ended a host's run before it began
    :param events: knows what else was called; None where no hook was
    """
    hosts = {name: dict(host) for name, host in report["hosts"].items()}
    for failure in failed:
        again = "" if failure.again is None else "The next apply asks it again."
        error = {"summary": str(failure), "detail": "Nothing was changed.", "hint": again}
        hosts[failure.host] = {"status": "failed", "layers": [], "summary": {}, "error": error}
    if events is not None:
        for name, wrong in events.failed_events().items():
            if name in hosts:
                hosts[name]["host_hooks"] = wrong
        for name, host in hosts.items():
            key, called = events.at_once(name)
            if called:
                host[key] = [*called, *host.get(key, ())]
            due = events.due(name) if report["mode"] == Mode.PLAN else []
            if due:
                host["units"] = due
    return {**report, "hosts": hosts}
