"""The frames that a host may send, each as a frozen class, read strictly. See `remote/wire/frames.py` for the executor.

Controller and executor have the same version, because the controller sends the executor. So an unknown key never
comes from another version: it means that the host does not run our executor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from statecfg.remote.graph.names import ActionStatus, HookStatus, HostStatus, Outcome, State
from statecfg.remote.units.settings import MOST as MOST_SETTINGS
from statecfg.run.host.ledger_records import ManagedResource, Past
from statecfg.run.strict import Free, OneOf, Strict

FACTS = 256 << 10  # bytes of memory for the facts of a host
COLLECTED = 8 << 20  # bytes of memory for the facts that a definition uses
HOOK = 8 << 20  # bytes of memory for the result of one hook, and for the attributes of its resource
SETTINGS = 4 * MOST_SETTINGS  # bytes of memory for the changes of a unit's hook; `MOST_SETTINGS` counts bytes of JSON
ARGUMENTS = 4 << 20  # bytes of memory for the arguments of an action, and for each side of a change
HELD_BY = 16 << 10  # bytes of memory for the data that the holder of a host's lock wrote about itself

Part = Literal["removals", "layers", "left"]
Where = Literal["host", "controller"]


class ReportedAction(Strict):
    """An action of a node, planned or finished."""

    op: str
    args: Annotated[Mapping[str, Any], Free(ARGUMENTS, map=True)]
    status: Annotated[str, OneOf(ActionStatus.ALL)]
    reason: str | None = None
    log: str | None = None


class Shutdown(ReportedAction):
    """A shutdown-first action and its node."""

    node: str = ""


class ReportedChange(Strict):
    """One field that a node changes."""

    object: str
    field: str
    before: Annotated[Any, Free(ARGUMENTS)] = None
    after: Annotated[Any, Free(ARGUMENTS)] = None
    diff: str | None = None


class ReportedNode(Strict):
    """A node with the actions that a host plans or has executed."""

    name: str
    type: str
    outcome: Annotated[str, OneOf(Outcome.ALL)]
    changes: tuple[ReportedChange, ...]
    actions: tuple[ReportedAction, ...]
    position: str
    reason: str | None = None
    known_after: str | None = None
    declared: Annotated[Mapping[str, Any], Free(ARGUMENTS, map=True)] | None = None
    excluded: str | None = None
    item_of: str | None = None
    shutdown_first: ReportedAction | None = None
    triggered_by: tuple[str, ...] = ()
    state: Annotated[str, OneOf(State.ALL)] | None = None
    drift: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    stays: bool = False
    kept: bool = False


class ReportedDebt(Strict):
    """A trigger that an earlier run owes."""

    node: str
    cause: str
    since: float
    run: str


class PlannedHook(Strict):
    """A hook that an apply would call."""

    hook: str
    event: str
    name: str
    where: Where


# Frames


class Frame(Strict):
    """One frame; its `type` is the key in `FRAME_CLASSES`."""


class HelloFrame(Frame):
    """The executor has begun."""

    protocol: int
    pid: int | None = None
    python: str | None = None


class BeatFrame(Frame):
    """The host is alive."""


class NeedFrame(Frame):
    """The host requests the executor, content or node types; exactly one of them."""

    bundle: str | None = None
    blobs: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None


class FactsFrame(Frame):
    """The facts that the controller asked for; `failed` says why the others have no value."""

    values: Annotated[Mapping[str, Any], Free(COLLECTED, map=True)]
    failed: Mapping[str, str]


class PlannedFrame(Frame):
    """A piece of one layer of the plan."""

    layer: int
    nodes: tuple[ReportedNode, ...]
    part: Part = "layers"
    fingerprints: Mapping[str, str] | None = None


class PlanFrame(Frame):
    """The plan is complete."""

    owed: tuple[ReportedDebt, ...] = ()
    seconds: float = 0.0
    waits: bool = False
    hooks: tuple[PlannedHook, ...] = ()
    facts: Annotated[Mapping[str, Any], Free(FACTS, map=True)] | None = None
    ledger: str = ""
    warnings: tuple[str, ...] = ()


class ItemsFrame(Frame):
    """Nodes of items that became known during an apply, or a piece of them."""

    layer: int
    nodes: tuple[ReportedNode, ...]


class ActionFrame(Frame):
    """An action began or ended."""

    node: str
    op: str
    index: int
    event: Literal["started", "finished"]
    status: Annotated[str, OneOf((ActionStatus.OK, ActionStatus.ERROR))] | None = None
    reason: str | None = None


class ActionsFrame(Frame):
    """Actions of several nodes began or ended together."""

    actions: tuple[ActionFrame, ...]


class OutputFrame(Frame):
    """Output of a node's program."""

    node: str
    text: str


class FinishedFrame(Frame):
    """A node run has ended."""

    node: str
    outcome: Annotated[str, OneOf(Outcome.ALL)]


class LayerFrame(Frame):
    """The results of a layer, or of a piece of it."""

    layer: int
    nodes: tuple[ReportedNode, ...]
    part: Literal["removals", "layers"] = "layers"
    more: bool = False


