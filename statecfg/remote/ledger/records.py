"""The records of a ledger: managed resources and owed restarts; and the nodes that are made of them."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from statecfg.remote.graph.model import Attrs, Blob, HostNode, JsonMap, Record
from statecfg.remote.graph.names import State
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.claims import OWNED
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.paths import normal

SAID = "$said"  # the key of a snapshot with what the node's actions said, see `NodeType.produces`


class StoredDefinition:
    """The definition of a node as the ledger stores it: without secrets, and content as a digest.

    :param type: the name of the node type
    :param module: the module that defines this type
    :param identities: the identities of the object, see `identities`; then, after the mark `OWNED`, what else the node
        owns. Records before 0.5.0 lack this
    :cvar fields: the names of these in JSON and in the ledger, in the order of the parameters
    :param triggers: those of `requires` whose change triggers the node; None in records of 0.3.0
    :param protect: 1 if the resource must not be removed, otherwise 0
    :param position: its source location
    """

    fields = ("type", "module", "attrs", "claims", "requires", "tags", "protect", "position", "triggers")
    __slots__ = (
        *("attrs", "identities", "module", "owned", "position", "protect", "requires", "tags", "triggers", "type"),
    )

    def __init__(
        self,
        type: str,
        module: str,
        attrs: Attrs,
        identities: Sequence[str] = (),
        requires: Sequence[str] = (),
        tags: Sequence[str] = (),
        protect: int = 0,
        position: str = "",
        triggers: Optional[Sequence[str]] = (),
    ) -> None:
        self.type, self.module, self.attrs, self.identities = type, module, attrs, list(identities)
        self.owned: List[str] = []
        if self.identities and self.identities[-1][:1] == OWNED:
            self.owned = [claim[1:] for claim in self.identities if claim[:1] == OWNED]
            self.identities = [claim for claim in self.identities if claim[:1] != OWNED]
        self.requires, self.tags, self.protect, self.position = list(requires), list(tags), protect, position
        self.triggers = None if triggers is None else list(triggers)

    @property
    def claims(self) -> List[str]:
        """Its identities, then what else it owns, as the ledger stores them."""
        return [*self.identities, *(OWNED + claim for claim in self.owned)]


# The columns of a resource in the ledger, and those that contain JSON.
COLUMNS = (
    "name", "type", "module", "claims", "digest", "state", "memory", "after", "attrs", "requires", "tags", "protect",
    "position", "owing", "first_run", "last_run", "since", "triggers",
)  # fmt: skip
JSON_COLUMNS = ("claims", "memory", "attrs", "requires", "tags", "owing", "triggers")
_IS_JSON = tuple(column in JSON_COLUMNS for column in COLUMNS)


class Resource:
    """A managed resource. Instances are frozen.

    :param name: its node's name
    :param definition: the definition that was applied last
    :param state: one of `State`
    :param memory: the snapshot of the object before it was managed, as JSON types
    :param digest: a digest of the complete definition; "" if no apply has completed the node yet
    :param after: a digest of the object after the last apply; "" if it is unknown
    :param owing: pairs of event and hook that a later run must call
    :param first_run: the id of the run in which it became managed; "" for the current run
    :param since: when it became managed, in epoch seconds; 0 for now
    :param replaces: the name and identities under which the same object was managed before
    """

    name: str
    definition: StoredDefinition
    state: str
    memory: Any
    digest: str
    after: str
    owing: Sequence[Sequence[str]]
    first_run: str
    since: float
    replaces: Optional[Mapping[str, Any]]

    def __init__(
        self,
        name: str,
        definition: StoredDefinition,
        state: str = State.PRE_CREATED,
        memory: Any = None,
        digest: str = "",
        after: str = "",
        owing: Sequence[Sequence[str]] = (),
        first_run: str = "",
        since: float = 0.0,
        replaces: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.__dict__.update(
            name=name, definition=definition, state=state, memory=memory, digest=digest, after=after, owing=owing,
            first_run=first_run, since=since, replaces=replaces,
        )  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a resource can't be changed")

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Resource:
        """Return the resource of a row of the ledger, with the columns `COLUMNS` and JSON already read."""
        name, node_type, module, identities, digest, state, memory, after, attrs, requires, tags, protect, *rest = row
        position, owing, first_run, _, since, triggers = rest
        definition = StoredDefinition(node_type, module, attrs, identities, requires, tags, protect, position, triggers)
        return cls(name, definition, state, memory, digest, after, owing, first_run, since)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Resource:
        """Return the resource of a row of the ledger or of a line of a journal; journals of 0.3.0 have no triggers.

        :raises TypeError: if a key is unknown
        """
        more = dict(data)
        more.setdefault("triggers", None)
        more.pop("last_run", None)  # only the ledger itself uses it
        if not more.pop("hides", 0):  # an earlier version wrote it, with masks in the attributes
            from statecfg.remote.machine.hidden import upgraded

            more["attrs"] = upgraded(more["attrs"])
        more.pop("replaced", None)  # a mark that 0.3.0 wrote when the guard of logins restored a resource
        return cls(definition=StoredDefinition(*[more.pop(key) for key in StoredDefinition.fields]), **more)

    def to_json(self) -> JsonMap:
        """Return the resource as the journal stores it."""
        data = {key: getattr(self.definition, key) for key in StoredDefinition.fields}
        data.update((key, getattr(self, key)) for key in ("name", "digest", "after", "state", "owing", "memory"))
        data["hides"] = 1
        for key in ("first_run", "since", "replaces"):
            if getattr(self, key):
                data[key] = getattr(self, key)
        return data

    @property
    def debt(self) -> JsonMap:
        """What the ledger stores while a restart is owed to a resource that is no longer defined; see `from_debt`."""
        data = {key: getattr(self.definition, key) for key in ("type", "module", "attrs", "position", "tags")}
        return dict(data, name=self.name)

    @classmethod
    def from_debt(cls, how: Mapping[str, Any]) -> Resource:
        """Return the resource to which a restart is owed."""
        more = dict(how)
        return cls(more.pop("name"), StoredDefinition(**more))


def from_cells(row: Sequence[Any]) -> Resource:
    """Return the resource of a row of the ledger."""
    cells = (_value(cell) if is_json else cell for cell, is_json in zip(row, _IS_JSON))
    return Resource.from_row(tuple(cells))


def _value(text: str) -> Any:
    return [] if text == "[]" else json.loads(text)


def as_cells(record: Mapping[str, Any], columns: Iterable[str]) -> List[Any]:
    """Return the cells of some columns for the ledger."""
    return [json.dumps(record[column]) if column in JSON_COLUMNS else record[column] for column in columns]


class Debt(Record):
    """A restart that is owed because of a change.

    :param node: the name of the node to restart
    :param cause: the name of the node that changed
    :param since: when it changed, in epoch seconds
    :param run: the id of the run that changed it
    :param how: `Resource.debt` if the node is no longer defined, otherwise None
    """

    fields = ("node", "cause", "since", "run", "how")
    __slots__ = fields

    def __init__(self, node: str, cause: str, since: float, run: str, how: Optional[Mapping[str, Any]]) -> None:
        self.node, self.cause, self.since, self.run, self.how = node, cause, since, run, how


class StateChange:
    """A new state of a resource, as a journal records it.

    :param state: "" if the resource is no longer managed
    :param successor: the playbook and the name of the node that manages the object now, if there is one
    """

    __slots__ = ("name", "owing", "state", "successor")

    def __init__(
        self, name: str, state: str, owing: Sequence[Sequence[str]] = (), successor: Optional[Sequence[str]] = None
    ) -> None:
        self.name, self.state, self.owing, self.successor = name, state, owing, successor


class Orphan(HostNode):
    """A managed resource that its playbook no longer declares.

    :param resource: its record
    :param name: its name in this run
    :param successor: (playbook, name) of another node that manages the same object; then only the record is deleted
    :ivar snapshot: its snapshot, with the content instead of digests
    :ivar replaced: a node of this playbook manages the same object
    :ivar secret_attrs: attributes with secrets, with the values from the playbook; `attrs` contains masks instead
    :ivar waits: the names of nodes that are removed earlier because their undo may need this one
    :ivar sees: the names of earlier nodes whose actions can affect this node
    :ivar earlier: the names of all nodes but packages in earlier layers
    """

    __slots__ = ("earlier", "replaced", "resource", "secret_attrs", "sees", "snapshot", "successor", "waits")

    def __init__(self, resource: Resource, name: str, successor: Optional[Tuple[str, str]] = None) -> None:
        definition = resource.definition
        HostNode.__init__(self, name, definition.type, (), dict(definition.attrs), position=definition.position)
        self.options = {"tags": definition.tags} if definition.tags else {}
        self.resource, self.successor, self.snapshot = resource, successor, resource.memory
        self.replaced = False
        self.secret_attrs: Dict[str, Any] = {}
        self.sees: Sequence[str] = ()
        self.waits: Sequence[str] = ()
        self.earlier: Sequence[str] = ()

    def supply(self, attrs: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
        """Take secrets from the playbook's node of this name, for each attribute that differs only in its secrets.

        :param attrs: the attributes of the playbook's node
        :param stored: the same as the ledger stores them
        """
        from statecfg.remote.machine.hidden import outline

        for name, value in self.resource.definition.attrs.items():
            if name in attrs and secretive(value) and outline(stored.get(name)) == outline(value):
                self.secret_attrs[name] = attrs[name]

    @property
    def note(self) -> str:
        """Why the object stays and only the record is deleted; "" if the node is undone."""
        if self.successor is not None:
            return f"it stays: {self.successor[1]} of {self.successor[0]} manages the same object"
        node_type = REGISTRY.get(self.type)
        return "it stays: its type has no undo" if node_type is not None and "undo" not in node_type.methods else ""


def recorded_name(node: HostNode) -> str:
    """Return a node's name in the ledger. The name of an orphan in this run may differ from it."""
    return node.resource.name if isinstance(node, Orphan) else node.provides


