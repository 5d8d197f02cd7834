"""What calling a node type does: check what is given, all of it at once, and return the graph of the new node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import Any

from pyrsistent import PMap, PVector, pmap, pvector

from statecfg import problems
from statecfg.graph import opaque, schema, types, validators
from statecfg.graph.graph import EMPTY_MAP, EMPTY_VECTOR, MAX_NODES, Graph, Node, gap, too_many
from statecfg.graph.schema import Schema
from statecfg.problems import InvalidInput, Problem, clipped, positions, problem, tokens
from statecfg.problems.positions import SourceLocation, Written
from statecfg.remote.graph.nodetype import OPTIONS, NodeType
from statecfg.remote.graph.values import Wrong, kind_of, no_controls, show

MAX_NODE_NAME = 4096 + 64  # bytes: the longest path, after the name of a type
NO_PLACES: Mapping[str, SourceLocation] = {}
_OPTIONS = frozenset(OPTIONS)
_IN_THE_OPEN = "names, arguments, paths and tags are shown everywhere: take another value"
WRONG: Any = object()  # stands for a value that could not be read, which was reported
_VECTORS: dict[tuple[str, ...], PVector[str]] = {}
_RECORDED: ContextVar[list[Node] | None] = ContextVar("nodes declared", default=None)


@contextlib.contextmanager
def recording() -> Iterator[list[Node]]:
    """Gather every node declared inside, so that one which no graph holds in the end is not lost in silence."""
    nodes: list[Node] = []
    token = _RECORDED.set(nodes)
    try:
        yield nodes
    finally:
        _RECORDED.reset(token)


def declare(kind: NodeType[...], args: Sequence[Any], attrs: Mapping[str, Any], frame: FrameType | None) -> Graph:
    """Declare a node where `frame`, or the nearest frame of the user's below it, stands. See `declare_at`."""
    return declare_at(kind, args, attrs, positions.of_frame(frame))


def declare_at(
    kind: NodeType[...],
    args: Sequence[Any],
    attrs: Mapping[str, Any],
    place: SourceLocation,
    places: Mapping[str, SourceLocation] = NO_PLACES,
) -> Graph:
    """Declare a node and return its graph: the node, and the graphs that it requires.

    :param args: positional arguments; a map after them holds attributes, as in the Borg document
    :param attrs: attributes by name, in any dialect's spelling, and the options of every node
    :param place: where the node is written
    :param places: where its attributes are written, as far as that is known
    A value that is `WRONG` passes unchecked, and the node is marked as broken. Reports problems
    (`statecfg.problems.report`); where they are being collected, the graph that comes back holds what could be
    understood, marked as broken.
    """
    return _Declaration(schema.of(kind), place, places).graph(args, attrs)