class FiredFrame(Frame):
    """A hook was called."""

    hook: str
    event: str
    name: str
    where: Where
    status: Annotated[str, OneOf(HookStatus.ALL)]
    error: str | None = None
    severity: str | None = None
    entry: Annotated[Mapping[str, Any], Free(HOOK, map=True)] | None = None
    metadata: Annotated[Mapping[str, Any], Free(HOOK, map=True)] | None = None


class ReportedResource(Strict):
    """A resource in the form that hooks receive."""

    name: str
    type: str
    state: str
    position: str
    attributes: Annotated[Mapping[str, Any], Free(HOOK, map=True)]
    tags: tuple[str, ...]
    playbook: str
    outcome: str | None = None


class HookFrame(Frame):
    """The host asks the controller to call a hook."""

    id: int
    hook: str
    event: str
    seconds: float
    resource: ReportedResource


class CallingFrame(Frame):
    """The host calls a hook that runs on the host."""

    hook: str
    event: str
    name: str
    seconds: float


class LoginFrame(Frame):
    """Something that logins depend on changed: the host asks the controller to test a new login."""


class KeepFrame(Frame):
    """A piece of what the run continues with after a reboot. Only the host reads it. It may contain secrets."""

    text: str


class RebootFrame(Frame):
    """The host is ready to reboot, and asks for permission. It must be up again after `seconds`."""

    node: str
    boot: str
    seconds: float


class BootedFrame(Frame):
    """The host reports its boot ID, after the controller has connected again."""

    boot: str


class ResumedFrame(Frame):
    """The host continues its run after a reboot."""


class AmendedFrame(Frame):
    """A node failed after its layer was reported."""

    node: str
    reason: str


class UnitsFrame(Frame):
    """The host waits for the hooks of its units."""

    phase: Literal["before", "after"]
    ok: bool


class UnitAskFrame(Frame):
    """A unit's hook asks for settings."""

    id: int
    ask: int
    node: tuple[str, ...]


class UnitPortFrame(Frame):
    """A unit's hook opens or closes a port."""

    id: int
    open: bool
    port: str


class UnitStatusFrame(Frame):
    """A unit's hook sets the status of the unit."""

    id: int
    status: str
    message: str


class UnitLogFrame(Frame):
    """A log line of a unit's hook."""

    unit: str
    hook: str
    level: int
    text: str
    id: int | None = None


class SettingsChange(Strict):
    """Settings that a unit's hook sets and deletes."""

    set: Mapping[str, str] | None = None
    delete: tuple[str, ...] = ()


class UnitChanges(Strict):
    """Everything that a unit's hook changes."""

    relations: Mapping[str, SettingsChange] | None = None
    leader: SettingsChange | None = None


class UnitDoneFrame(Frame):
    """A unit's hook has ended."""

    id: int
    ok: bool
    ran: bool
    error: str
    seconds: float
    changes: Annotated[UnitChanges, Free(SETTINGS)]


class EndFrame(Frame):
    """The run has ended on this host. Only this frame gives the host a result."""

    status: Annotated[str, OneOf(HostStatus.OF_HOST)]
    warnings: tuple[str, ...] = ()
    shutdown: tuple[Shutdown, ...] = ()
    holder: Annotated[Mapping[str, Any], Free(HELD_BY, map=True)] | None = None
    differs: tuple[str, ...] = ()
    facts: Annotated[Mapping[str, Any], Free(FACTS, map=True)] | None = None
    declined: bool = False
    halted: str = ""
    error: str = ""
    trace: str = ""
    hint: str = ""
    unchanged: bool = False
    refusal: str = ""
    ledger: str = ""
    history: tuple[Past, ...] = ()
    revealed: str = ""
    managed: tuple[ManagedResource, ...] = ()
    owners: Mapping[str, int] | None = None


FRAME_CLASSES: Mapping[str, type[Frame]] = {
    "hello": HelloFrame, "beat": BeatFrame, "need": NeedFrame, "facts": FactsFrame, "planned": PlannedFrame,
    "plan": PlanFrame, "items": ItemsFrame, "actions": ActionsFrame, "action": ActionFrame, "output": OutputFrame,
    "finished": FinishedFrame, "layer": LayerFrame, "fired": FiredFrame, "hook": HookFrame, "calling": CallingFrame,
    "login": LoginFrame, "keep": KeepFrame, "reboot": RebootFrame, "booted": BootedFrame, "resumed": ResumedFrame,
    "amended": AmendedFrame, "units": UnitsFrame, "unit-ask": UnitAskFrame, "unit-port": UnitPortFrame,
    "unit-status": UnitStatusFrame, "unit-log": UnitLogFrame, "unit-done": UnitDoneFrame, "end": EndFrame,
}  # fmt: skip
UNITS = (UnitsFrame, UnitAskFrame, UnitPortFrame, UnitStatusFrame, UnitLogFrame, UnitDoneFrame)
TYPES = {frame_class: name for name, frame_class in FRAME_CLASSES.items()}
