"""The nodes of a definition as frames. All hosts with the same definition share them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from statecfg.playbook.wire_node import WireNode
from statecfg.remote.wire import frames as wire

NODES = 200  # maximum number of nodes in one frame


class PackedLayers:
    """The layers of a definition, and what all sessions compute from them.

    :param layers: the nodes in wire format, in layers; they must not change
    """

    def __init__(self, layers: Sequence[Sequence[WireNode]]) -> None:
        self.layers = layers
        self._lock = threading.Lock()
        self._frames: tuple[bytes, ...] | None = None

    @property
    def frames(self) -> tuple[bytes, ...]:
        """The frames with the nodes. They are encoded once.

        :raises ProtocolError: a node is too large for a frame
        """
        with self._lock:
            if self._frames is None:
                self._frames = tuple(
                    frame
                    for number, layer in enumerate(self.layers)
                    for start in range(0, len(layer), NODES)
                    for frame in _frames(number, layer[start : start + NODES])
                )
        return self._frames

    @cached_property
    def count(self) -> int:
        """The number of nodes."""
        return sum(map(len, self.layers))

    @cached_property
    def longest(self) -> float:
        """The number of seconds that the slowest node may take without progress."""
        attrs = [node.get("attrs", {}) for layer in self.layers for node in layer]
        # A command that is repeated may be silent while it waits and while it runs.
        delays = longest(one["retry_delay"] for one in attrs if "retry_delay" in one)
        return longest(one.get("timeout") for one in attrs) + delays


def longest(spans: Iterable[Any]) -> float:
    """Return the longest of some numbers of seconds, also in lists; 0 if there is none."""
    every = [one for span in spans for one in (span if isinstance(span, list) else [span])]
    return max((float(span) for span in every if isinstance(span, int | float)), default=0.0)


def _frames(number: int, nodes: Sequence[WireNode]) -> Iterator[bytes]:
    """Yield frames with these nodes of a layer, split if one frame would be too large."""
    try:
        yield wire.encode({"type": "nodes", "layer": number, "nodes": nodes})
    except wire.ProtocolError:
        if len(nodes) == 1:
            raise
        half = len(nodes) // 2
        yield from _frames(number, nodes[:half])
        yield from _frames(number, nodes[half:])
