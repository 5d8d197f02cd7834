"""The functions that the Hy macros of the Borg document expand into, on the controller and on hosts."""

from __future__ import annotations

import sys
from typing import Any, Callable, Mapping, Optional, Sequence, Union

from statecfg.remote.graph.above import above
from statecfg.remote.graph.acting import present
from statecfg.remote.graph.hy_lines import attribute
from statecfg.remote.graph.model import Keyword
from statecfg.remote.graph.nodetype import REGISTRY, NodeType, Schema, register
from statecfg.remote.graph.ops import Op

Clause = Sequence[Callable[[Any], Any]]

__all__ = ["Keyword", "merge_graphs", "name", "slurp", "spit", "zipmap"]

METHODS = {
    "check-node": "check",
    "to-wire": "to_wire",
    "from-wire": "from_wire",
    "identity": "identity",
    "needs": "needs",
    "validate": "validate",
    "blobs": "blobs",
    "remember": "remember",
    "undo": "undo",
}


def node_type(
    name: str,
    arguments: Sequence[str],
    required: Sequence[str],
    optional: Mapping[str, Any],
    produces_ops: Sequence[str],
    module: str,
    doc: Optional[str] = None,
) -> NodeType[...]:
    """Create and register a node type from the parts of the Borg document's `node-type` form."""
    schema = Schema(
        [attribute(parameter) for parameter in arguments],
        [attribute(parameter) for parameter in required],
        {attribute(parameter): default for parameter, default in optional.items()},
    )
    created: NodeType[...] = NodeType(name, schema=schema, produces_ops=produces_ops, module=module, doc=doc)
    frame = sys._getframe(1)
    created.written = (frame.f_code.co_filename, frame.f_lineno)
    return register(created)


def make_op(
    function: Callable[..., Any], name: str, parameters: Sequence[str], body: Sequence[Any], **options: Any
) -> Op:
    """Create the op of a `defop` form; its arguments have the names of the nodes' attributes."""
    return Op(function, name=name, parameters=[attribute(parameter) for parameter in parameters], body=body, **options)


def node_function(function: Callable[..., Any], parameters: Sequence[str]) -> Callable[[Any], Any]:
    """Return the second function of `defnodefn`, which takes the arguments from a node's attributes."""

    def from_node(node: Any) -> Any:
        attrs = node["attrs"]
        return function(*[attrs.get(attribute(parameter)) for parameter in parameters])

    return from_node


def make_validators(module: str, clauses: Mapping[str, Sequence[Clause]]) -> None:
    """Add validators to a module's node types, by attribute; on a host, do nothing."""
    if above.add_validators is not None:
        above.add_validators(module, {attribute(name): more for name, more in clauses.items()})


def method(node_type: Union[str, NodeType[...]], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a method of a node type.

    :param node_type: the node type or its name
    :param name: such as `check-node` or `to-wire`
    :raises NameError: if there is no such node type
    """
    if not isinstance(node_type, NodeType):
        if attribute(node_type) not in REGISTRY and node_type not in REGISTRY:
            raise NameError(f"unknown node type {node_type}")
        node_type = REGISTRY.get(node_type) or REGISTRY[attribute(node_type)]
    return node_type._register(METHODS[name], function)


def shell(machine: Any) -> Callable[..., Any]:
    """Return `sh` for an op's body: `(sh "program" "argument" :effect {…})` runs a program on the op's machine."""

    def sh(*argv: str, **options: Any) -> Any:
        return machine.run(list(argv), **options)

    return sh


def merge_graphs(*graphs: Any) -> Any:
    """Merge graphs into one with `statecfg.graph.graph.merge_graphs`. This works only on the controller."""
    return above.merge_graphs(*graphs)


def spit(path: str, content: Union[str, bytes]) -> Any:
    """Write `content` to `path` on the machine of the current action, or on this machine outside of an action."""
    return _machine().spit(path, content)


def slurp(path: str) -> Any:
    """Return the text of a file on the machine of the current action, or on this machine outside of an action."""
    return _machine().slurp(path)


def _machine() -> Any:
    return getattr(present, "machine", None) or above.this_machine()


def zipmap(keys: Sequence[Any], values: Sequence[Any]) -> Mapping[str, Any]:
    """Return a map of keys to values, in order; replace keywords by their names."""
    return {attribute(str(getattr(key, "name", key))): value for key, value in zip(keys, values)}


def name(value: Any) -> str:
    """Return the name of a keyword, or a string itself, as a plain string."""
    return str.__str__(value) if isinstance(value, str) else str(value.name)
