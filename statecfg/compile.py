"""From a graph to what is sent to the host: checked, prepared, layered, plain JSON."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from pyrsistent import PVector, pmap, pvector

from statecfg import claims, graph, problems
from statecfg.context import WireContext
from statecfg.graph import Graph, Node
from statecfg.positions import Place
from statecfg.problems import InvalidInput, Problem, problem
from statecfg.remote.model import Blob
from statecfg.remote.nodetype import REGISTRY
from statecfg.remote.values import kind_of, show
from statecfg.remote.wire import INLINE, encode_value
from statecfg.types import hidden

__all__ = ["Definition", "WireContext", "compile_graph"]

MAX_DEPTH = 100  # of lists and maps inside an attribute
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a host is to be, ready to be sent.

    :param layers: wire nodes, in layers
    :param blobs: content that the host may ask for, by SHA-256
    :param types: names of the node types in it, sorted
    :param secrets: name → value of the secrets that went into it
    :param digest: SHA-256 over the layers' canonical JSON
    """

    layers: list[list[Json]]
    blobs: dict[str, Blob] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    digest: str = ""


def compile_graph(given: Graph, context: WireContext) -> Definition:
    """Return the definition of a graph for one host. Raises InvalidInput with everything that is wrong."""
    nodes = list(given.nodes())
    found = graph.check(nodes)
    if not found or found[0].code != "SC0115":
        found += claims.check(nodes)
    layers: list[list[Node]] = []
    try:
        layers = graph.in_layers(nodes) if not found else []
    except InvalidInput as error:
        found += error.problems
    packer = _Packer(context)
    wire = [[packer.pack(node) for node in layer] for layer in layers or [nodes]]
    if found or packer.found:
        raise InvalidInput(found + packer.found)
    return Definition(wire, packer.blobs, sorted(packer.methods), packer.secrets, digest(wire))


def digest(layers: list[list[Json]]) -> str:
    """Return the SHA-256 of the layers' canonical JSON: keys sorted, no spaces, one layer per line."""
    total = hashlib.sha256()
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    for layer in layers:
        for node in layer:
            total.update(encode(node).encode())
        total.update(b"\n")
    return total.hexdigest()


class _Packer:
    """Makes wire nodes, and gathers on the way the content, the secrets and what is wrong."""

    def __init__(self, context: WireContext) -> None:
        self.context = context
        self.found: list[Problem] = []
        self.blobs: dict[str, Blob] = {}
        self.secrets: dict[str, str] = {}
        self.methods: dict[str, Callable[[Node], Any] | None] = {}
        self.places: dict[Place, str] = {}

    def pack(self, node: Node) -> Json:
        """Return the wire form of a node; a broken one, or one that can't be prepared, as far as it goes."""
        name = node.type
        wire: Json = {"provides": node.provides, "type": name}
        if node.broken:
            return wire
        if name not in self.methods:
            self.methods[name] = self._to_wire(name)
        prepare = self.methods[name]
        sent: Any = node
        if prepare is not None:
            sent = self._prepared(node, prepare)
            if sent is None:
                return wire
        for key in ("requires", "triggers", "produces_ops"):
            names = getattr(node, key)
            if names:
                wire[key] = list(names)
        try:
            attrs = {key: self._plain(value, 0) for key, value in sent["attrs"].items() if key != "type"}
            options = {key: self._plain(value, 0) for key, value in node.options.items()}
        except _CantSend as error:
            self.found.append(problem("SC0117", f"{node.provides}: {error}", error.help, node.position))
            return wire
        if attrs:
            wire["attrs"] = attrs
        position = self.places.get(node.position)
        if position is None:
            position = self.places[node.position] = str(self.context.relative(node.position))
        wire["position"] = position
        if options:
            wire["options"] = options
        return wire

    def _to_wire(self, name: str) -> Callable[[Node], Any] | None:
        kind = REGISTRY.get(name)
        function = kind.methods.get("to_wire") if kind is not None else None
        if function is None or len(inspect.signature(function).parameters) < 2:
            return function
        two = function
        return lambda node: two(node, self.context)

    def _prepared(self, node: Node, prepare: Callable[[Node], Any]) -> Any:
        if "statecfg.secrets" in sys.modules:
            node = node.replace(attrs=self._revealed(node.attrs))
        try:
            with problems.collecting() as found:
                sent = prepare(node)
        except InvalidInput as error:
            found, sent = error.problems, None
        except (ValueError, OSError) as error:
            help = getattr(error, "help", "")
            found, sent = [problem("SC0116", f"{node.provides}: {error}", help, node.position)], None
        except Exception as error:
            error.add_note(f"while preparing {node.provides} ({node.position})")
            raise
        self.found.extend(item if item.places else _placed(item, node) for item in found)
        if found:
            return None
        try:
            if isinstance(sent["attrs"], Mapping):
                return sent
        except (TypeError, KeyError):
            pass  # what came back is no node, and the problem below says so
        detail = f"to_wire of {node.type} returned {kind_of(sent)}, not a node, for {node.provides}"
        self.found.append(problem("SC0119", detail, "return the node, or node.with_attrs(…)", node.position))
        return None

    def _plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None or kind is float:
            return value
        if depth > MAX_DEPTH:
            raise _CantSend(f"lists and maps inside each other more than {MAX_DEPTH} deep")
        if isinstance(value, Mapping):
            return {_key(key): self._plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple, PVector)):
            return [self._plain(item, depth + 1) for item in value]
        if isinstance(value, (Blob, bytes)):
            return encode_value(Blob.of(value), INLINE, self.blobs)
        if hidden(value):
            return self._reveal(value)
        if isinstance(value, (str, PurePath)):
            return str(value)
        if isinstance(value, (int, float)):
            return kind.__base__(value) if kind.__base__ in (int, float) else value
        raise _CantSend(
            f"{kind_of(value)} can't be sent to a host: {show(value)}",
            "give text, numbers, lists or maps, or let the type's to_wire turn it into them",
        )

    def _reveal(self, secret: Any) -> str:
        value: str = secret.reveal()
        self.secrets[secret.name] = value
        return value

    def _revealed(self, value: Any) -> Any:
        """Return a value of a node with its secrets in the open, as a type's to_wire needs them."""
        if hidden(value):
            return self._reveal(value)
        if isinstance(value, Mapping):
            return pmap({key: self._revealed(item) for key, item in value.items()})
        if isinstance(value, (list, tuple, PVector)):
            return pvector(map(self._revealed, value))
        return value


class _CantSend(Exception):
    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _CantSend(f"the key of a map must be text, got {kind_of(key)}: {show(key)}", "put it in quotes")
    return "$" + key if key.startswith("$") else str(key)  # `$blob` stands for content, see `decode_value`


def _placed(item: Problem, node: Node) -> Problem:
    return Problem(item.code, item.summary, item.detail, item.help, (node.position,))
