"""The definition of one host: its nodes in the form that is sent, and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from statecfg.graph.automatic import Automatic
from statecfg.playbook.packed import PackedLayers
from statecfg.playbook.wire_node import WireNode
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.model import Blob

if TYPE_CHECKING:
    from statecfg.graph.automatic_cycles import LeftOut

NO_LAYERS = PackedLayers(())


@dataclass(frozen=True, slots=True)
class Definition:
    """The compiled graph of one host, ready to be sent.

    :param layers: the nodes in wire format, in layers
    :param blobs: content that the host may request, by SHA-256
    :param types: names of the node types, sorted
    :param secrets: name → value of the secrets that it contains
    :param digest: SHA-256 of the layers' canonical JSON, without positions
    :param automatic: node name → name of a node that it requires automatically → reason. The layers contain these
        requirements as well
    :param left_out: automatic requirements that would have closed a cycle
    :param restarts: node of the playbook that this definition leaves out → the nodes of this definition to whose change
        it reacts
    :param claims: what the nodes own that are not part of it (see `Evaluated`)
    :param packed: the layers as frames
    """

    layers: list[list[WireNode]]
    blobs: dict[str, Blob] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    digest: str = ""
    automatic: Automatic = field(default_factory=dict)
    left_out: Sequence[LeftOut] = ()
    restarts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    claims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    packed: PackedLayers = field(default=NO_LAYERS, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.packed.layers is not self.layers:  # not a copy with the same layers
            object.__setattr__(self, "packed", PackedLayers(self.layers))


def for_undoing(definition: Definition) -> Definition:
    """Return the part of a definition that a host needs to undo it: the nodes whose attributes contain secrets.

    The host's ledger contains only masks of these secrets.
    """
    values = tuple(definition.secrets.values())
    layers = [[node for node in layer if _mentions(node.get("attrs"), values)] for layer in definition.layers]
    return Definition([layer for layer in layers if layer], secrets=definition.secrets)


def _mentions(value: Any, texts: tuple[str, ...]) -> bool:
    """Return whether a JSON value contains one of `texts`, apart from the content of blobs."""
    if isinstance(value, str):
        return any(text in value for text in texts)
    if isinstance(value, Mapping):
        return "$blob" not in value and any(_mentions(item, texts) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, texts) for item in value)
