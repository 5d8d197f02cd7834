"""The failure rules of hooks, and what each of them means. To add a rule, add it here and to `docs/hooks.md`."""

from __future__ import annotations

from typing import Dict

from statecfg.remote.graph.names import HookStatus

ABORT, CONTINUE, RETRY = "abort", "continue", "retry"


class FailureRule:
    """What follows if a hook fails.

    :param status: how the failed hook ended (`HookStatus`): FAILED stops the host's run, OWED repeats the event in the
        next run
    :param repeats: an HTTP hook is called again until its deadline
    """

    __slots__ = ("repeats", "status")

    def __init__(self, status: str, repeats: bool = False) -> None:
        self.status, self.repeats = status, repeats

    @property
    def continues(self) -> bool:
        """Whether the host's run continues as if the hook had succeeded."""
        return self.status == HookStatus.CONTINUED


RULES: Dict[str, FailureRule] = {
    ABORT: FailureRule(HookStatus.FAILED),
    CONTINUE: FailureRule(HookStatus.CONTINUED),
    RETRY: FailureRule(HookStatus.OWED, repeats=True),
}
