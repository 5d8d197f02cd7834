"""The functions that the Hy macros of the Borg document expand into, on the controller and on hosts."""

from __future__ import annotations

import sys
import threading

from statecfg.remote.graph.model import Keyword
from statecfg.remote.graph.names import named
from statecfg.remote.graph.nodetype import REGISTRY, NodeType, Schema, register
from statecfg.remote.graph.ops import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple, Union

    Clause = Sequence[Callable[[Any], Any]]

__all__ = [
    "Keyword",
    "hyx_falseXquestion_markX",
    "hyx_keywordXquestion_markX",
    "hyx_mapXquestion_markX",
    "hyx_nilXquestion_markX",
    "hyx_numberXquestion_markX",
    "hyx_seqXquestion_markX",
    "hyx_stringXquestion_markX",
    "hyx_trueXquestion_markX",
    "merge_graphs",
    "name",
    "slurp",
    "some_fn",
    "spit",
    "zipmap",
]

METHODS = {
    "check-node": "check",
    "to-wire": "to_wire",
    "from-wire": "from_wire",
    "claims": "claims",
    "needs": "needs",
    "validate": "validate",
    "blobs": "blobs",
    "remember": "remember",
    "undo": "undo",
}


def attribute(written: str) -> str:
    """Return statecfg's name for a name in Hy: `restart-on` becomes `restart_on`."""
    return written.lstrip(":").replace("-", "_")


def unmangled(identifier: str) -> str:
    """Return the Hy name of a Python identifier: `hyx_blockXquestion_markX` becomes `block?`."""
    if not identifier.startswith("hyx_"):
        return identifier
    import re
    from unicodedata import lookup

    def character(match: Any) -> str:
        title = match[1]
        return chr(int(title[1:], 16)) if title[:1] == "U" else lookup(title.replace("_", " ").replace("H", "-"))

    return re.sub("X([^X]+)X", character, identifier[4:])


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
    add = named("add_validators")
    if add is not None:
        add(module, {attribute(name): more for name, more in clauses.items()})


def method(node_type: Union[str, NodeType[...]], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a method of a node type.

    :param node_type: the node type or its name
    :param name: such as `check-node` or `to-wire`
    :raises NameError: if there is no such node type
    """
    if not isinstance(node_type, NodeType):
        if attribute(node_type) not in REGISTRY and node_type not in REGISTRY:
            raise NameError("there is no node type %s" % node_type)
        node_type = REGISTRY.get(node_type) or REGISTRY[attribute(node_type)]
    return node_type._register(METHODS[name], function)


def shell(machine: Any) -> Callable[..., Any]:
    """Return `sh` for an op's body: `(sh "program" "argument" :effect {…})` runs a program on the op's machine."""

    def sh(*argv: str, **options: Any) -> Any:
        return machine.run(list(argv), **options)

    return sh


def merge_graphs(*graphs: Any) -> Any:
    """Merge graphs into one with `statecfg.graph.graph.merge_graphs`. This works only on the controller."""
    return named("merge_graphs")(*graphs)


_present = threading.local()  # the machine on which the `:fn` of a plain map acts while it runs


def acting_on(machine: Any, function: Callable[[], Any]) -> Any:
    """Call a function without arguments and return its result; `spit` and `slurp` in it act on `machine`."""
    before = getattr(_present, "machine", None)
    _present.machine = machine
    try:
        return function()
    finally:
        _present.machine = before


def _machine() -> Any:
    return getattr(_present, "machine", None) or named("RealMachine")()


def spit(path: str, content: Union[str, bytes]) -> Any:
    """Write `content` to `path` on the machine of the current action, or on this machine outside of an action."""
    return _machine().spit(path, content)


def slurp(path: str) -> Any:
    """Return the text of a file on the machine of the current action, or on this machine outside of an action."""
    return _machine().slurp(path)


def written_at(module: Mapping[str, Any], file: str, line: int) -> Tuple[str, int]:
    """Return the file and line in the source of a line of a module, which may be compiled from Hy.

    :param module: the module's globals; a module compiled from Hy has its table of lines there
    """
    written, table = module.get("__statecfg_lines__") or (file, {})
    nearest = max((here for here in table if here <= line), default=None)
    return written, line if nearest is None else table[nearest]


def zipmap(keys: Sequence[Any], values: Sequence[Any]) -> Dict[str, Any]:
    """Return a map of keys to values, in order; replace keywords by their names."""
    return {attribute(str(getattr(key, "name", key))): value for key, value in zip(keys, values)}


def _predicate(title: str, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    test.__name__ = test.__qualname__ = title
    return test


def _keyword(value: Any) -> bool:
    # Plain Hy reads a keyword as Hy's own class, which does not derive from str. Only its name is known here.
    return isinstance(value, Keyword) or type(value).__name__ == "Keyword"


hyx_mapXquestion_markX = _predicate("map?", lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"))
hyx_trueXquestion_markX = _predicate("true?", lambda value: value is True)
hyx_falseXquestion_markX = _predicate("false?", lambda value: value is False)
hyx_nilXquestion_markX = _predicate("nil?", lambda value: value is None)
hyx_keywordXquestion_markX = _predicate("keyword?", _keyword)
hyx_stringXquestion_markX = _predicate("string?", lambda value: isinstance(value, str) and not _keyword(value))
hyx_numberXquestion_markX = _predicate(
    "number?", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
)
hyx_seqXquestion_markX = _predicate(
    "seq?",
    lambda value: hasattr(value, "__iter__") and not hasattr(value, "keys") and not isinstance(value, (str, bytes)),
)


def some_fn(*predicates: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Return a predicate that is true if any of `predicates` is."""
    title = "(some-fn %s)" % " ".join(predicate.__name__ for predicate in predicates)
    return _predicate(title, lambda value: any(predicate(value) for predicate in predicates))


def name(value: Any) -> str:
    """Return the name of a keyword, or a string itself, as a plain string."""
    return str.__str__(value) if isinstance(value, str) else str(value.name)
