"""From a graph to what is sent to the host: checked, prepared, layered, plain JSON."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from pyrsistent import PMap, PVector, pmap, pvector

from statecfg import problems
from statecfg.graph import claims, contradictions, graph, opaque
from statecfg.graph.graph import Graph, Node
from statecfg.graph.types import MAX_DEPTH
from statecfg.playbook.context import WireContext
from statecfg.playbook.user_code import explained
from statecfg.problems import InvalidInput, Problem, problem, tokens
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.values import kind_of, show
from statecfg.remote.wire.frames import INLINE, encode_value

__all__ = ["Definition", "WireContext", "compile_graph"]

PLAIN = frozenset((str, int, bool, float, type(None)))
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Definition:
    """What a host is to be, ready to be sent.

    :param layers: wire nodes, in layers
    :param blobs: content that the host may ask for, by SHA-256
    :param types: names of the node types in it, sorted
    :param secrets: name → value of the secrets that went into it
    :param digest: SHA-256 over the layers' canonical JSON, without positions
    """

    layers: list[list[Json]]
    blobs: dict[str, Blob] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    digest: str = ""


def for_undoing(definition: Definition) -> Definition:
    """Return what a host needs of a definition to undo all of it: the nodes whose attributes hold a secret.

    The host's ledger keeps masks in their place.
    """
    values = tuple(definition.secrets.values())
    layers = [[node for node in layer if _mentions(node.get("attrs"), values)] for layer in definition.layers]
    return Definition([layer for layer in layers if layer], secrets=definition.secrets)


def _mentions(value: Any, texts: tuple[str, ...]) -> bool:
    """Tell whether one of `texts` stands somewhere in a plain value; content is not looked into."""
    if isinstance(value, str):
        return any(text in value for text in texts)
    if isinstance(value, Mapping):
        return "$blob" not in value and any(_mentions(item, texts) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, texts) for item in value)


def compile_graph(given: Graph, context: WireContext) -> Definition:
    """Return the definition of a graph for one host. Raises InvalidInput with everything that is wrong."""
    with _uncollected():
        return _compiled(list(given.nodes()), context)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the cycle collector from walking the nodes again and again while more are made, none of them garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compiled(nodes: list[Node], context: WireContext) -> Definition:
    found = graph.check(nodes)
    if len(nodes) > graph.MAX_NODES:
        raise InvalidInput(found)
    try:
        with explained("finding what nodes are about", nodes[0].position if nodes else NOWHERE):
            found += claims.check(nodes)
            found += contradictions.check(nodes)
    except InvalidInput as error:
        found += error.problems
    layers = [nodes]
    try:
        layers = layers if found else graph.in_layers(nodes)
    except InvalidInput as error:
        found += error.problems
    packer = _Packer(context)
    with opaque.recording() as used:
        wire = [[packer.pack(node) for node in layer] for layer in layers]
    if found or packer.found:
        raise InvalidInput(found + packer.found)
    secrets = {name: value.reveal() for name, value in used.items()}
    return Definition(wire, packer.blobs, sorted(packer.methods), secrets, digest(wire))


def digest(layers: list[list[Json]]) -> str:
    """Return the SHA-256 of the layers' canonical JSON: keys sorted, no spaces, one layer per line.

    Where nodes are written is left out: a playbook in which lines have moved means what it meant.
    """
    total = hashlib.sha256()
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    for layer in layers:
        total.update(encode([{**node, "position": ""} for node in layer]).encode())
        total.update(b"\n")
    return total.hexdigest()


class _Packer:
    """Makes wire nodes, and gathers on the way the content and what is wrong."""

    def __init__(self, context: WireContext) -> None:
        self.context = context
        self.found: list[Problem] = []
        self.blobs: dict[str, Blob] = {}
        self.methods: dict[str, Callable[[Node], Any] | None] = {}
        self.places: dict[SourceLocation, str] = {}

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
        with opaque.recording() as used:
            if prepare is not None:
                sent = self._prepared(node, prepare)
                if sent is None:
                    return wire
        for key in ("requires", "triggers", "produces_ops"):
            names = getattr(node, key)
            if names:
                wire[key] = list(names)
        try:
            # Sorted, since the order of a pmap is another in every process.
            given = opaque.found(sent["attrs"])
            attrs = {key: value for key, value in sorted(self._map(given).items()) if key != "type"}
            options = self._map(node.options) if node.options else None
        except (_CantSend, tokens.Lost) as error:
            code = "SC0117" if isinstance(error, _CantSend) else "SC0423"
            self.found.append(problem(code, f"{node.provides}: {error}", error.help, node.position))
            return wire
        if attrs:
            wire["attrs"] = attrs
        hides = _hiding(node, given, used)
        if hides:
            wire["hides"] = hides
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
        given = node.attrs.iteritems()
        # Nearly all values are plain, and there may be a hundred thousand nodes: only the others are looked into.
        if any(opaque.holds(value) for _, value in given if type(value) not in PLAIN):
            node = node.replace(attrs=pmap({key: _revealed(value) for key, value in node.attrs.items()}))
        try:
            with problems.collecting() as found, _of_author(node):
                sent = prepare(node)
        except InvalidInput as error:
            self._placed(error.problems, node)
            return None
        except (ValueError, OSError) as error:
            help = getattr(error, "help", "")
            found, sent = [problem("SC0116", f"{node.provides}: {error}", help, node.position)], None
        self._placed(found, node)
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

    def _placed(self, found: list[Problem], node: Node) -> None:
        self.found.extend(item if item.places else replace(item, places=(node.position,)) for item in found)

    def _plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if depth > MAX_DEPTH:
            raise _CantSend(f"lists and maps inside each other more than {MAX_DEPTH} deep")
        if isinstance(value, Mapping):
            return self._map(value, depth + 1)
        if isinstance(value, (list, tuple, PVector)):
            return [self._plain(item, depth + 1) for item in value]
        if isinstance(value, (Blob, bytes)):
            return encode_value(Blob.of(value), INLINE, self.blobs)
        if isinstance(value, opaque.Value):
            return value.reveal()
        if isinstance(value, (str, PurePath)):
            return str(value)
        if isinstance(value, (int, float)):
            return kind.__base__(value) if kind.__base__ in (int, float) else value
        raise _CantSend(
            f"{kind_of(value)} can't be sent to a host: {show(value)}",
            "give text, numbers, lists or maps, or let the type's to_wire turn it into them",
        )

    def _map(self, given: Mapping[str, Any], depth: int = 0) -> Json:
        pairs = given.iteritems() if isinstance(given, PMap) else given.items()
        return {_key(key): value if type(value) in PLAIN else self._plain(value, depth) for key, value in pairs}


def _revealed(value: Any) -> Any:
    """Return a value of a node with its secrets in the open, as a type's to_wire needs them."""
    if isinstance(value, opaque.Value):
        return value.reveal()
    if isinstance(value, Mapping):
        return MappingProxyType({key: _revealed(item) for key, item in value.items()})
    if isinstance(value, (list, tuple, PVector)):
        return pvector(map(_revealed, value))
    return value


