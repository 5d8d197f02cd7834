"""The life of managed resources on a host: creation, change and removal, and their states.

The states, and the effect of a failed hook in each of them, are those of Runtime Defined Entities: PRE_CREATED,
RESOLVED, RESOLUTION_ERROR and IN_DELETION.
"""

from __future__ import annotations

from statecfg.remote.graph.names import Outcome, ResourceEvent, State
from statecfg.remote.ledger.records import recorded_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

    from typing_extensions import Protocol, TypedDict

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.ledger.records import Resource

    class ExpectedHook(TypedDict):
        """A hook that a plan would call; `name` is the node's, and `where` "controller" or "host"."""

        hook: str
        event: str
        name: str
        where: str

    class StateJournal(Protocol):
        """The journal, which stores states durably."""

        def manage(self, resources: Sequence[Resource]) -> None: ...
        def state_changed(self, node: str, **fields: Any) -> None: ...


PRE_RECONCILE, POST_CREATE, POST_UPDATE, PRE_DELETE, FINALIZE, POST_DELETE = ResourceEvent.ALL
PRE_CREATED, RESOLVED, RESOLUTION_ERROR, IN_DELETION = State.ALL


class Tracked:
    """The state of a node in the ledger.

    :param state: "" for a node that is not managed yet
    :param owing: pairs of event and hook that a later run must call
    """

    __slots__ = ("name", "owing", "postponed", "state", "why")

    def __init__(self, name: str, state: str = "", owing: Iterable[Sequence[str]] = ()) -> None:
        self.name, self.state = name, state
        self.owing = [list(pair) for pair in owing]
        self.postponed = False  # a hook postponed it to a later run; it has not failed
        self.why = ""  # the error of that hook


class Lifecycle:
    """The states of the nodes of one run on a host without hooks.

    :param tracked: by node name, including orphans
    """

    def __init__(self, tracked: Dict[str, Tracked]) -> None:
        self.tracked = tracked

    def attach(self, record: StateJournal, new_record: Callable[[HostNode], Resource]) -> None:
        """Connect the lifecycle to the run. Before this call, it cannot record anything.

        :param record: the journal
        :param new_record: returns the record of a node that becomes managed
        """
        self.record, self.new_record = record, new_record

    def of(self, node: HostNode) -> Tracked:
        """Return the state of a node."""
        return self.tracked.setdefault(node.provides, Tracked(node.provides))

    # Creation and change

    def manage(self, nodes: Sequence[HostNode]) -> None:
        """Record nodes as managed before they are changed. Nodes that are managed already stay unchanged."""
        fresh = [node for node in nodes if not self.of(node).state]
        if fresh:
            self.record.manage([self.new_record(node) for node in fresh])
        for node in fresh:
            self.of(node).state = PRE_CREATED

    def before(self, node: HostNode) -> str:
        """Call the hooks before a node is processed; return why it must not be processed, "" if it may."""
        tracked = self.of(node)
        if tracked.state == IN_DELETION:  # it was defined again after its removal had begun
            self.set_state(node, PRE_CREATED)
        return self.require(PRE_RECONCILE, node)

    def after(self, node: HostNode, changed: bool) -> str:
        """Call the hooks after a node has converged; return why it has failed nevertheless, "" if it has not.

        Source of the rule: a failed post-create leaves the resource in RESOLUTION_ERROR, so the next run retries it;
        a failed post-update does not change the state.
        """
        tracked = self.of(node)
        if tracked.state != RESOLVED:
            why = self.fire(POST_CREATE, node, Outcome.CHANGED if changed else Outcome.UNCHANGED)
            again = self.was_postponed(node, POST_CREATE)
            self.set_state(node, RESOLUTION_ERROR if why or again else RESOLVED)
            return why
        if changed or tracked.owing:
            only = None if changed else [hook for _, hook in tracked.owing]
            before, tracked.owing = tracked.owing, []
            why = self.fire(POST_UPDATE, node, Outcome.CHANGED if changed else Outcome.UNCHANGED, only)
            if why:  # the hooks after the failed one were not called
                tracked.owing += [pair for pair in before if pair not in tracked.owing]
            if before != tracked.owing:
                self.set_state(node, tracked.state)
            return why
        return ""

    def failed(self, node: HostNode) -> None:
        """Mark a node that could not be created as RESOLUTION_ERROR."""
        if self.of(node).state == PRE_CREATED:
            self.set_state(node, RESOLUTION_ERROR)

    # Removal

    def before_removal(self, node: HostNode) -> str:
        """Call the hooks before a removal; return why it must not happen, "" if it may.

        Source of the rule: a failed pre-delete changes nothing. It is not called again for a resource that is
        IN_DELETION. A failed finalize leaves the resource IN_DELETION, for a later run.
        """
        if self.of(node).state != IN_DELETION:
            why = self.require(PRE_DELETE, node)
            if why:
                return why
            self.set_state(node, IN_DELETION)
        return self.require(FINALIZE, node)

    def after_removal(self, node: HostNode) -> str:
        """Call the hooks after a removal; return why the resource stays IN_DELETION, "" if it was forgotten."""
        why = self.require(POST_DELETE, node, Outcome.CHANGED)
        if not why:
            self.forget(node)
        return why

    def forget(self, node: HostNode, successor: Sequence[str] = ()) -> None:
        """Record that a resource is no longer managed.

        :param successor: playbook and name of the node that manages the same object now, if there is one
        """
        self.of(node).state = ""
        more = {"heir": list(successor)} if successor else {}
        self.record.state_changed(recorded_name(node), state="", **more)

    # Hooks

    def set_state(self, node: HostNode, state: str) -> None:
        """Record a new state of a resource."""
        tracked = self.of(node)
        tracked.state = state
        self.record.state_changed(recorded_name(node), state=state, owing=tracked.owing)

    def require(self, event: str, node: HostNode, outcome: str = "") -> str:
        """Call the hooks of an event that must succeed; return why the node must stop in this run, or ""."""
        why = self.fire(event, node, outcome)
        if not why and self.was_postponed(node, event):
            tracked = self.of(node)
            tracked.postponed = True
            return f"{tracked.why}; a later run tries again"
        return why

    def was_postponed(self, node: HostNode, event: str) -> bool:
        """Return whether a hook of an event was postponed. Forget that, because the event itself will happen again."""
        tracked = self.of(node)
        postponed = [pair for pair in tracked.owing if pair[0] == event]
        tracked.owing = [pair for pair in tracked.owing if pair[0] != event]
        return bool(postponed)

    def due(self, node: HostNode, changed: bool) -> bool:
        """Return whether processing a node would call a hook or change its state."""
        tracked = self.of(node)
        return tracked.state in (PRE_CREATED, RESOLUTION_ERROR, IN_DELETION) or bool(tracked.owing)

    def would_fire(self, node: HostNode, acts: bool, removal: bool) -> List[ExpectedHook]:
        """Return the hooks that a node would call. Without hooks, it calls none."""
        return []

    def fire(self, event: str, node: HostNode, outcome: str, only: Optional[Sequence[str]] = None) -> str:
        """Call an event's hooks; return why the run can't continue with the node, "" if it can.

        Without hooks, it can. `HookedLifecycle` calls them.

        :param outcome: the outcome of the node; "" before it is processed
        :param only: names of the hooks to call; None for all
        """
        return ""
