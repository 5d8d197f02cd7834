"""The events of nodes during an apply: make nodes managed, and call their hooks before and after they act."""

from __future__ import annotations

from typing import Optional, Sequence

from statecfg.remote.graph.names import Outcome
from statecfg.remote.hooks.lifecycle import Lifecycle
from statecfg.remote.ledger.records import Orphan
from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.planning import describe


class NodeEvents:
    """Connects the nodes of one apply with the lifecycle of their resources.

    :param life: None: no node becomes managed, and no hook is called
    """

    def __init__(self, life: Optional[Lifecycle]) -> None:
        self.life = life

    def manage(self, nodes: Sequence[NodeRun]) -> None:
        """Make a layer's nodes managed; a node whose snapshot can't be taken fails before it acts."""
        if self.life is None:
            return
        ready = [node for node in nodes if node.sound]
        try:
            self.life.manage([node.step.node for node in ready])
        except (Exception, SystemExit):  # try each node alone to find the one that failed
            for node in ready:
                try:
                    self.life.manage([node.step.node])
                except (Exception, SystemExit) as problem:
                    node.fail(f"can't save the previous state: {describe(problem)}")

    def before(self, node: NodeRun) -> bool:
        """Call the hooks before a node; tell whether it may continue."""
        return self.life is None or bool(node.step.excluded) or self._allowed(node, self.life.before(node.step.node))

    def after(self, node: NodeRun) -> None:
        """Call the hooks after a node."""
        if self.life is None:
            return
        if node.sound:
            self._allowed(node, self.life.after(node.step.node, node.outcome == Outcome.CHANGED))
        elif node.outcome == Outcome.FAILED:
            self.life.failed(node.step.node)

    def failed(self, node: NodeRun) -> None:
        """Record that a node failed before its layer."""
        if self.life is not None:
            self.life.failed(node.step.node)

    def before_removal(self, node: NodeRun) -> bool:
        """Call the hooks before a removal; tell whether it may happen. Skip this if only the record is deleted."""
        orphan = node.step.node
        if node.step.dependent:
            return True
        assert self.life is not None and isinstance(orphan, Orphan)
        return orphan.successor is not None or self._allowed(node, self.life.before_removal(orphan))

    def after_removal(self, node: NodeRun) -> None:
        """Call the hooks after a removal, and delete the record of the resource."""
        orphan = node.step.node
        assert self.life is not None and isinstance(orphan, Orphan)
        if orphan.successor is not None:
            self.life.forget(orphan, successor=orphan.successor)
            return
        why = self.life.after_removal(orphan)
        node.forgotten = not why
        if why and self.life.of(orphan).postponed:  # the change on the host itself is complete
            node.reason = why
        elif why:
            node.fail(why)

    def _allowed(self, node: NodeRun, why: str) -> bool:
        """Skip or fail a node if a hook gave a reason; tell whether the node continues.

        :param why: the reason; "" if no hook objects
        """
        if not why:
            return True
        assert self.life is not None
        if self.life.of(node.step.node).postponed:
            node.outcome, node.reason = Outcome.SKIPPED, why
        else:
            node.fail(why)
        return False
