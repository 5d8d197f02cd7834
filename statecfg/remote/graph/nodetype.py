"""Node types: which attributes a node takes, how it is sent, and how the host checks it."""

from __future__ import annotations

import sys

from statecfg.remote.graph.above import above
from statecfg.remote.graph.filled import of_attrs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, FrozenSet, Generic, List, Mapping, Optional, Sequence, Tuple, Union

    from typing_extensions import ParamSpec

    P = ParamSpec("P")
    Loader = Callable[[Any], Mapping[str, Mapping[str, Any]]]  # reads a facet of a host: key → fields
else:
    P = None

    class Generic:
        """Replaces `typing.Generic`, so that hosts need not import it."""

        def __class_getitem__(cls, item):  # noqa: ANN001, ANN204  # type checkers read the definition above
            return cls


CHECK_PARAMETERS = ("node", "nodes", "actions", "world")
REGISTRY: Dict[str, NodeType[...]] = {}


class Schema:
    """The attributes of a node type: `:arguments`, `:required-attrs` and `:optional-attrs` of the Borg document.

    :param optional: name → default
    """

    __slots__ = ("arguments", "optional", "required")

    def __init__(self, arguments: Sequence[str], required: Sequence[str], optional: Mapping[str, Any]) -> None:
        self.arguments = tuple(arguments)
        self.required = tuple(required)
        self.optional = dict(optional)


