"""Extended attributes and capabilities of files: facets, ops, and their comparison."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import attributes
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.files import file_capabilities
from statecfg.resources.shared import paths, records

if TYPE_CHECKING:
    from typing import ClassVar

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


class AttributeValue(FacetEntry):
    """One value among those of a file or directory. An absent one is a value, too: None.

    :cvar file_types: the file types that can have it
    """

    facet, kept_as = "xattrs", "value"
    file_types: ClassVar[tuple[str, ...]] = ("file", "directory")

    def field(self) -> str:
        """Return the name of the value in the facet."""
        return str(self.attrs["name"])

    def shown(self, value: str) -> str:
        """Return a value as the facet shows it."""
        return as_text(as_bytes(value))

    def key(self) -> str:
        """Return the path."""
        return str(self.attrs["path"])

    def absent(self) -> bool:
        """Return False: the path stays without the value, too."""
        return False

    def wanted(self) -> records.Fields:
        """Return the wanted value."""
        value = self.attrs.get("value")
        return {self.field(): None if value is None else self.shown(value)}

    def stays(self, field: str, now: object) -> str:
        """Return the message about a value that others have changed."""
        return f"{field} of {self.key()} has another value now: it stays"

    def present(self) -> records.Fields | None:
        """Return the values of the path; None if nothing is there that can have any."""
        stat = self.world.stat(self.key())
        return super().present() or {} if stat is not None and stat.file_type in AttributeValue.file_types else None

    def require(self, now: records.Fields | None) -> None:
        """Check that the path can have the value."""
        path = self.key()
        stat = self.world.stat(path)
        if stat is None and self.attrs.get("value") is not None:
            raise CheckError(f"{path} does not exist; require the node that creates it")
        if stat is not None and stat.file_type not in self.file_types:
            paths.refuse(path, stat, " or ".join(paths.FILE_TYPES[file_type] for file_type in self.file_types))

    def check(self) -> ActionSpec:
        """Compare the value. A file that this run rewrites, or whose owner it changes, may lose it."""
        spec, stat = super().check(), self.world.stat(self.key())
        lost = stat is not None and stat.identity is None and self.attrs.get("value") is not None
        return ActionSpec(self.change({}, self.wanted())) if lost and not spec.actions else spec

    def create(self, fields: records.Fields) -> list[Action]:
        """Return nothing: there is no path, and the node wants no value."""
        return []

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Set the value, or remove it."""
        return [set_xattr(self.key(), self.field(), fields[self.field()])]

    def recorded(self, memory: records.Attrs) -> records.Fields:
        """Return the former value."""
        return {self.field(): memory[self.kept_as]}

    def remember(self) -> dict[str, str | None]:
        """Record the value."""
        return {self.kept_as: (self.present() or {}).get(self.field())}


class Capabilities(AttributeValue):
    """The capabilities of a program."""

    facet, file_types = "capabilities", ("file",)

    def field(self) -> str:
        """Return the name of the value in the facet."""
        return FIELD

    def shown(self, value: str) -> str:
        """Return capabilities as the facet shows them."""
        return file_capabilities.normal(value)

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Set the capabilities, or remove them."""
        return [set_capabilities(self.key(), fields[FIELD])]
