"""The Borg document's words as functions: what the Hy macros expand into, on the controller and on hosts."""

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
    "validate": "validate",
    "blobs": "blobs",
    "remember": "remember",
    "undo": "undo",
}


def attribute(written: str) -> str:
    """Return the name under which statecfg knows what Hy writes as `written` (`restart-on` is `restart_on`)."""
    return written.lstrip(":").replace("-", "_")


def unmangled(identifier: str) -> str:
    """Return the name that Hy turned into a Python identifier (`hyx_blockXquestion_markX` is `block?`)."""
    if not identifier.startswith("hyx_"):
        return identifier
    import re
    from unicodedata import lookup

    def character(found: Any) -> str:
        title = found[1]
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
    """Make and register a node type from the parts of the document's `node-type` form."""
    schema = Schema(
        [attribute(each) for each in arguments],
        [attribute(each) for each in required],
        {attribute(each): default for each, default in optional.items()},
    )
    kind: NodeType[...] = NodeType(name, schema=schema, produces_ops=produces_ops, module=module, doc=doc)
    frame = sys._getframe(1)
    kind.written = (frame.f_code.co_filename, frame.f_lineno)
    return register(kind)


def make_op(
    function: Callable[..., Any], name: str, parameters: Sequence[str], body: Sequence[Any], **options: Any
) -> Op:
    """Make the op of a `defop` form, whose arguments are named as nodes' attributes are."""
    return Op(function, name=name, parameters=[attribute(each) for each in parameters], body=body, **options)


def node_function(function: Callable[..., Any], parameters: Sequence[str]) -> Callable[[Any], Any]:
    """Return the second function of `defnodefn`: it takes a node and finds the arguments among its attributes."""

    def from_node(node: Any) -> Any:
        attrs = node["attrs"]
        return function(*[attrs.get(attribute(each)) for each in parameters])

    return from_node


def make_validators(module: str, clauses: Mapping[str, Sequence[Clause]]) -> None:
    """Add to the validators of a module's node types, by attribute; on a host, do nothing."""
    add = named("add_validators")
    if add is not None:
        add(module, {attribute(name): more for name, more in clauses.items()})


def method(kind: Union[str, NodeType[...]], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a method (`check-node`, `to-wire`, …) of a node type, given itself or by its name."""
    if not isinstance(kind, NodeType):
        if attribute(kind) not in REGISTRY and kind not in REGISTRY:
            raise NameError("there is no node type %s" % kind)
        kind = REGISTRY.get(kind) or REGISTRY[attribute(kind)]
    return kind._register(METHODS[name], function)


def shell(machine: Any) -> Callable[..., Any]:
    """Return `sh` for an op's body: `(sh "program" "argument" :effect {…})` runs a program on the op's machine."""

    def sh(*argv: str, **options: Any) -> Any:
        return machine.run(list(argv), **options)

    return sh


def merge_graphs(*graphs: Any) -> Any:
    """Return one graph of several, as `statecfg.graph.graph.merge_graphs` does. Only on the controller."""
    return named("merge_graphs")(*graphs)


_present = threading.local()  # the machine that a plain map's `:fn` is to act on, while it is called


def acting_on(machine: Any, function: Callable[[], Any]) -> Any:
    """Call a function of no arguments, in which `spit` and `slurp` act on `machine`, and return what it returns."""
    before = getattr(_present, "machine", None)
    _present.machine = machine
    try:
        return function()
    finally:
        _present.machine = before


def _machine() -> Any:
    return getattr(_present, "machine", None) or named("RealMachine")()


def spit(path: str, content: Union[str, bytes]) -> Any:
    """Write `content` to `path` on the machine of the action that is being taken, else on this very one."""
    return _machine().spit(path, content)


def slurp(path: str) -> Any:
    """Return the text of the file `path` on the machine of the action that is being taken, else on this very one."""
    return _machine().slurp(path)


def written_at(module: Mapping[str, Any], file: str, line: int) -> Tuple[str, int]:
    """Return where a line of a module was written, for one that was compiled from Hy.

    :param module: the module's globals, in which the compiled source left its table of lines
    """
    written, table = module.get("__statecfg_lines__") or (file, {})
    nearest = max((here for here in table if here <= line), default=None)
    return written, line if nearest is None else table[nearest]


def zipmap(keys: Sequence[Any], values: Sequence[Any]) -> Dict[str, Any]:
    """Return a map of keys to values, in order; keywords become their names."""
    return {attribute(str(getattr(key, "name", key))): value for key, value in zip(keys, values)}


def _predicate(title: str, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    test.__name__ = test.__qualname__ = title
    return test


def _keyword(value: Any) -> bool:
    # Read by plain Hy, a keyword is Hy's own kind, which is no string; the class is known here by name only.
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
    """Return a predicate that holds where any of `predicates` does."""
    title = "(some-fn %s)" % " ".join(each.__name__ for each in predicates)
    return _predicate(title, lambda value: any(each(value) for each in predicates))


def name(value: Any) -> str:
    """Return a keyword's name, or a string as it is, as a plain string."""
    return str.__str__(value) if isinstance(value, str) else str(value.name)
