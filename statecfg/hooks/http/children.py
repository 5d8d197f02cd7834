"""A graph as the children of a hook's request, and the graph of the children in its response."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NotRequired, TypedDict

from statecfg.graph import contradictions, identity, references, registry, schema
from statecfg.graph.declare import declare_at
from statecfg.graph.graph import Graph, gap
from statecfg.graph.layers import check, in_layers
from statecfg.graph.nodes import Node
from statecfg.hooks.http.answers import Json
from statecfg.hooks.http.held import Held, NotOurs
from statecfg.hooks.registration.model import Registration, Selector
from statecfg.problems import InvalidInput, Problem, collecting, problem, report, suggest
from statecfg.remote.graph.nodetype import OPTIONS

API_VERSION = "statecfg/v1"


class ChildMetadata(TypedDict):
    """The metadata of a child: the node's name, and its tags as labels."""

    name: str
    labels: Mapping[str, str]


class Child(TypedDict):
    """A node as a hook receives it. `spec` contains its attributes."""

    apiVersion: str
    kind: str
    metadata: ChildMetadata
    spec: Mapping[str, Any]
    requires: list[str]
    restartOn: NotRequired[list[str]]


def selected(node: Node, select: Selector) -> bool:
    """Return whether a selector matches a node: each of its non-empty lists must match."""
    return (
        (not select.types or node.type in select.types)
        and (not select.names or any(fnmatchcase(node.provides, name) for name in select.names))
        and (not select.tags or not set(select.tags).isdisjoint(node.options.get("tags") or ()))
    )


def child_kind(type_name: str) -> str:
    """Return the kind of a node type's children: `line_in_file` is `LineInFile`."""
    return "".join(part[:1].upper() + part[1:] for part in type_name.replace("-", "_").split("_"))


class HookChildren:
    """The nodes that one hook receives, and the graph of the nodes that it returns.

    :param graph: the host's graph
    :param hook: selects nodes, and may give some of them other keys
    :param secrets: name → value of each secret in the definition; none of them is sent
    :raises InvalidInput: a key of the registration matches several nodes
    """

    def __init__(self, graph: Graph, hook: Registration, secrets: Mapping[str, str]) -> None:
        self.graph, self.hook = graph, hook
        self.withheld: dict[str, dict[str, Held]] = {}
        self.nodes = _by_key([node for node in graph.nodes() if selected(node, hook.select)], hook)
        self.sent = {key: self._child(key, node, secrets) for key, node in self.nodes.items()}

    def _child(self, key: str, node: Node, secrets: Mapping[str, str]) -> Child:
        withheld = self.withheld[key] = {name: Held(secrets) for name in node.attrs if name != "type"}
        child: Child = {
            "apiVersion": API_VERSION,
            "kind": child_kind(node.type),
            "metadata": {"name": node.provides, "labels": dict.fromkeys(node.options.get("tags") or (), "")},
            "spec": {name: withheld[name].to_json(node.attrs[name]) for name in sorted(withheld)},
            "requires": list(node.requires),
        }
        return {**child, "restartOn": list(node.triggers)} if node.triggers else child

    def replaced(self, returned: Mapping[str, Json]) -> Graph:
        """Return the graph with the children that a hook returned instead of those that it received.

        They are validated like declared nodes. A changed node keeps its source location, and a new node has that of the
        hook's registration. An unchanged child remains the same node.

        :raises InvalidInput: children are invalid; each problem names hook and child
        """
        changed: dict[str, Node] = {}
        more: list[Node] = []
        with collecting() as problems:
            for key, node in self.nodes.items():
                if key not in returned:
                    self._refuse(key, "is missing in the response; a hook must return all children")
                elif returned[key] != self.sent[key] or not _same(returned[key], self.sent[key]):
                    changed[node.provides] = self._changed(key, node, returned[key])
            more += [
                self._new_node(key, child)
                for key, child in returned.items()
                if key not in self.nodes and _is_ours(child)
            ]
        if problems:
            raise InvalidInput(problems)
        if not more and all(changed.get(node.provides, node) is node for node in self.nodes.values()):
            return self.graph
        nodes = [changed.get(node.provides, node) for node in self.graph.nodes()] + more
        nodes, found = references.expand(nodes, self.graph.known_labels)
        self._check(nodes, found)
        return Graph(None, [Graph(node) for node in nodes])

    def _check(self, nodes: list[Node], found: list[Problem]) -> None:
        problems = [*found, *check(nodes), *identity.check(identity.owners(nodes)), *contradictions.check(nodes)]
        try:
            if not problems:
                in_layers(nodes)
        except InvalidInput as error:
            problems = error.problems
        if problems:
            circumstance = f"after the hook {self.hook.name} changed the graph"
            raise InvalidInput(self._with_hook(item, circumstance) for item in problems)

    def _with_hook(self, problem: Problem, circumstance: str) -> Problem:
        """Return a problem that also names the hook and its registration."""
        positions = (*problem.locations, self.hook.position)
        return replace(problem, detail=f"{problem.detail} ({circumstance})", locations=positions)

    def _refuse(self, key: str, detail: str, help: str = "") -> None:
        text = f"hook {self.hook.name}: the child `{key}` {detail}"
        positions = [self.hook.position, *(self.nodes[key].positions if key in self.nodes else [])]
        report(problem("SC0609", text, help, *positions))

    def _changed(self, key: str, node: Node, child: Json) -> Node:
        sent = self.sent[key]
        name = _metadata(child).get("name", node.provides)
        if child.get("kind") != sent["kind"]:
            self._refuse(key, f"was a {sent['kind']}, and is a {child.get('kind')}", "a hook can't change the kind")
        elif name != node.provides:
            self._refuse(key, f"was called {node.provides}, and is called {name}", "a hook can't change the name")
        else:
            requires = self._names(key, child, "requires", node.requires)
            wanted = frozenset(requires)
            triggers = self._names(key, child, "restartOn", [item for item in node.triggers if item in wanted])
            attrs = self._attrs(key, node.type, child, node)
            before = {name: value for name, value in node.attrs.items() if name != "type"}
            same = attrs.keys() == before.keys() and all(attrs[name] is before[name] for name in attrs)
            if same and requires == list(node.requires) and triggers == list(node.triggers):
                return node
            options = {**node.options, "provides": node.provides, "requires": requires, "restart_on": triggers}
            declared = self._declared(key, node.type, {**attrs, **options}, node)
            return declared.replace(others=node.others, labels=node.labels)
        return node

    def _new_node(self, key: str, child: Json) -> Node:
        by_kind = {child_kind(name): name for name in registry.names()}
        name = by_kind.get(child["kind"])
        if name is None:
            help = suggest(child["kind"], by_kind, "available")
            self._refuse(key, f"is a {child['kind']}, which is not a node type", help)
            return _nothing(key)
        attrs = self._attrs(key, name, child, None)
        provides = _metadata(child).get("name", key)
        requires, triggers = self._names(key, child, "requires", []), self._names(key, child, "restartOn", [])
        options = {"provides": provides, "requires": requires, "restart_on": triggers}
        return self._declared(key, name, {**attrs, **options}, None)

    def _declared(self, key: str, type_name: str, attrs: Json, node: Node | None) -> Node:
        location = self.hook.position if node is None else node.position
        with self._blamed(key):
            node_type = registry.find(type_name, location)
            if node_type is not None:
                return declare_at(node_type, (), attrs, location).node
        return node if node is not None else _nothing(key)

    @contextmanager
    def _blamed(self, key: str) -> Iterator[None]:
        """Add the hook and the child to every problem that the block reports."""
        with collecting() as problems:
            yield
        for item in problems:
            report(self._with_hook(item, f"in the child `{key}` that the hook {self.hook.name} returned"))

    def _attrs(self, key: str, type_name: str, child: Json, node: Node | None) -> Json:
        """Return the attributes of a child. Unchanged attributes are the same objects as in the node."""
        spec = child.get("spec")
        if spec is None:
            spec = {}
        if not isinstance(spec, dict):
            self._refuse(key, "has a `spec` that is not a map")
            return {}
        node_type = registry.find(type_name, self.hook.position)
        fields = schema.of(node_type).fields if node_type is not None else {}
        sent = self.sent[key]["spec"] if node is not None else {}
        attrs: dict[str, Any] = {}
        if node is not None and node_type is not None:
            # A typed service drops what its type does not have, such as the node's own argument.
            attrs = {name: node.attrs[name] for name in schema.of(node_type).arguments if name in node.attrs}
        for name, value in spec.items():
            plain = schema.plain(name)
            if node is not None and name in sent and _same(value, sent[name]):
                attrs[name] = node.attrs[name]
            elif plain in OPTIONS and plain not in fields:
                self._refuse(key, f"has `{name}` in its `spec`", "write requires and restartOn beside the spec")
            elif value is not None:
                withheld = self.withheld[key].get(name) if node is not None else None
                try:
                    attrs[name] = (withheld or Held({})).restored(value)
                except NotOurs as error:
                    self._refuse(key, f"has `{name}`, where {error}", "return a marker where it was sent, or a value")
        return attrs

    def _names(self, key: str, child: Json, field: str, before: Any) -> list[str]:
        """Return a list of names; `before` if the child has none, because services drop unknown fields."""
        names = child.get(field)
        if names is None:
            return list(before)
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            self._refuse(key, f"has a `{field}` that is not a list of names")
            return list(before)
        return names


