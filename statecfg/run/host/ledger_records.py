"""What a host's ledger contains, as the host sends it."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.run.strict import Strict


class EarlierAction(Strict):
    """An action of an earlier run, from the host's ledger."""

    node: str
    op: str
    status: str
    reason: str


class Past(Strict):
    """An earlier run, from the host's ledger."""

    run: str
    started: float
    mode: str
    who: str
    playbook: str
    status: str
    summary: Mapping[str, int]
    ended: float | None = None
    outcomes: Mapping[str, str] | None = None
    actions: tuple[EarlierAction, ...] | None = None


class ManagedResource(Strict):
    """A managed resource, from the host's ledger."""

    playbook: str
    type: str
    state: str
    since: float
    first_run: str
    last_run: str
    position: str
    protect: int
