"""The plan of a run: for each node, what it has to do and what it touches."""

from __future__ import annotations

from statecfg.remote.graph.model import ActionSpec
from statecfg.remote.graph.names import PLAN_FAILS, Mode, Outcome
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.overlay import Trace
from statecfg.remote.run.dependents import Dependent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        AbstractSet,
        Any,
        Collection,
        Dict,
        FrozenSet,
        Hashable,
        Iterator,
        List,
        Mapping,
        Optional,
        Sequence,
        Set,
        Tuple,
    )

    from statecfg.remote.graph.model import HostNode
    from statecfg.remote.ledger.records import Resource
    from statecfg.remote.machine.changes import Change
    from statecfg.remote.run.order import Order

NONE: FrozenSet[Any] = frozenset()
_NOTHING = Trace()


class Touches:
    """What a node reads and changes, as far as the order of execution depends on it.

    :param paths: the paths and inodes that it changes
    :param shared: the paths and inodes that it reads and that another node of its layer changes
    :param effects: its other changes (see `Trace`)
    """

    __slots__ = ("effects", "paths", "shared")

    def __init__(
        self,
        paths: Collection[Hashable] = (),
        shared: Collection[Hashable] = (),
        effects: Collection[Sequence[str]] = (),
    ) -> None:
        self.paths, self.shared, self.effects = paths, shared, effects


class Step:
    """A node with its planned outcome and actions.

    :ivar outcome: "unchanged", "changed" (it would change), "unknown" (see `known_after`), "failed" or "skipped"
    :ivar excluded: why `when_host` excludes the node, which is "unchanged" then; "" if it does not
    :ivar cannot_undo: the node is an orphan that this run cannot undo
    :ivar conflict: the node failed because it conflicts with other nodes of this run
    :ivar trace: what the node read and changed, while its layer is planned
    :ivar touches: what the execution needs of the trace afterwards
    """

    __slots__ = (
        *("cannot_undo", "changes", "conflict", "excluded", "known_after", "node", "outcome", "reason", "spec"),
        *("touches", "trace", "triggered_by"),
    )

    def __init__(self, node: HostNode) -> None:
        self.node = node
        self.spec = ActionSpec()
        self.outcome = Outcome.UNCHANGED
        self.known_after: Optional[str] = None
        self.changes: List[Change] = []
        self.reason = self.excluded = ""
        self.cannot_undo = self.conflict = False
        self.triggered_by: Sequence[str] = ()
        self.trace = Trace()
        self.touches = Touches()

    @property
    def acts(self) -> bool:
        """Whether the node has, or may have, something to do."""
        return self.outcome in Outcome.ACTS

    @property
    def removal(self) -> bool:
        """Whether the node is an orphan, or is a resource that stays and that a removal triggers."""
        return isinstance(self.node, Orphan)

    def close(self, layer: AbstractSet[Hashable] = NONE) -> None:
        """Replace the trace by the part that the execution needs.

        :param layer: the paths and inodes that the nodes of its layer change
        """
        trace, self.trace = self.trace, _NOTHING
        if self.acts:
            self.touches = Touches(tuple(trace.touched), tuple(trace.looked & layer), tuple(trace.effects))

    @property
    def dependent(self) -> bool:
        """Whether a removal triggers this node while its real object stays."""
        return isinstance(self.node, Dependent)


class PreviousSecrets:
    """Secrets that earlier runs put on the host. This run may not know their values, so it can't mask them.

    :param nodes: the names of the nodes whose earlier definition contained a secret
    :param paths: path → the names of the nodes that put a secret there; see `Recorded`
    """

    def __init__(self, nodes: AbstractSet[str], paths: Mapping[str, AbstractSet[str]]) -> None:
        self.nodes, self.paths = nodes, paths

    def may_be_in(self, changes: Sequence[Change], node: HostNode) -> bool:
        """Tell whether the changes of a node may show such a secret, its own or that of another node of a file."""
        if secretive(node.attrs) if isinstance(node, Orphan) else node.provides in self.nodes and not node.hides:
            return True
        # A node that defines the whole content hides the previous content. Other nodes keep the rest of the file.
        own = {node.provides} if "content" in node.hides else NONE
        return any(self.paths.get(change["object"], NONE) - own for change in changes)