# Identities


def identities(node: HostNode) -> List[str]:
    """Return the identities of a node according to its type's `identity`; without that, its type and first argument."""
    node_type = REGISTRY.get(node.type)
    if node_type is None:
        return []
    found = node_type.identify(node)
    if found is not None:
        return [_plain(identity) for identity in found]
    if node_type.function is not None:
        arguments: Sequence[str] = node_type.function.__code__.co_varnames[: node_type.function.__code__.co_argcount]
    else:
        arguments = node_type.given_schema.arguments if node_type.given_schema is not None else ()
    first = node.attrs.get(arguments[0]) if arguments else None
    return [f"{node.type}:{first}"] if isinstance(first, str) else []


def _plain(identity: str) -> str:
    what, _, name = identity.partition(":")
    return f"{what}:{normal(name)}" if name[:1] == "/" else identity


def distinct(some: Sequence[str], others: Sequence[str]) -> bool:
    """Tell whether two lists of identities name different objects. An empty list matches every list."""
    return bool(some and others) and not set(some).intersection(others)


def renamed(resource: Resource) -> str:
    """Return the new name of a resource whose own name another resource has taken over."""
    definition = resource.definition
    name = definition.identities[0].partition(":")[2] if definition.identities else ""
    return "%s (the %s)" % (resource.name, ("%s %s" % (definition.type, name)).strip())


# Content


def with_content(memory: Any, folder: str) -> Any:
    """Return a snapshot with each digest replaced by the content.

    :param memory: the snapshot as the ledger stores it
    :param folder: the host's directory of former content
    """
    if isinstance(memory, list):
        return [with_content(item, folder) for item in memory]
    if not isinstance(memory, dict):
        return memory
    if "$blob" in memory:
        sha256, size = memory["$blob"]
        return Blob(sha256, size, path=f"{folder}/{sha256}")
    return {key[1:] if key[:1] == "$" else key: with_content(item, folder) for key, item in memory.items()}


def contents(value: Any) -> Iterable[Blob]:
    """Yield every `Blob` inside a value."""
    if isinstance(value, Blob):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from contents(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from contents(item)
