"""What the user agreed to, and the errors of hosts that did nothing for another reason."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.names import HostStatus
from statecfg.run.host import frames
from statecfg.run.report_model import HostData, HostError

_HELD: HostError = {
    "summary": "another run has locked this host",
    "detail": "",
    "hint": "Wait until it ends, or use --lock-timeout SECONDS.",
}
_REBOOTS: HostError = {
    "summary": "another run reboots this host, and has reserved it until it continues",
    "detail": "",
    "hint": "Wait until it ends, or use --lock-timeout SECONDS. If the controller of that run is gone, delete the file"
    " `lock` in the state directory of the host: /var/lib/statecfg/lock for root.",
}
_STALE: HostError = {
    "summary": "its plan has changed; nothing was applied",
    "detail": "",
    "hint": "Plan again, review the new plan, and apply it.",
}
_REFUSED: HostError = {"summary": "", "detail": "Nothing was changed on this host.", "hint": ""}
CANCELLED: HostError = {"summary": "not started: the run was stopped first", "detail": "", "hint": ""}
COMPARED = {"hooks": "hooks", "owed": "owed restarts"}  # part of a plan without fingerprints → its name in messages


class Agreement:
    """The plan of one host that the user agreed to.

    :ivar shown: the plan of an earlier session, if the user saw that one
    :ivar declined: the part of the report for a plan that statecfg declines itself
    """

    def __init__(self) -> None:
        self.shown: HostData | None = None
        self.declined: Any = None

    def broken(self, plan: HostData, cancelled: bool) -> bool:
        """Return whether statecfg declines a plan itself, and note why. The host compares the nodes itself.

        :param plan: the plan of the current session
        :param cancelled: whether the user stops the run
        """
        if cancelled:
            self.declined = {"status": HostStatus.CANCELLED, "error": CANCELLED}
        elif self.shown is not None:
            shown: Mapping[str, Any] = self.shown
            differs = [name for key, name in COMPARED.items() if shown.get(key) != plan.get(key)]
            if differs:
                self.declined = {"status": HostStatus.REFUSED, "error": _STALE, "differs": differs}
        return self.declined is not None


def error(end: frames.EndFrame, holder: Mapping[str, Any]) -> HostError | None:
    """Return the error that the `end` frame of a host describes, None if there is none.

    :param holder: who holds the lock of the host
    """
    if end.error:
        return {"summary": end.error, "detail": end.trace, "hint": end.hint}
    if end.refusal:
        return {**_REFUSED, "summary": end.refusal}
    if end.status == HostStatus.REFUSED:
        return {**_STALE, "detail": _holder(holder)}
    if end.status == HostStatus.LOCKED:
        return {**(_REBOOTS if holder.get("until") else _HELD), "detail": _holder(holder)}
    return None


def _holder(holder: Mapping[str, Any]) -> str:
    """Return who holds a host's lock, in words. The values come from the host."""
    when = "".join(
        f", {word} {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(moment))}"
        for word, moment in (("since", holder.get("since")), ("until", holder.get("until")))
        if isinstance(moment, int | float) and 0 < moment < 1e11
    )
    return f"{holder.get('who') or 'an unknown user'}{when}, run {holder.get('run') or 'unknown'}" if holder else ""