class NodeType(Generic[P]):
    """A kind of node. Calling it declares a node and returns its graph.

    :param name: the type's name, and the first part of the names of its nodes
    :param function: for a type written in Python: the function whose signature is the schema
    :param schema: for a type written in Hy: the schema
    :param produces_ops: the names of the ops that its nodes may use
    :param module: the module that defines the type
    :param doc: the type's page in the reference
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
        self.name = self.__name__ = name
        self.function, self.given_schema, self.__doc__ = function, schema, doc
        self.produces_ops, self.module = tuple(produces_ops), module
        self.methods: Dict[str, Callable[..., Any]] = {}
        self.outputs: Dict[str, Callable[..., Any]] = {}
        self.overwriting = ""  # see `overwrites`
        self.code: FrozenSet[str] = frozenset()  # see `reads_as_code`
        self.manners: Sequence[str] = ()  # attributes about how statecfg works: playbooks may differ in them
        self.written: Optional[Tuple[str, int]] = None  # file and line of a `node-type` form

    def __call__(self, *args: P.args, **attrs: P.kwargs) -> Any:
        """Declare a node: positional arguments, then attributes by keyword or in one map.

        This works only on the controller.

        :raises statecfg.problems.InvalidInput: if an argument or attribute is wrong
        """
        return above.declare(self, args, attrs, sys._getframe(1))

    def check(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register the check: it compares a node with the host and returns the actions that are needed.

        :param function: takes any of `node`, `nodes` (name → node), `actions` (a list with a map of name → actions for
            each earlier layer) and `world`, by these names. With other names it takes them in this order, as the Borg
            document says. It returns a list of actions, or a map with `actions` and `shutdown_first`
        """
        return self._register("check", function)

    def to_wire(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how the controller changes a node before sending it: `function(node[, context]) -> node`."""
        return self._register("to_wire", function)

    def from_wire(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how the host changes a node when it arrives: `function(node[, world]) -> node`."""
        return self._register("from_wire", function)

    def identity(self, function: Union[Callable[..., Any], List[str]]) -> Callable[..., Any]:
        """Register the identities of a node: `function(attrs[, name]) -> list of "kind:identity"`.

        statecfg refuses two nodes with the same identity. The default is `type:first argument`.

        :param function: or a list of strings. An attribute in braces, such as ``user:{owner}``, is replaced by its
            value; a string is left out if the node does not set its attribute
        """
        return self._register("identity", of_attrs(function))

    def claims(self, function: Union[Callable[..., Any], List[str]]) -> Callable[..., Any]:
        """Call `identity`. Node types written for 0.3 use this name, which will be removed in 1.0."""
        above.renamed("NodeType.claims", "NodeType.identity")
        return self.identity(function)

    def owns(self, function: Union[Callable[..., Any], List[str]]) -> Callable[..., Any]:
        """Register what a node manages besides its identities: `function(attrs[, name]) -> list of texts`.

        Removals, replacements and complete lists of other nodes and playbooks respect it. The texts are:

        - `path:PATH`: another file that the node writes, or a directory with all that is in it
        - `inside:PATH`: the node owns all that is in a directory, and does not know what this is
        - `part:path:PATH`: the node manages only a part of this file
        - `part:LIST: ITEM`: the node is an item of a list, such as a key of a user
        - `adds:LIST: ITEM`: the node also adds an item to a list, such as a member of a group
        - `whole:LIST`: the node manages the complete list; the `part:` texts beside it are its items

        An identity `path:PATH` means the whole file without a `part:path:PATH`. statecfg adds what the attributes
        `path`, `tree`, `backup`, `creates` and `effects` name. A node that is absent owns nothing.

        :param function: or a list of strings with attributes in braces, as for `identity`
        """
        return self._register("owns", of_attrs(function))

    def needs(self, function: Union[Callable[..., Any], List[str]]) -> Callable[..., Any]:
        """Register what a node needs on the host: `function(attrs) -> list of "kind:name"`.

        The node automatically requires the nodes that provide this. The kinds are `user`, `group`, `package`,
        `program`, `unit`, `unit_file` (without drop-ins), `path` (the node of this path, or of the nearest directory
        above it), `inside` (only of a directory above it) and `repository` (the repositories of the package manager;
        without a name). The default is what attributes such as `owner` and `argv` name. The controller calls it; hosts
        don't get it.

        :param function: or a list of strings. An attribute in braces, such as ``user:{owner}``, is replaced by its
            value; a string is left out if the node does not set its attribute
        """
        return self._register("needs", of_attrs(function))

    def validate(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a check of attribute combinations: `function(attrs)` raises ValueError for an invalid one."""
        return self._register("validate", function)

    def blobs(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register which content the host needs: `function(node, world) -> list of Blob`. The default is all of it."""
        return self._register("blobs", function)

    def remember(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how to take the snapshot that `undo` needs.

        statecfg calls it once, when the node becomes managed, before the node's first action.

        :param function: `function(node, world[, others]) -> map`. `others` contains the attributes and the snapshot of
            each managed node of the type on the host. The map contains JSON values and content (`Blob`). The ledger
            stores it, so it must not contain secrets. Its key `context` is for the object's environment: a difference
            there does not mean that the object changed
        """
        return self._register("remember", function)

    def learn(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what `undo` must know about the changes of the node: `function(node, memory, world) -> map`.

        statecfg calls it after a run that changed the node, and adds the map to the snapshot.
        """
        return self._register("learn", function)

    def undo(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how to remove an orphan and restore the former state. Without this, statecfg only forgets orphans.

        As with a check, nothing may be left to do after the actions.

        :param function: `function(node, memory, world[, to_remove[, kept]]) -> actions`. `node` has the attributes
            last applied, without secrets and content; `memory` is the snapshot of `remember` with the additions of
            `learn`; `to_remove` contains the nodes that this run removes, by name; `kept` is the set of the identities
            of all resources that stay managed
        """
        return self._register("undo", function)

    def overwrites(self, reason: str) -> None:
        """Declare that the undo overwrites what others have changed since. Plans and the reference show the reason."""
        self.overwriting = reason

    def produces(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a value that other nodes can use: `function(node, world[, said]) -> text or None`.

        The function's name is the name of the value. It reads the world as the other node sees it, in plans as well.
        None means that the value is not known.

        :param function: `said` contains what the node's actions said in this run, or in the last run in which it acted.
            An op says it with the key `said` of its result, a map of strings. Plans know nothing of an action that they
            don't perform, so a value that takes `said` is `known after` a node that acts
        """
        self.outputs[function.__name__] = function
        return function

    def on_removal(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register what a removal triggers on a resource that stays: `function(node, near, world) -> actions`.

        statecfg calls it after all removals, and again with `world.acted` after the actions; then it raises CheckError
        if the object is not as it should be.

        :param function: `near` contains the removed nodes that `node` required, by name. `world.triggered_by` contains
            those in its `restart_on` whose removal changes the host
        """
        return self._register("on_removal", function)

    def lasting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a check at the end of a run: `function(node, done) -> (seconds, check) or None`.

        statecfg calls `check(world, since)` at least this many seconds after the last action; not if seconds is 0. It
        also calls it for a node that did not converge.

        :param function: `done` contains the successful actions, each a dict with `op` and `args`. `since` is the time
            at which the last action ended (`time.monotonic()`). `check` returns why the object has changed since then,
            "" if it has not
        """
        return self._register("lasting", function)

    def drifts(self, function: Callable[[Mapping[str, Any]], bool]) -> Callable[[Mapping[str, Any]], bool]:
        """Register whether the host can drift from a node: `function(attrs)`. Without a function, it always can.

        `verify` skips a node that can't, such as one that waits, unless its definition or its `restart_on` changed.
        """
        return self._register("drifts", function)

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register a guard for things that can keep the controller out, such as a firewall.

        statecfg calls the function once before the actions of a run, and the method `after` of its result after each
        layer. Types that register the same function share its result.

        :param function: `function(machine, channel, remote, warnings, nodes) -> guard`, with the methods and attributes
            of `statecfg.remote.run.login_guard.LoginGuard` that are not private
        """
        return self._register("guard", function)

    def logins(self) -> None:
        """Declare that the nodes can take away logins. Then a run over SSH checks in the plan that its own stays."""
        self.methods["logins"] = NodeType.logins

    def reads_as_code(self, *attributes: str) -> None:
        """Declare attributes that programs run or read as rules. Text of a host must be harmless there."""
        self.code = frozenset(attributes)

    def effect(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register how to find out whether the system uses what a node defines: `f(node, world[, nodes]) -> text`.

        For types that write one source among several. statecfg calls it at the end of the plan and of the run, on the
        host as it is then. A node with the attribute `allow_override` is not asked.

        :param function: returns why the system does not use it, with the file and the line that win; "" if it does.
            `nodes` are all nodes by name
        """
        return self._register("effect", function)

    def implemented_by(self, module: Any) -> None:
        """Register the functions of a module under their own names: check, blobs, guard, remember, learn and undo."""
        for method in ("check", "blobs", "guard", "remember", "learn", "undo"):
            if hasattr(module, method):
                self._register(method, getattr(module, method))

    def managed_by(self, thing: Any) -> None:
        """Register the check, remember and undo of a subclass of `statecfg.FacetEntry`."""
        for method, function in thing.functions().items():
            self._register(method, function)

    def _register(self, method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        if method in self.methods:
            raise TypeError(f"{self.name} already has a {method}")
        self.methods[method] = function
        return function

    def wanted(self) -> Tuple[str, ...]:
        """Return the names of the arguments that the type's check takes, in its order."""
        code = self.methods["check"].__code__
        names = code.co_varnames[: code.co_argcount]
        # A check with other names takes the Borg document's arguments, in the document's order.
        return names if all(name in CHECK_PARAMETERS for name in names) else CHECK_PARAMETERS[: len(names)]

    def looks(self) -> bool:
        """Tell whether the check reads the host. Other checks can't notice that nothing is left to do."""
        return "check" not in self.methods or "world" in self.wanted()

    def run_check(self, node: Any, nodes: Any, actions: Any, world: Any) -> Any:
        """Call the type's check with the arguments that it takes; return no actions if the type has no check."""
        if "check" not in self.methods:
            return []
        arguments = {"node": node, "nodes": nodes, "actions": actions, "world": world}
        return self.methods["check"](*[arguments[name] for name in self.wanted()])

    def identify(self, node: Any) -> Any:
        """Call the type's `identity`; return None if the type has none."""
        function = self.methods.get("identity")
        return None if function is None else function(*(node.attrs, node.provides)[: function.__code__.co_argcount])

    def owned(self, node: Any) -> Any:
        """Call the type's `owns`; return nothing if the type has none."""
        function = self.methods.get("owns")
        return () if function is None else function(*(node.attrs, node.provides)[: function.__code__.co_argcount])

    def compares(self) -> bool:
        """Tell whether the type's `remember` takes the snapshots of the other nodes of the type."""
        function = self.methods.get("remember")
        return function is not None and function.__code__.co_argcount > 2

    def run_remember(self, node: Any, world: Any, others: Any = ()) -> Any:
        """Call the type's `remember` with the arguments that it takes; return an empty map if the type has none."""
        function = self.methods.get("remember")
        return {} if function is None else function(*(node, world, others)[: function.__code__.co_argcount])

    def run_learn(self, node: Any, memory: Any, world: Any, said: Any) -> Any:
        """Call the type's `learn` with the arguments that it takes; return an empty map if the type has none."""
        function = self.methods.get("learn")
        return {} if function is None else function(*(node, memory, world, said)[: function.__code__.co_argcount])

    def run_undo(self, node: Any, memory: Any, world: Any, to_remove: Any, kept: Any = frozenset()) -> Any:
        """Call the type's `undo` with the arguments that it takes; return no actions if the type has none."""
        function = self.methods.get("undo")
        if function is None:
            return []
        return function(*(node, memory, world, to_remove, kept)[: function.__code__.co_argcount])

    def __repr__(self) -> str:
        return f"<node type {self.name}>"


def register(node_type: NodeType[P]) -> NodeType[P]:
    """Register a node type by its name. It replaces an earlier one of this name, so a module can be reloaded."""
    REGISTRY[node_type.name] = node_type
    return node_type


if TYPE_CHECKING:

    def node_type(function: Callable[P, None]) -> NodeType[P]:
        """Make the signature of a function a node type."""
        raise NotImplementedError

else:

    def node_type(function):  # noqa: ANN001, ANN201  # type checkers read the definition above
        """Make the signature of a function a node type.

        Positional parameters are the Borg document's arguments. Keyword-only parameters are attributes: required
        without a default, optional with one. Annotations name the validators (`statecfg.remote.graph.values`). The
        docstring is the type's page in the reference. The body never runs.
        """
        return register(
            NodeType(function.__name__, function=function, module=function.__module__, doc=function.__doc__)
        )


OPTIONS: Tuple[str, ...] = ("provides", "requires", "restart_on", "tags", "protect", "allow_lockout", "take_over")
OPTIONS += ("when_host", "for_each_host")


class Facet:
    """A facet of a host: a map of key → fields, loaded on first use, such as the installed packages.

    :param load: reads the host and returns the map; `facet` explains the other parameters
    """

    __slots__ = ("load", "name", "of", "runtime", "volatile")

    def __init__(
        self, name: str, load: Loader, volatile: bool = False, runtime: Sequence[str] = (), of: str = ""
    ) -> None:
        self.name, self.load, self.volatile, self.runtime, self.of = name, load, volatile, runtime, of


FACETS: Dict[str, Facet] = {}


def facet(name: str, volatile: bool = False, runtime: Sequence[str] = (), of: str = "") -> Callable[[Loader], Facet]:
    """Register the loader of a facet: `function(host) -> {key: {field: value}}`.

    statecfg calls it at most once between changes. It reads the real host with `read`, `listdir` and `probe`.

    :param name: the facet's name
    :param volatile: whether any program that an action runs may change it, such as the start of a server
    :param runtime: fields whose change is not a change of the entry, such as the process id of a restarted process
    :param of: the facet whose entries these entries only mark, such as `users` for passwords: a new or removed mark is
        a change of its thing
    """

    def enter(load: Loader) -> Facet:
        FACETS[name] = Facet(name, load, volatile, runtime, of)
        return FACETS[name]

    return enter
