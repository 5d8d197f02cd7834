"""Nodes: immutable values that know nothing about what they manage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyrsistent import PMap, PVector, pvector

from statecfg.graph.attributes import Attributes
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.model import Record

MAX_NODES = 250_000

EMPTY_VECTOR: PVector[str] = pvector()
EMPTY_MAP: PMap[str, Any] = Attributes({})


class Frozen(Record):
    """A record whose fields can't be changed after it was created."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__.lower()} can't be changed; create another one")

    def __delattr__(self, name: str) -> None:
        setattr(self, name, None)

    def __copy__(self) -> Frozen:
        return self

    def __deepcopy__(self, memo: object) -> Frozen:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class RoleUse:
    """One use of a role. Uses are compared by identity, because a loop may use a role thousands of times.

    :param name: the name of the role
    :param directory: its directory
    :param variables: its parameters and variables, and those of the loops around a node
    :param position: the source location that includes it
    :param outer: the role that includes it; None for a play
    :param templates: `ansible` if its templates are rendered as Ansible does; otherwise ""
    """

    name: str
    directory: str
    variables: Mapping[str, Any]
    position: SourceLocation
    outer: RoleUse | None = None
    templates: str = ""


class Node(Frozen):
    """A vertex of the graph. Its fields can be read as attributes, as a map, or by keyword.

    :param provides: its name, such as ``file:/etc/motd``
    :param requires: the names of the nodes that it requires
    :param triggers: those names in `requires` whose change triggers this node as well
    :param produces_ops: names of the ops that its actions may call
    :param attrs: arguments and attributes by name, and ``type``
    :param options: the options that every node accepts (``tags``, ``protect``)
    :param position: the source location of its first declaration
    :ivar type: the name of its node type, which is also in `attrs`
    :param broken: a problem with it was already reported, so its consequences are not reported
    :param others: the source locations of its other declarations, which were merged with the first one
    :param labels: the loops and included files that contain it, such as ``loop:sites`` and ``include:parts/web.yml``
    :param uses: if a role contains one of its declarations: the source location and the role of each, the first one
        first
    """

    __slots__ = (
        "attrs", "broken", "labels", "options", "others", "position", "produces_ops", "provides", "requires",
        "triggers", "type", "uses",
    )  # fmt: skip
    fields = ("provides", "requires", "triggers", "produces_ops", "attrs", "options", "position")

    provides: str
    requires: PVector[str]
    triggers: PVector[str]
    produces_ops: PVector[str]
    attrs: PMap[str, Any]
    options: PMap[str, Any]
    position: SourceLocation
    broken: bool
    type: str
    others: tuple[SourceLocation, ...]
    labels: tuple[str, ...]
    uses: tuple[tuple[SourceLocation, RoleUse | None], ...]

    def __init__(
        self,
        provides: str,
        attrs: PMap[str, Any],
        requires: PVector[str] = EMPTY_VECTOR,
        triggers: PVector[str] = EMPTY_VECTOR,
        produces_ops: PVector[str] = EMPTY_VECTOR,
        options: PMap[str, Any] = EMPTY_MAP,
        position: SourceLocation = NOWHERE,
        broken: bool = False,
        others: tuple[SourceLocation, ...] = (),
        labels: tuple[str, ...] = (),
        uses: tuple[tuple[SourceLocation, RoleUse | None], ...] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "provides", provides)
        put(self, "attrs", attrs)
        put(self, "requires", requires)
        put(self, "triggers", triggers)
        put(self, "produces_ops", produces_ops)
        put(self, "options", options)
        put(self, "position", position)
        put(self, "broken", broken)
        put(self, "type", attrs["type"])
        put(self, "others", others)
        put(self, "labels", labels)
        put(self, "uses", uses)

    @property
    def positions(self) -> tuple[SourceLocation, ...]:
        """The source locations of all its declarations."""
        return (self.position, *self.others)

    @property
    def role(self) -> RoleUse | None:
        """The role that contains its first declaration; None if no role does."""
        return self.uses[0][1] if self.uses else None

    @property
    def declarations(self) -> tuple[tuple[SourceLocation, RoleUse | None], ...]:
        """The source location and the role of each of its declarations."""
        return self.uses or tuple((position, None) for position in self.positions)

    def replace(self, **fields: Any) -> Node:
        """Return this node with other values in some of its fields."""
        values = {name: getattr(self, name) for name in (*self.fields, "broken", "others", "labels", "uses")}
        return Node(**{**values, **fields})

    def with_attrs(self, **attrs: Any) -> Node:
        """Return this node with other values of some attributes; None removes an attribute."""
        merged = dict(self.attrs.iteritems())  # six times as fast as dict(self.attrs)
        merged.update(attrs)
        return Node(
            self.provides,
            Attributes({name: value for name, value in merged.items() if value is not None}),
            self.requires,
            self.triggers,
            self.produces_ops,
            self.options,
            self.position,
            self.broken,
            self.others,
            self.labels,
            self.uses,
        )