def _by_key(nodes: list[Node], hook: Registration) -> dict[str, Node]:
    """Return key in the request → node, in the graph's order.

    :raises InvalidInput: a key of the registration is ambiguous
    """
    aliases = hook.http.children if hook.http is not None else {}
    names: dict[str, str] = {}
    for key, pattern in aliases.items():
        matching = [node.provides for node in nodes if node.provides == pattern]
        matching = matching or [node.provides for node in nodes if fnmatchcase(node.provides, pattern)]
        if len(matching) > 1:
            detail = f"the child `{key}` could be {', '.join(matching[:5])}{', …' if len(matching) > 5 else ''}"
            raise InvalidInput([problem("SC0610", detail, "write the name of one of them", hook.position)])
        if matching and matching[0] in names:
            detail = f"{matching[0]} would be the child `{names[matching[0]]}` and the child `{key}`"
            raise InvalidInput([problem("SC0610", detail, "keep one of them", hook.position)])
        if matching:
            names[matching[0]] = key
    keyed = {names.get(node.provides, node.provides): node for node in nodes}
    if len(keyed) < len(nodes):
        key = next(key for name, key in names.items() if any(node.provides == key != name for node in nodes))
        detail = f"the child `{key}` could be {keyed[key].provides} and the node of that name"
        raise InvalidInput([problem("SC0610", detail, "choose another key", hook.position)])
    return keyed


def _is_ours(child: Json) -> bool:
    """Return whether a new child becomes a node. Scoby's form factors ignore unknown children."""
    return child.get("apiVersion") == API_VERSION


def _metadata(child: Json) -> Json:
    metadata = child.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _nothing(key: str) -> Node:
    """Return a placeholder for a refused child, whose problem was reported."""
    return gap("", key).node


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Unlike in Python, 1 differs from true."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
