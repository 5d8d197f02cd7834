"""The plan of one host. It arrives part by part and layer by layer, and is compared with the nodes that were sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.playbook.wire_node import WireNode
from statecfg.remote.graph.names import MOST_ITEMS, Mode, Outcome
from statecfg.run.host import frames
from statecfg.run.host.broken import SUSPICIOUS, Broken, quoted
from statecfg.run.report_model import Node

PARTS = ("removals", "layers", "left")  # of a plan, in the order in which a host sends them
MOST = 250_000  # maximum number of orphans of one host


class HostNodes:
    """The nodes of one host: first as planned, later with their outcomes.

    :param mode: one of `Mode`
    """

    def __init__(self, definition: Definition, mode: str) -> None:
        layers = () if mode in Mode.REMOVING else definition.layers
        self.sent = [{node["provides"]: node for node in layer} for layer in layers]
        self.parts: dict[str, list[list[Node]]] = {part: [] for part in PARTS}
        self.positions: dict[str, tuple[str, int]] = {}  # node → part and number of its layer
        self.newest = PARTS[0]  # the part that the host sent last
        self.fingerprints: dict[str, str] = {}
        self.items: dict[str, int] = {}  # declared node → the number of its items

    @property
    def layers(self) -> list[list[Node]]:
        """The layers of the definition."""
        return self.parts["layers"]

    @property
    def removals(self) -> list[list[Node]]:
        """The layers of removals."""
        return self.parts["removals"]

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes that a run processes, removals first."""
        for layer in (*self.removals, *self.layers):
            yield from layer

    def take(self, frame: frames.PlannedFrame) -> None:
        """Add a piece of the plan.

        :raises Broken: if the piece is out of order, or about nodes that were not sent
        """
        part, number = frame.part, frame.layer
        layers = self.parts[part]
        if not 0 <= number < (len(self.sent) if part == "layers" else MOST):
            raise Broken("it planned a layer that is not part of this run", SUSPICIOUS)
        if PARTS.index(part) < PARTS.index(self.newest) or number not in (len(layers) - 1, len(layers)):
            raise Broken(f"it planned layer {number} of {part} out of order", SUSPICIOUS)
        self.newest = part
        if number == len(layers):
            layers.append([])
        texts: dict[str, str] = {}
        position = part, number  # one tuple for all nodes
        layers[number] += [self._reported(node, position, texts) for node in frame.nodes]
        for name, text in (frame.fingerprints or {}).items():
            self.fingerprints[texts.get(name) or self.checked_name(name)] = text

    def _reported(self, node: frames.ReportedNode, position: tuple[str, int], texts: dict[str, str]) -> Node:
        """Return the report of a planned node, with the type and position that were sent to the host.

        :param position: the part and the number of its layer
        :param texts: the strings of the other nodes of its frame. The report shares them and the sent strings
        """
        part, number = position
        sent = self.sent[number].get(node.name) if part == "layers" else None
        if part == "layers" and sent is None and node.item_of is not None:
            sent = self._declared(node, number)
        elif node.item_of is not None:
            raise Broken(f"it planned {quoted(node.name)} as an item", SUSPICIOUS)
        if node.name in self.positions or (part == "layers") != (sent is not None):
            raise Broken(f"it planned {quoted(node.name)}, which is not part of this run", SUSPICIOUS)
        if len(self.positions) > MOST + sum(map(len, self.sent)):
            raise Broken(f"it mentions more than {MOST} resources", SUSPICIOUS)
        if sent is not None:
            for text in (sent["provides"], *sent.get("attrs", {}).values()):
                if type(text) is str:
                    texts.setdefault(text, text)
        fields: Any = node.to_json(texts)
        planned: Node = fields
        self.positions[planned["name"]] = position
        if sent is not None:
            planned["type"], planned["position"] = sent["type"], sent.get("position", "")
        return planned

    def _declared(self, item: frames.ReportedNode, number: int) -> WireNode:
        """Return the declared node of an item.

        :raises Broken: if there is none in this layer, or if it has too many items
        """
        name = str(item.item_of)
        declared = self.sent[number].get(name)
        if declared is None or "for_each_host" not in declared.get("options", {}):
            raise Broken(f"it planned {quoted(item.name)}, an item of {quoted(name)}, which has none", SUSPICIOUS)
        self.items[name] = self.items.get(name, 0) + 1
        if self.items[name] > MOST_ITEMS:
            raise Broken(f"{quoted(name)} has more than {MOST_ITEMS:,} items", SUSPICIOUS)
        return declared

    def add(self, frame: frames.ItemsFrame) -> None:
        """Add nodes of items that became known during an apply.

        :raises Broken: if their declared nodes were not unknown
        """
        number = frame.layer
        layer = self.layers[number] if 0 <= number < len(self.layers) else []
        unknown = {node["name"] for node in layer if node["outcome"] == Outcome.UNKNOWN}
        for node in frame.nodes:
            if node.item_of not in unknown:
                raise Broken(f"it adds {quoted(node.name)} to the plan", SUSPICIOUS)
            layer.append(self._reported(node, ("layers", number), {}))

    def complete(self) -> None:
        """Check that the plan contains every node that was sent.

        :raises Broken: if a node is missing
        """
        missing = sum(map(len, self.sent)) + sum(self.items.values()) - sum(map(len, self.layers))
        if missing:
            raise Broken(f"its plan lacks {missing} of the nodes", SUSPICIOUS)

    def checked_name(self, name: str) -> str:
        """Return `name` if it is the name of a node of this run.

        :raises Broken: if the run has no such node
        """
        if name not in self.positions:
            raise Broken(f"it mentions {quoted(name)}, which is not part of this run", SUSPICIOUS)
        return name
