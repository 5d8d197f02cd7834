"""The types of reports, format 1. `docs/report.md` explains every field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from statecfg.remote.machine import changes
    from statecfg.remote.run import report
    from statecfg.store.left_hosts import LeftHost

    Change = changes.Change
    Action = report.ActionReport
    Node = report.NodeReport
else:
    # The executor declares these only for type checkers, because hosts don't import `typing`.
    Change = Action = Node = dict

FORMAT = 1


class HostError(TypedDict):
    """What went wrong with a host as a whole."""

    summary: str
    detail: str
    hint: str


class ResourceHook(TypedDict):
    """A hook around a resource that an apply would call, or called. `name` is the resource, "" for the playbook."""

    hook: str
    event: str
    name: str
    where: NotRequired[str]
    status: NotRequired[str]
    error: NotRequired[str]
    severity: NotRequired[str]
    entry: NotRequired[Any]
    answer: NotRequired[str]
    at: NotRequired[float]


class UnitHook(TypedDict):
    """A hook of a unit that is due or ran.

    :ivar missing: whether the charm does not have a due hook
    :ivar status: of a hook that ran: "ok", "missing" or "failed"
    """

    hook: str
    unit: NotRequired[str]
    relation: NotRequired[str]
    remote: NotRequired[str]
    missing: NotRequired[bool]
    status: NotRequired[str]
    seconds: NotRequired[float]
    error: NotRequired[str]


class Unit(TypedDict):
    """A unit on a host.

    :ivar made_of: in a plan, a digest of its charm and settings
    :ivar due: in a plan, the hooks that are due
    :ivar change: what happens to it, or happened: "remove" (with its directory and the data in it) or "upgrade" (the
        files of its charm are replaced)
    :ivar hooks: in an apply, the hooks that ran
    :ivar settled: False if hooks kept triggering each other without end
    """

    unit: str
    service: str
    made_of: NotRequired[str]
    due: NotRequired[list[UnitHook]]
    state: NotRequired[str]
    hooks: NotRequired[list[UnitHook]]
    settled: NotRequired[bool]
    error: NotRequired[str]
    change: NotRequired[str]


class OwedTrigger(TypedDict):
    """A trigger that an earlier, interrupted run left."""

    node: str
    cause: str
    since: NotRequired[float]
    run: NotRequired[str]


class HostData(TypedDict):
    """A host. `status` is one of `HostStatus`, `summary` counts the nodes by outcome."""

    status: str
    layers: list[list[Node]]
    summary: dict[str, int]
    removals: NotRequired[list[list[Node]]]
    left: NotRequired[list[list[Node]]]
    error: NotRequired[HostError]
    refusal: NotRequired[str]
    hooks: NotRequired[list[ResourceHook]]
    units: NotRequired[list[Unit]]
    host_hooks: NotRequired[list[Mapping[str, Any]]]
    fired: NotRequired[list[ResourceHook]]
    ledger: NotRequired[str]
    history: NotRequired[list[Mapping[str, Any]]]
    revealed: NotRequired[str]
    managed: NotRequired[list[Mapping[str, Any]]]
    owners: NotRequired[dict[str, int]]
    warnings: NotRequired[list[str]]
    owed: NotRequired[list[OwedTrigger]]
    shutdown: NotRequired[list[Action]]
    down: NotRequired[list[str]]
    login: NotRequired[Mapping[str, Any]]
    halted: NotRequired[str]
    declined: NotRequired[bool]
    differs: NotRequired[list[str]]
    holder: NotRequired[Mapping[str, Any]]
    facts: NotRequired[Mapping[str, Any]]
    collected: NotRequired[Mapping[str, Any]]
    fingerprints: NotRequired[dict[str, str]]
    peer: NotRequired[str]


class Report(TypedDict):
    """The report of a run. `mode` is one of `Mode`."""

    format: int
    run: str
    mode: str
    playbook: str
    hosts: dict[str, HostData]
    left_hosts: NotRequired[list[LeftHost]]


def make_report(run: str, mode: str, playbook: str, hosts: dict[str, HostData]) -> Report:
    """Return a report. Every report begins with these fields."""
    return {"format": FORMAT, "run": run, "mode": mode, "playbook": playbook, "hosts": hosts}
