"""The failure of a hook that ends the run on a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run.report_model import Report, Unit


class HookFailure(StatecfgError):
    """A hook failed, and its failure rule ends the run on a host before any change.

    :param hook: name of the hook
    :param host: name of the host
    :param phase: "pre-reconcile" or "finalize"
    :param message: the reason
    :param again: time of the next attempt in seconds since 1970; None if statecfg does not retry it
    """

    def __init__(self, hook: str, host: str, phase: str, message: str, again: float | None) -> None:
        self.hook, self.host, self.phase, self.message, self.again = hook, host, phase, message, again
        super().__init__(f"{phase} of the hook {hook}: {message}")


class Called(Protocol):
    """The interface that knows which hooks were called for a host as a whole."""

    def due(self, host: str) -> list[Unit]:
        """Return the hooks of units that are due on a host."""

    def at_once(self, host: str) -> tuple[str, Sequence[Mapping[str, Any]]]:
        """Return the key of the report, and the hooks that were or would be called for the host as a whole."""

    def waits_for_hooks(self, host: str) -> bool:
        """Return whether hooks of the host's own events were called, which may still fail."""

    def failed_events(self) -> dict[str, list[dict[str, str]]]:
        """Return host → the failed hooks of the host's own events."""


def complete(report: Report, failed: Iterable[HookFailure], events: Called | None) -> Report:
    """Return a report with the hooks that were or would be called outside of host sessions.

    :param failed: the hooks that ended a host's run before it began
    :param events: knows which other hooks were called; None if there were none
    """
    hosts: dict[str, Any] = {name: dict(host) for name, host in report["hosts"].items()}
    for failure in failed:
        again = "" if failure.again is None else "The next apply asks it again."
        error = {"summary": str(failure), "detail": "Nothing was changed.", "hint": again}
        hosts[failure.host] = {"status": HostStatus.FAILED, "layers": [], "summary": {}, "error": error}
    if events is not None:
        for name, hooks in events.failed_events().items():
            if name in hosts:
                hosts[name]["host_hooks"] = hooks
        for name, host in hosts.items():
            add_called(host, name, report["mode"], events)
    return {**report, "hosts": hosts}


def add_called(host: Any, name: str, mode: str, events: Called) -> None:
    """Add to the report of a host the hooks that were or would be called for the host as a whole."""
    key, called = events.at_once(name)
    if called:
        host[key] = [*called, *host.get(key, ())]
    due = events.due(name) if mode in (Mode.PLAN, Mode.VERIFY) else []
    if due:
        host["units"] = due
