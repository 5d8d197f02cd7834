"""Compile a graph into the definition for one host: validated, prepared, in layers, as plain JSON."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrsistent import PMap, PVector, pmap, pvector

from statecfg.graph import (
    contradictions,
    generated,
    host_conditions,
    identity,
    later,
    on_host,
    opaque,
    outputs,
    references,
)
from statecfg.graph.automatic import Automatic
from statecfg.graph.generated import GeneratedSecret
from statecfg.graph.graph import Graph
from statecfg.graph.layers import check
from statecfg.graph.nodes import EMPTY_MAP, MAX_NODES, Node
from statecfg.graph.ordering import NodeOrder, ordered
from statecfg.graph.types import MAX_DEPTH
from statecfg.playbook import reboots, repeated
from statecfg.playbook.context import WireContext
from statecfg.playbook.definition import Definition
from statecfg.playbook.user_code import explained
from statecfg.playbook.wire_node import WireNode
from statecfg.problems import InvalidInput, Problem, collecting, problem, tokens
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.wrong_values import show, type_words
from statecfg.remote.wire.frames import INLINE, encode_value

if TYPE_CHECKING:
    pass

__all__ = ["Definition", "WireContext", "WireNode", "compile_graph"]

PLAIN = frozenset((str, int, bool, float, type(None)))


def compile_graph(graph: Graph, context: WireContext) -> Definition:
    """Return the definition of a graph for one host.

    :raises InvalidInput: with all problems of the graph
    """
    with _uncollected():
        nodes, problems = references.expand(list(graph.nodes()), graph.known_labels)
        return _compiled(nodes, problems, context)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would visit all nodes repeatedly while none of them is garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _compiled(nodes: list[Node], problems: list[Problem], context: WireContext) -> Definition:
    problems = problems + check(nodes)
    if len(nodes) > MAX_NODES:
        raise InvalidInput(problems)
    owners: dict[str, list[Node]] = {}
    try:
        with explained("finding the identities of nodes", nodes[0].position if nodes else NOWHERE):
            owners = identity.owners(nodes)
            problems += identity.check(owners)
            problems += contradictions.check(nodes)
    except InvalidInput as error:
        problems += error.problems
    order = NodeOrder([nodes], {}, ())
    try:
        with explained("finding what nodes need", nodes[0].position if nodes else NOWHERE):
            order = order if problems else ordered(nodes, owners)
    except InvalidInput as error:
        problems += error.problems
        if any(found.code == "SC0115" for found in error.problems):
            raise InvalidInput(problems) from None  # preparing so many nodes takes longer than everything before
    packer = _Packer(context, order.automatic)
    with opaque.recording() as used:
        wire = [[packer.pack(node) for node in layer] for layer in order.layers]
        if packer.outputs:
            from statecfg.playbook import outputs as used_outputs  # few definitions use values of nodes

            order, wire = used_outputs.connected(nodes, owners, wire, packer.outputs, packer.problems)
        if packer.generated:
            from statecfg.playbook import producers  # takes time to import

            wire = producers.first(wire, packer.generated, packer.pack, packer.problems)
        wire = reboots.arranged(wire, nodes, packer.problems)
    if problems or packer.problems:
        raise InvalidInput(problems + packer.problems)
    secrets = {name: value.reveal() for name, value in used.items()}
    types = sorted({*packer.methods, *packer.readers})
    return Definition(wire, packer.blobs, types, secrets, digest(wire), order.automatic, order.left_out)


def digest(layers: list[list[WireNode]]) -> str:
    """Return the SHA-256 of the layers' canonical JSON: keys sorted, no spaces, one layer per line.

    Source positions are excluded, so moving lines in a playbook does not change the digest.
    """
    total = hashlib.sha256()
    encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
    for layer in layers:
        # Node by node, because the text of a whole layer takes much memory.
        for number, node in enumerate(layer):
            total.update(b"," if number else b"[")
            total.update(encode(_unplaced(node)).encode())
        total.update(b"]\n" if layer else b"[]\n")
    return total.hexdigest()


def _unplaced(node: WireNode) -> Mapping[str, Any]:
    unplaced = {**node, "position": ""}
    unplaced.pop("also", None)
    return unplaced


class _Packer:
    """Converts nodes to the wire format, and collects their content and problems."""

    def __init__(self, context: WireContext, automatic: Automatic) -> None:
        self.context, self.automatic = context, automatic
        self.problems: list[Problem] = []
        self.blobs: dict[str, Blob] = {}
        self.methods: dict[str, Callable[[Node], Any] | None] = {}
        self.locations: dict[SourceLocation, str] = {}
        self.generated: dict[str, list[GeneratedSecret]] = {}  # node → the generated secrets in it
        self.readers: set[str] = set()  # the node types that conditions need
        self.outputs: dict[str, dict[str, list[outputs.Output]]] = {}  # node → attribute → the values of nodes in it

    def pack(self, node: Node) -> WireNode:
        """Return a node in wire format; only part of it if it is broken or can't be prepared."""
        name = node.type
        wire: WireNode = {"provides": node.provides, "type": name}
        if node.broken:
            return wire
        if name not in self.methods:
            self.methods[name] = self._to_wire(name)
        prepare = self.methods[name]
        secretive = tokens.in_use() and bool(_secret_names(node.attrs))
        if secretive:
            self.problems.extend(later.problems(node))
        sent: Any = node
        with opaque.recording() as used:
            if prepare is not None:
                sent = self._prepared(node, prepare, secretive)
                if sent is None:
                    return wire
        more = self.automatic.get(node.provides, ())
        if node.requires or more:
            wire["requires"] = [*node.requires, *more]
        if node.triggers:
            wire["triggers"] = list(node.triggers)
        if node.produces_ops:
            wire["produces_ops"] = list(node.produces_ops)
        try:
            # Sorted, because the order of a pmap differs in each process.
            resolved = opaque.resolve_tokens(sent.attrs if type(sent) is Node else sent["attrs"])
            own: Mapping[str, Any] = node.options
            if own is not EMPTY_MAP and "for_each_host" in own:
                again = functools.partial(self._prepared, prepare=prepare or _same, secretive=secretive)
                resolved, own = repeated.attributes(node, resolved, again, self.problems)
            attrs = {key: value for key, value in sorted(self._map(resolved).items()) if key != "type"}
            options = self._map(own) if own is not EMPTY_MAP else None
        except (_CantSend, tokens.SecretError) as error:
            detail = f"{node.provides}: {opaque.mask_secrets(str(error))}"
            self.problems.append(problem(error.code, detail, error.help, *node.positions))
            return wire
        if attrs:
            wire["attrs"] = attrs
        if outputs.in_use():
            taken = {key: list(dict.fromkeys(outputs.found(value))) for key, value in resolved.items()}
            if any(taken.values()):
                self.outputs[node.provides] = {key: values for key, values in taken.items() if values}
        made: list[GeneratedSecret] = []
        if secretive or used:
            made = list(dict.fromkeys(generated.found((list(used.values()), node.attrs, resolved))))
        if made or name == "generate":
            self.generated[node.provides] = made
        hides = _hiding(node, resolved, used)
        if hides:
            wire["hides"] = hides
        wire["position"], *also = map(self._location, node.positions)
        if also:
            wire["also"] = also
        if prepare is not None and (also or len(node.uses) > 1 or node.provides in self.context.declared_again):
            self._compare(node, attrs)
        if options:
            wire["options"] = options
            self.readers |= host_conditions.readers(options)
        return wire

    def _location(self, location: SourceLocation) -> str:
        text = self.locations.get(location)
        if text is None:
            text = self.locations[location] = str(self.context.relative(location))
        return text

    def _compare(self, node: Node, attrs: Mapping[str, Any]) -> None:
        """Report if the declarations of a node differ in meaning: files and variables depend on source locations."""
        for variant, context in self.context.variants(node):
            packer = _Packer(context, {})
            other = packer.pack(variant).get("attrs", {})
            self.problems.extend(packer.problems)
            names = [name for name in sorted({*attrs, *other}) if attrs.get(name) != other.get(name)]
            if names and not packer.problems:
                detail = f"the declarations of {node.provides} have the same attributes, but give different results: "
                detail += ", ".join(f"`{name}`" for name in names)
                help = "name the same files and pass the same `vars` in all of them, or keep one of them"
                self.problems.append(problem("SC0110", detail, help, *node.positions))
                return

    def _to_wire(self, name: str) -> Callable[[Node], Any] | None:
        node_type = REGISTRY.get(name)
        function = node_type.methods.get("to_wire") if node_type is not None else None
        if function is None or len(inspect.signature(function).parameters) < 2:
            return function
        with_context = function
        return lambda node: with_context(node, self.context)

    def _prepared(self, node: Node, prepare: Callable[[Node], Any], secretive: bool) -> Any:
        if secretive:
            node = node.replace(attrs=pmap({key: _revealed(value) for key, value in node.attrs.items()}))
        try:
            with collecting() as reported, _of_author(node):
                sent = prepare(node)
        except InvalidInput as error:
            self._placed(error.problems, node)
            return None
        except (ValueError, OSError) as error:
            help = getattr(error, "help", "")
            reported, sent = [problem("SC0116", f"{node.provides}: {error}", help, *node.positions)], None
        self._placed(reported, node)
        if reported:
            return None
        try:
            if type(sent) is Node or isinstance(sent["attrs"], Mapping):
                return sent
        except (TypeError, KeyError):
            pass  # the result is not a node, which the problem below reports
        detail = f"to_wire of {node.type} returned {type_words(sent)}, not a node, for {node.provides}"
        self.problems.append(problem("SC0119", detail, "return the node, or node.with_attrs(…)", *node.positions))
        return None

    def _placed(self, reported: list[Problem], node: Node) -> None:
        for item in reported:
            detail = opaque.mask_secrets(item.detail)  # `to_wire` gets the values of secrets
            self.problems.append(replace(item, detail=detail, locations=item.locations or node.positions))

    def _plain(self, value: Any, depth: int) -> Any:
        value_type = type(value)
        if value_type in PLAIN:
            return value
        if depth > MAX_DEPTH:
            raise _CantSend(f"lists and maps nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, Mapping):
            return self._map(value, depth + 1)
        if isinstance(value, (list, tuple, PVector)):
            return [self._plain(item, depth + 1) for item in value]
        if isinstance(value, (Blob, bytes)):
            content = Blob.of(value)
            return encode_value(content, -1 if content.data is None else INLINE, self.blobs)
        if isinstance(value, opaque.Value):
            return value.reveal()
        if isinstance(value, (str, PurePath)):
            return str(value)
        if isinstance(value, (int, float)):
            return value_type.__base__(value) if value_type.__base__ in (int, float) else value
        raise _CantSend(
            f"{type_words(value)} can't be sent to a host: {show(value)}",
            "use text, numbers, lists or maps, or convert the value in the node type's to_wire",
        )

    def _map(self, mapping: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
        pairs = mapping.iteritems() if isinstance(mapping, PMap) else mapping.items()
        return {
            key if type(key) is str and key[:1] != "$" else _key(key): (
                value if type(value) in PLAIN else self._plain(value, depth)
            )
            for key, value in pairs
        }


def _same(node: Node) -> Node:
    return node


def _revealed(value: Any) -> Any:
    """Return an attribute with its secrets revealed, for a node type's to_wire."""
    if isinstance(value, opaque.Value):
        return value.reveal()
    if isinstance(value, Mapping):
        return MappingProxyType({key: _revealed(item) for key, item in value.items()})
    if isinstance(value, (list, tuple, PVector)):
        return pvector(map(_revealed, value))
    return value


def _secret_names(attrs: Mapping[str, Any]) -> list[str]:
    """Return the names of the attributes whose values contain secrets.

    There may be a hundred thousand nodes, and nearly all values are plain: search only the others.
    """
    pairs = attrs.iteritems() if isinstance(attrs, PMap) else attrs.items()
    return [name for name, value in pairs if type(value) not in PLAIN and opaque.contains_secret(value)]


def _hiding(node: Node, sent: Mapping[str, Any], used: Mapping[str, opaque.Secret]) -> list[str]:
    """Return the names of the attributes that contain secrets. The host's ledger does not store them.

    :param sent: the attributes after `to_wire`
    :param used: the secrets that `to_wire` could use
    """
    if not tokens.in_use():
        return []
    names = {name for group in (node.attrs, sent) for name in _secret_names(group) if on_host.conceals(group[name])}
    values = [secret.reveal() for secret in list(used.values())]
    if values:
        changed = {
            name: value for name, value in sent.items() if value is not node.attrs.get(name) and value is not None
        }
        names |= {name for name, value in changed.items() if _holds_one(value, values)}
    return sorted(name for name in names if sent.get(name) is not None)


def _holds_one(value: Any, secrets: list[str]) -> bool:
    """Return whether a value contains one of the secrets. The value may be content, a list or a map."""
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
    code = "SC0117"

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _CantSend(f"the key of a map must be text, got {type_words(key)}: {show(key)}", "put it in quotes")
    return "$" + key if key.startswith("$") else str(key)  # the key `$blob` marks content, see `decode_value`