class Plan:
    """The steps of all layers.

    :ivar removals: layers of removals, which run before `layers`
    :ivar to_keep: layers of orphans that stay in this run
    :ivar removed: the steps of the removals, by name
    :ivar removal_triggers: node → removals that trigger it
    :ivar paid: nodes that owed a restart after a removal and no longer need it
    :ivar managed: the identities of all resources that stay managed
    :ivar previous_secrets: the secrets of earlier runs
    :ivar elsewhere: identity → playbook and name, for the resources of other playbooks
    :ivar claims: what other playbooks own on this host, if any
    :ivar recorded: the managed resources by name
    :ivar said: node → the values that its actions said in this run
    """

    def __init__(self) -> None:
        self.layers: List[List[Step]] = []
        self.steps: Dict[str, Step] = {}
        self.removals: List[List[Step]] = []
        self.to_keep: List[List[Step]] = []
        self.removed: Dict[str, Step] = {}
        self.removal_triggers: Mapping[str, Sequence[str]] = {}
        self.paid: Set[str] = set()
        self.managed: FrozenSet[str] = NONE
        self.elsewhere: Mapping[str, Tuple[str, str]] = {}
        self.claims: Any = None  # of `statecfg.remote.run.claims`
        self.previous_secrets = PreviousSecrets(NONE, {})
        self.recorded: Mapping[str, Resource] = {}
        self.said: Dict[str, Dict[str, str]] = {}

    def removal_steps(self) -> Iterator[Step]:
        """Yield the steps of all removals."""
        for layer in self.removals:
            yield from layer

    def triggers(self, node: HostNode) -> List[str]:
        """Return the names of the nodes whose change triggers a node, removals included."""
        return [*node.triggers, *self.removal_triggers.get(node.provides, ())]

    @property
    def failed(self) -> bool:
        """Whether any node failed or is skipped."""
        return any(step.outcome in Outcome.STOPPED for step in (*self.steps.values(), *self.removal_steps()))

    def halted(self, order: Order, due: bool, warnings: List[str]) -> str:
        """Return the reason why the plan must not start, "" if it may, or if it has nothing to do.

        With `keep_going`, a plan that fails starts, with a warning.

        :param due: whether an apply of this plan changes anything or calls a hook
        :param warnings: receives warnings for the user
        """
        steps = (*self.removal_steps(), *self.steps.values())
        failing = [step.node.provides for step in steps if step.outcome == Outcome.FAILED]
        if not failing or order.mode == Mode.VERIFY or not (due or self.changes_host):
            return ""
        if not order.keep_going:
            return PLAN_FAILS
        names = ", ".join(failing[:5]) + (f" and {len(failing) - 5} more" if len(failing) > 5 else "")
        warnings.append(f"the plan fails for {names}; --keep-going applies the rest of it")
        return ""

    def as_found(self) -> List[str]:
        """Return the names of the nodes that are as defined. The plan itself may only assume that if it has changes."""
        steps = {} if self.changes_host else self.steps
        return [name for name, step in steps.items() if step.outcome == Outcome.UNCHANGED and not step.excluded]

    @property
    def changes_host(self) -> bool:
        """Whether a node or a removal has, or may have, something to do."""
        return any(step.acts for step in (*self.removal_steps(), *self.steps.values()))

    def acts(self, name: str) -> bool:
        """Tell whether a node has, or may have, something to do; False if it is not part of this run."""
        step = self.triggering(name)
        return step is not None and step.acts

    def triggering(self, name: str) -> Optional[Step]:
        """Return the step of a node or of a removal, None if this run has neither."""
        return self.steps.get(name) or self.removed.get(name)


def kept_step(node: HostNode) -> Step:
    """Return the step of an orphan that this run keeps and does not check."""
    step = Step(node)
    step.outcome, step.reason = Outcome.SKIPPED, "it left the definition; it stays until an apply with --prune"
    return step