class _Declaration:
    """One node in the making: what was given, what is wrong with it so far."""

    __slots__ = ("broken", "found", "name", "place", "places", "schema")

    def __init__(self, known: Schema, place: SourceLocation, places: Mapping[str, SourceLocation]) -> None:
        self.schema, self.place, self.places = known, place, places
        self.found: list[Problem] = []
        self.name = known.kind.name
        self.broken = False

    def graph(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> Graph:
        values, options = self._sorted_out(args, attrs)
        given = options.pop("provides", None)
        name = self._name(values, None if given is WRONG else given)
        shown = name if name.isprintable() else repr(name)[1:-1]
        self.name = clipped(shown.removesuffix(":") if name == f"{self.schema.kind.name}:" else shown)
        parts = [gap()] if given is WRONG else []
        requires: Sequence[str] = ()
        triggers: Sequence[str] = ()
        if options:
            requires = self._requirements("requires", options.pop("requires", ()), parts)
            triggers = self._requirements("restart_on", options.pop("restart_on", ()), parts)
            self._check_options(options)
        kept = self._checked(values)
        if not self.found and not name.isprintable():
            self._check_letters(name)
        if self.found:
            problems.report(*self.found)
        node = Node(
            name,
            kept,
            _vector((*requires, *(item for item in triggers if item not in requires)) if triggers else requires),
            _vector(triggers),
            _vector(self.schema.kind.produces_ops),
            pmap(options) if options else EMPTY_MAP,
            self.place,
            self.broken or bool(self.found),
        )
        recorded = _RECORDED.get()
        if recorded is not None:
            if len(recorded) > MAX_NODES:
                raise InvalidInput([too_many(len(recorded), self.place)])
            recorded.append(node)
        return Graph(node, parts)

    def wrong(self, code: str, detail: str, help: str = "", attribute: str = "") -> None:
        """Note a problem, placed at the attribute where its place is known."""
        self.found.append(problem(code, detail, help, self.places.get(attribute, self.place)))

    def _sorted_out(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        values: dict[str, Any] = {}
        options: dict[str, Any] = {}
        more: Mapping[Any, Any] = {}
        if args and isinstance(args[-1], Mapping):
            args, more = args[:-1], args[-1]
        arguments = self.schema.arguments
        if len(args) > len(arguments):
            takes = ", ".join(arguments) or "none"
            self.wrong(
                "SC0104",
                f"{self.name} takes {len(arguments)} by position ({takes}), got {len(args)}",
                "write attributes by name",
            )
        values.update(zip(arguments, args, strict=False))
        for given in (more, attrs):
            for key, value in given.items():
                name = key if type(key) is str and key in self.schema.fields else schema.plain(key)
                into = options if name in _OPTIONS else values
                if name in into:
                    self.wrong("SC0103", f"`{name}` of {self._label(values)} is given twice", "", name)
                into[name] = value
        self._find_secrets(values, options)
        self.broken = any(value is WRONG for value in (*values.values(), *options.values()))
        return values, options

    def _find_secrets(self, values: dict[str, Any], options: dict[str, Any]) -> None:
        """Make values of texts with tokens in them; refuse what lost one, and secrets where everyone sees them."""
        if not tokens.in_use():
            return
        for given in (values, options):
            for name, value in given.items():
                try:
                    given[name] = value = opaque.found(value)
                except tokens.Lost as error:
                    self.wrong("SC0423", f"`{name}` of {self.name}: {error}", error.help, name)
                    given[name] = WRONG
                    continue
                if (given is options or name in self.schema.shown) and opaque.holds(value):
                    self.wrong("SC0425", f"`{name}` of {self.name} holds a secret: {show(value)}", _IN_THE_OPEN, name)
                    given[name] = WRONG

    def _label(self, values: Mapping[str, Any]) -> str:
        first = values.get(self.schema.arguments[0]) if self.schema.arguments else None
        return f"{self.name} {show(first)}" if isinstance(first, str) else self.name

    def _name(self, values: Mapping[str, Any], given: Any) -> str:
        kind = self.schema.kind.name
        if given is not None:
            name = name_of(given)
            if name is None:
                self.wrong("SC0108", f"provides is {kind_of(given)}: {show(given)}", "write a name as text", "provides")
                return f"{kind}:"
        elif not self.schema.arguments:
            return kind
        else:
            first = values.get(self.schema.arguments[0])
            if first is WRONG or not isinstance(first, str):
                first = getattr(first, "name", "")
            return f"{kind}:{first if isinstance(first, str) else ''}"
        if not name or len(name.encode("utf-8", "replace")) > MAX_NODE_NAME or not name.isprintable():
            self.wrong(
                "SC0108",
                f"provides is {show(name)}",
                f"a name has 1 to {MAX_NODE_NAME} bytes and no control characters",
                "provides",
            )
        return name

    def _check_letters(self, name: str) -> None:
        """Refuse a name that its argument gave a line break or another control character."""
        try:
            no_controls(name)
        except Wrong as error:
            help = "give the node a name of its own: `provides: NAME`"
            self.wrong("SC0108", f"the name {show(name)} is {error}", help)

    def _requirements(self, option: str, given: Any, parts: list[Graph]) -> Sequence[str]:
        if given is WRONG or (not given and not isinstance(given, Graph)):
            return ()
        names: dict[str, None] = {}
        for item in _flat(given):
            if isinstance(item, Graph):
                if item._node is None and not item.parts:
                    self.wrong("SC0105", f"{option} of {self.name} holds an empty graph", "", option)
                    continue
                parts.append(item)
                names[item.node.provides] = None
                continue
            name = item.provides if isinstance(item, Node) else name_of(item)
            if isinstance(item, Node):
                parts.append(Graph(item))
            if name:
                names[name] = None
            else:
                help = "write names such as `file:/etc/motd`, or what a node type returned, alone or in a list"
                self.wrong("SC0105", f"{option} of {self.name} holds {kind_of(item)}: {show(item)}", help, option)
        return tuple(names)

    def _check_options(self, options: dict[str, Any]) -> None:
        if "tags" in options:
            tags = options["tags"]
            tags = [tags] if isinstance(tags, str) else tags
            if tags is WRONG:
                del options["tags"]
            elif isinstance(tags, (list, tuple, PVector)) and all(isinstance(tag, str) and tag for tag in tags):
                options["tags"] = pvector(tags)
            else:
                self.wrong("SC0201", f"`tags` of {self.name}: expected names, got {show(tags)}", "", "tags")
        if options.get("protect") not in (None, True, False, WRONG):
            got = show(options.pop("protect"))
            self.wrong("SC0201", f"`protect` of {self.name}: expected true or false, got {got}", "", "protect")
        for name in [name for name in options if options[name] in (None, False, WRONG)]:
            del options[name]

    def _checked(self, values: dict[str, Any]) -> PMap[str, Any]:
        known = self.schema
        kept: dict[str, Any] = {"type": known.kind.name}
        for name, value in values.items():
            field = known.fields.get(name)
            if field is None:
                self._unknown(name, value)
            elif value is WRONG:
                pass
            elif value is not None or name not in known.optional or known.optional[name] is not None:
                try:
                    if name in known.checks:
                        value = validators.apply(known.checks[name], value)
                    kept[name] = field.type.check(value)
                except ValueError as error:
                    self._refuse(name, value, error)
        for name in known.required:
            if name not in values:
                self._missing(name)
        for name, default in known.optional.items():
            if default is not None and name not in values:
                kept[name] = default
        check = known.kind.methods.get("validate")
        if check is not None and not self.found and not self.broken:
            try:
                check({name: value for name, value in kept.items() if name != "type"})
            except ValueError as error:
                self.wrong("SC0107", f"{self.name}: {error}", getattr(error, "help", ""))
        return pmap(kept)

    def _unknown(self, name: str, value: Any) -> None:
        kind = self.schema.kind.name
        if isinstance(value, Mapping) and any(schema.plain(key) in self.schema.names for key in value):
            # In Hy a keyword before another argument names that argument: (node :name {…}).
            help = f'the map after it was taken for its value; write "{name}", or give attributes by name only'
            self.wrong("SC0101", f"{kind} has no attribute `{name}`", help, name)
            return
        self.wrong(
            "SC0101",
            f"{kind} has no attribute `{name}`" + (f" ({self.name})" if self.name != kind else ""),
            problems.suggest(name, self.schema.names, f"{kind} takes"),
            name,
        )

    def _missing(self, name: str) -> None:
        field = self.schema.fields[name]
        what = "argument" if name in self.schema.arguments else "attribute"
        expects = "" if field.type is types.ANY else f", {field.type.expects}"
        self.wrong(
            "SC0102",
            f"{self.name} lacks the {what} `{name}`{expects}",
            f"{name}: {field.doc}" if field.doc else f"give it `{name}`",
        )

    def _refuse(self, name: str, value: Any, error: ValueError) -> None:
        right_type = not isinstance(error, types.Mismatch)
        detail = str(error)
        if right_type and not types.hidden(value) and show(value) not in detail:
            detail = (
                f"{show(value)} is {detail}" if type(error) is Wrong and " " in detail else f"{show(value)}: {detail}"
            )
        self.wrong(
            "SC0202" if right_type else "SC0201", f"`{name}` of {self.name}: {detail}", getattr(error, "help", ""), name
        )


def name_of(value: Any) -> str | None:
    """Return the name of a node as text from text or a keyword (`:web`); None for anything else."""
    if isinstance(value, Written):
        return value if not value.startswith(":") else Written(value[1:], value.place)
    if isinstance(value, str):
        text = str.__str__(value)
    elif type(value).__name__ == "Keyword" and isinstance(getattr(value, "name", None), str):
        text = value.name
    else:
        return None
    return text[1:] if text.startswith(":") else text


def _flat(given: Any) -> Iterator[Any]:
    if isinstance(given, (list, tuple, PVector, Iterator)):
        for item in given:
            yield from _flat(item)
    else:
        yield given


def _vector(names: Sequence[str]) -> PVector[str]:
    if not names:
        return EMPTY_VECTOR
    return pvector(names)
