"""Node types: what a kind of node takes, how it crosses the wire, and how it is checked on the host."""

from __future__ import annotations

import sys

from statecfg.remote.graph.names import named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Generic, Optional, Sequence, Tuple

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
else:
    P = None

    class Generic:
        """Stands for `typing.Generic`, which hosts need not pay for."""

        def __class_getitem__(cls, item):  # noqa: ANN001, ANN204  # type checkers read the definition above
            return cls


CHECK_PARAMETERS = ("node", "nodes", "actions", "world")
REGISTRY: Dict[str, NodeType[...]] = {}


class Schema:
    """What a node of a type is given: the document's `:arguments`, `:required-attrs` and `:optional-attrs`."""

    __slots__ = ("arguments", "optional", "required")

    def __init__(self, arguments: Sequence[str], required: Sequence[str], optional: Dict[str, Any]) -> None:
        self.arguments = tuple(arguments)
        self.required = tuple(required)
        self.optional = dict(optional)


class NodeType(Generic[P]):
    """A kind of node. Calling it declares a node and returns its graph.

    :param name: the type's name; also the first part of the names of its nodes
    :param function: the signature that is the schema, for a type written in Python
    :param schema: the schema itself, for a type written in Hy
    :param produces_ops: names of the ops that its nodes may take
    """

    def __init__(
        self,
        name: str,
        function: Optional[Callable[..., Any]] = None,
        schema: Optional[Schema] = None,
        produces_ops: Sequence[str] = (),
        module: str = "",
        doc: Optional[str] = None,
    ) -> None:
        self.name, self.function, self.given_schema = name, function, schema
        self.produces_ops = tuple(produces_ops)
        self.module = module
        self.__name__ = name
        self.__doc__ = doc
        self.methods: Dict[str, Callable[..., Any]] = {}
        self.written: Optional[Tuple[str, int]] = None  # file and line of a `node-type` form

    def __call__(self, *args: P.args, **attrs: P.kwargs) -> Any:
        """Declare a node: positional arguments, then attributes by keyword or in one map.

        Raises `statecfg.problems.InvalidInput` where an argument or attribute is wrong. Only on the controller.
        """
        return named("declare")(self, args, attrs, sys._getframe(1))

    def check(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register `check_node`: from a node to its actions.

        `function` takes any of `node`, `nodes` (name → node), `actions` (a list of maps of name → actions, one per
        layer already computed) and `world` (the reading side of the host), by these names; or, with names of its
        own, the document's three in the document's order. Returns a list of actions, or a map with `actions` and
        one `shutdown_first`.
        """
        return self._register("check", function)

    def to_wire(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what the controller does to a node before it is sent: `function(node[, context]) -> node`."""
        return self._register("to_wire", function)

    def from_wire(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what the host does to a node when it arrives: `function(node[, world]) -> node`."""
        return self._register("from_wire", function)

    def claims(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register which real things a node claims: `function(attrs[, name]) -> list of "kind:identity"`.

        Two nodes that claim the same thing are an error. Without this a node claims `type:first argument`.
        """
        return self._register("claims", function)

    def validate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a check of the attributes together: `function(attrs)` raises ValueError where they contradict."""
        return self._register("validate", function)

    def blobs(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register which content the host lacks: `function(node, world) -> list of Blob`; all of it without this."""
        return self._register("blobs", function)

    def remember(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what of a real thing must be known to undo a node: `function(node, world[, others]) -> map`.

        `others` has the attributes and the memory of all nodes of the type that are under management on the host.

        Called once, before the node's first action, when it comes under management. The map holds JSON values and
        content (`Blob`); the host's ledger keeps it, so it must hold no secret. What it has under `context` is about
        the thing's surroundings: where only that differs, the thing itself has not changed.
        """
        return self._register("remember", function)

    def learn(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what undoing a node must know of its own doing: `function(node, memory, world) -> map`.

        Called after a run that changed the node. What it returns is added to the memory.
        """
        return self._register("learn", function)

    def undo(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how a node goes that left the definition.

        `function(node, memory, world[, leaving[, staying]]) -> actions`: `node` has the attributes last applied,
        without secrets and content; `memory` is what `remember` returned, with what `learn` added; `leaving` has all
        nodes, by name, that go in this run; `staying` is the set of claims of all that stays under management. As with
        a check, nothing may be left to do once its actions are taken. Without this a node is only forgotten.
        """
        return self._register("undo", function)

    def on_removal(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how a real thing that stays answers a removal: `function(node, near, world) -> actions`.

        `near` has the nodes, by name, that go in this run and that `node` required. Those of its `restart_on` that
        do change by that are in `world.triggered_by`. Called after all removals; with `world.acted`, afterwards, it
        raises CheckError where the thing is not as it should be.
        """
        return self._register("on_removal", function)

    def lasting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what is looked at again at the end of a run: `function(node, ops) -> (seconds, check) or None`.

        `ops` names the actions that were taken. So many seconds (0: not at all) after the last of them, or later,
        `check(world, since)` returns why the thing is not as it was left, "" where it is; `since` is when the last
        action ended (`time.monotonic()`). A node that did not converge is asked, too.
        """
        return self._register("lasting", function)

    def _register(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if method in self.methods:
            raise TypeError("%s has a %s already" % (self.name, method))
        self.methods[method] = function
        return function

    def wanted(self) -> Tuple[str, ...]:
        """Return what the type's check asks for, in the order in which it takes it."""
        code = self.methods["check"].__code__
        names = code.co_varnames[: code.co_argcount]
        # With names of its own it takes the document's, in the document's order.
        return names if all(name in CHECK_PARAMETERS for name in names) else CHECK_PARAMETERS[: len(names)]

    def looks(self) -> bool:
        """Tell whether the check looks at the host: one that does not says what to do, and never that it is done."""
        return "check" not in self.methods or "world" in self.wanted()

    def run_check(self, node: Any, nodes: Any, actions: Any, world: Any) -> Any:
        """Call the type's check with what it asks for; a type without one never has anything to do."""
        if "check" not in self.methods:
            return []
        given = {"node": node, "nodes": nodes, "actions": actions, "world": world}
        return self.methods["check"](*[given[name] for name in self.wanted()])

    def run_claims(self, node: Any) -> Any:
        """Call the type's claims; None for a type without them."""
        function = self.methods.get("claims")
        return None if function is None else function(*(node.attrs, node.provides)[: function.__code__.co_argcount])

    def compares(self) -> bool:
        """Tell whether remembering a node takes what is remembered of the others of its type."""
        function = self.methods.get("remember")
        return function is not None and function.__code__.co_argcount > 2

    def run_remember(self, node: Any, world: Any, others: Any = ()) -> Any:
        """Call the type's remember with what it takes; a type without one remembers nothing."""
        function = self.methods.get("remember")
        return {} if function is None else function(*(node, world, others)[: function.__code__.co_argcount])

    def run_learn(self, node: Any, memory: Any, world: Any) -> Any:
        """Call the type's learn; a type without one learns nothing."""
        function = self.methods.get("learn")
        return function(node, memory, world) if function is not None else {}

    def run_undo(self, node: Any, memory: Any, world: Any, leaving: Any, staying: Any = frozenset()) -> Any:
        """Call the type's undo with what it takes; without one there is nothing to be done."""
        function = self.methods.get("undo")
        if function is None:
            return []
        return function(*(node, memory, world, leaving, staying)[: function.__code__.co_argcount])

    def __repr__(self) -> str:
        return "<node type %s>" % self.name


def register(kind: NodeType[P]) -> NodeType[P]:
    """Enter a node type under its name; the newest definition of a name holds, so a module can be reloaded."""
    REGISTRY[kind.name] = kind
    return kind


if TYPE_CHECKING:

    def node_type(function: Callable[P, None]) -> NodeType[P]:
        """Make the signature of a function a node type."""
        raise NotImplementedError

else:

    def node_type(function):  # noqa: ANN001, ANN201  # type checkers read the definition above
        """Make the signature of a function a node type.

        Positional parameters are the document's arguments; keyword-only parameters without a default are required
        attributes, those with a default are optional; annotations name the validators (`statecfg.remote.graph.values`).
        The docstring is the type's page in the reference. The body is never run.
        """
        return register(
            NodeType(function.__name__, function=function, module=function.__module__, doc=function.__doc__)
        )


OPTIONS: Tuple[str, ...] = ("provides", "requires", "restart_on", "tags", "protect")


class Table:
    """A facet of a host: a lazily loaded map of key → fields, such as the packages installed."""

    __slots__ = ("load", "name")

    def __init__(self, name: str, load: Callable[[Any], Dict[str, Dict[str, Any]]]) -> None:
        self.name, self.load = name, load


TABLES: Dict[str, Table] = {}


def table(name: str) -> Callable[[Callable[[Any], Dict[str, Dict[str, Any]]]], Table]:
    """Register the loader of a facet: `function(host) -> {key: {field: value}}`, called at most once between changes.

    The loader reads the real host through the reading side (`read`, `listdir`, `probe`).
    """

    def enter(load: Callable[[Any], Dict[str, Dict[str, Any]]]) -> Table:
        TABLES[name] = Table(name, load)
        return TABLES[name]

    return enter