def _hiding(node: Node, sent: Mapping[str, Any], used: Mapping[str, opaque.Secret]) -> list[str]:
    """Return the names of the attributes that hold secrets, of which the host's ledger keeps none.

    :param sent: the attributes as `to_wire` left them
    :param used: the secrets that were revealed meanwhile
    """
    found = {name for name, value in node.attrs.items() if type(value) not in PLAIN and opaque.holds(value)}
    found |= {name for name, value in sent.items() if type(value) not in PLAIN and opaque.holds(value)}
    values = [each.reveal() for each in list(used.values())]
    if values:
        made = {name: value for name, value in sent.items() if value is not node.attrs.get(name) and value is not None}
        found |= {name for name, value in made.items() if _holds_one(value, values)}
    return sorted(name for name in found if sent.get(name) is not None)


def _holds_one(value: Any, secrets: list[str]) -> bool:
    """Return whether one of the secrets stands in a value, which may be content, a list or a map."""
    if isinstance(value, Mapping):
        return any(_holds_one(item, secrets) for item in value.values())
    if isinstance(value, (list, tuple, PVector)):
        return any(_holds_one(item, secrets) for item in value)
    if isinstance(value, (Blob, bytes)):
        return Blob.of(value).holds([secret.encode("utf-8", "surrogatepass") for secret in secrets])
    return isinstance(value, str) and any(secret in value for secret in secrets)


def _of_author(node: Node) -> AbstractContextManager[None]:
    return explained(f"preparing {node.provides}", node.position, ValueError, OSError)


class _CantSend(StatecfgError):
    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


def _key(key: Any) -> str:
    if type(key) is str and key[:1] != "$":
        return key
    if not isinstance(key, str):
        raise _CantSend(f"the key of a map must be text, got {kind_of(key)}: {show(key)}", "put it in quotes")
    return "$" + key if key.startswith("$") else str(key)  # `$blob` stands for content, see `decode_value`
