"""Extended attributes and capabilities of files: facets, ops, comparison, snapshot and restoration."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import attributes
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import file_capabilities, paths, records

if TYPE_CHECKING:
    from typing import TypedDict

    class ValueMemory(TypedDict):
        """The memory of an `xattr` or `capabilities`: the former value as text; None if there was none."""

        value: str | None


NAMESPACES = ("user.", "trusted.", "security.")
FIELD = "capabilities"  # the field of the facet with this name


class OnDemand:
    """A facet whose entries are read on first use.

    :param fields: returns the fields of a file from its attributes
    """

    def __init__(self, fields: Callable[[Mapping[str, bytes]], records.Fields]) -> None:
        self.fields = fields

    def get(self, path: str) -> records.Fields:
        """Return the present fields of a path."""
        return self.fields(attributes.read(path))


@facet("xattrs")
def xattrs(host: World) -> Any:
    """Load the extended attributes of files: path → name → value as text."""
    return OnDemand(lambda found: {name: as_text(value) for name, value in found.items()})


@facet("capabilities")
def capabilities(host: World) -> Any:
    """Load the capabilities of files: path → `capabilities`."""
    return OnDemand(_capabilities)


def _capabilities(found: Mapping[str, bytes]) -> records.Fields:
    value = found.get(attributes.CAPABILITIES)
    return {} if value is None else {FIELD: file_capabilities.as_text(value)}


@op
def set_xattr(machine: Machine, path: str, name: str, value: str | None) -> Result:
    """Set an extended attribute, or remove it (None)."""
    data = None if value is None else as_bytes(value)
    return attributes.change(machine, path, name, data, {"xattrs": {path: {name: value}}})


@op
def set_capabilities(machine: Machine, path: str, value: str | None) -> Result:
    """Set the capabilities of a program, or remove them (None)."""
    data = None if value is None else file_capabilities.as_bytes(value)
    return attributes.change(machine, path, attributes.CAPABILITIES, data, {"capabilities": {path: {FIELD: value}}})


def as_text(value: bytes) -> str:
    """Return a value as text; as hexadecimal digits after ``0x`` if it is not one line of text."""
    try:
        text = value.decode("utf-8")
        if text.isprintable() and not text.startswith("0x"):
            return text
    except UnicodeDecodeError:
        pass
    return "0x" + value.hex()


def as_bytes(text: str) -> bytes:
    """Return the value that a string represents.

    :raises ValueError: if the text begins with ``0x``, but has no hexadecimal digits after it
    """
    try:
        return binascii.unhexlify(text[2:]) if text.startswith("0x") else text.encode("utf-8")
    except binascii.Error:
        raise ValueError("value: after 0x, write hexadecimal digits, two for each byte") from None


def check(
    node: HostNode, world: World, facet: str, field: str, wanted: str | None, file_types: tuple[str, ...]
) -> bool:
    """Return whether a value must be set or removed.

    :param facet: the facet with the value
    :param wanted: the value as the facet shows it; None if there must be none
    :param file_types: the file types that can have it
    :raises CheckError: if the path can't have it
    """
    path = node.attrs["path"]
    stat = world.stat(path)
    if stat is None:
        if wanted is None:
            return False
        raise CheckError(f"{path} does not exist; require the node that creates it")
    if stat.file_type not in file_types:
        paths.refuse(path, stat, " or ".join(paths.FILE_TYPES[file_type] for file_type in file_types))
    now = (world.entry(facet, path) or {}).get(field)
    # A file that this run rewrites, or whose owner it changes, may lose the value.
    return bool(now != wanted or (stat.identity is None and wanted is not None))


def remember(node: HostNode, world: World, facet: str, field: str) -> ValueMemory:
    """Record the present value."""
    stat = world.stat(node.attrs["path"])
    return {"value": (world.entry(facet, node.attrs["path"]) or {}).get(field) if stat is not None else None}


def undo(
    node: HostNode, memory: ValueMemory, world: World, facet: str, field: str, set_to: str | None, action: Action
) -> ActionSpec:
    """Restore the former value, unless others have changed it since.

    :param set_to: the value that the node set, as the facet shows it; None if it removed it
    :param action: what restores the former value
    """
    path, was = node.attrs["path"], memory["value"]
    stat = world.stat(path)
    if stat is None or stat.file_type not in ("file", "directory"):
        return ActionSpec([])
    now = (world.entry(facet, path) or {}).get(field)
    if now == was:
        return ActionSpec([])
    if now != set_to:
        return ActionSpec([], left=[f"{field} of {path} has another value now: it stays"])
    return ActionSpec([action])
