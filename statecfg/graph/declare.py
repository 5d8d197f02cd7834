"""Declare nodes: calling a node type validates the arguments and returns the graph of the new node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from pyrsistent import PMap, PVector, pvector

from statecfg.graph import host_conditions, host_items, on_host, opaque, recording, schema, types, validators
from statecfg.graph.attributes import Attributes
from statecfg.graph.graph import Graph, gap
from statecfg.graph.host_text import was_read
from statecfg.graph.nodes import EMPTY_MAP, EMPTY_VECTOR, Node, RoleUse
from statecfg.graph.schema import TypedSchema
from statecfg.problems import Problem, clipped, positions, problem, report, suggest, tokens
from statecfg.problems.positions import SourceLocation, Written
from statecfg.remote.graph.nodetype import OPTIONS, NodeType
from statecfg.remote.graph.value_rules import no_controls
from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show, type_words

MAX_NODE_NAME = 4096 + 64  # bytes: the longest path, and the name of a type before it
NO_LOCATIONS: Mapping[str, SourceLocation] = {}
_OPTIONS = frozenset(OPTIONS)
_IN_THE_OPEN = "names, arguments, paths and tags appear in all output: use a value that is not secret"
_BEFORE = "statecfg needs names, arguments, paths and tags before the run: write a value that the playbook knows"
WRONG: Any = object()  # replaces a value that could not be read, after the problem was reported


def declare(node_type: NodeType[...], args: Sequence[Any], attrs: Mapping[str, Any], frame: FrameType | None) -> Graph:
    """Declare a node at the source location of the innermost frame of user code. See `declare_at`.

    :param frame: the frame at which the search starts
    """
    return declare_at(node_type, args, attrs, positions.of_frame(frame))


def declare_at(
    node_type: NodeType[...],
    args: Sequence[Any],
    attrs: Mapping[str, Any],
    location: SourceLocation,
    locations: Mapping[str, SourceLocation] = NO_LOCATIONS,
    labels: tuple[str, ...] = (),
    role: RoleUse | None = None,
) -> Graph:
    """Declare a node and return its graph: the node, and the graphs that it requires.

    Problems are reported (`statecfg.problems.report`). If problems are being collected, the returned graph contains
    everything that is valid, and its node is marked as broken.

    :param args: positional arguments; a map after them contains attributes, as in the Borg document
    :param attrs: attributes by name, in the spelling of any dialect, and options that every node accepts. The value
        `WRONG` is not checked, and marks the node as broken
    :param location: the source location of the node
    :param locations: the source locations of its attributes, if known
    :param labels: labels in addition to those of the blocks of `label` around the call
    :param role: the role that contains the node; default: the role whose function is running
    """
    return _Declaration(schema.of(node_type), location, locations).graph(args, attrs, labels, role)


class _Declaration:
    """Validate one node and collect its problems."""

    __slots__ = ("broken", "location", "locations", "name", "problems", "schema")

    def __init__(
        self, node_schema: TypedSchema, location: SourceLocation, locations: Mapping[str, SourceLocation]
    ) -> None:
        self.schema, self.location, self.locations = node_schema, location, locations
        self.problems: list[Problem] = []
        self.name = node_schema.node_type.name
        self.broken = False

    def graph(
        self, args: Sequence[Any], attrs: Mapping[str, Any], labels: tuple[str, ...], role: RoleUse | None
    ) -> Graph:
        values, options = self._sorted_out(args, attrs)
        explicit_name = options.pop("provides", None)
        name = template = self._name(values, None if explicit_name is WRONG else explicit_name)
        if host_items.OPTION in options:
            name = host_items.shown(name)
        printable = name if name.isprintable() else repr(name)[1:-1]  # without the quotes
        self.name = clipped(printable.removesuffix(":") if name == f"{self.schema.node_type.name}:" else printable)
        parts = [gap()] if explicit_name is WRONG else []
        requires: Sequence[str] = ()
        triggers: Sequence[str] = ()
        if options:
            requires = self._requirements("requires", options.pop("requires", ()), parts)
            triggers = self._requirements("restart_on", options.pop("restart_on", ()), parts)
            self._check_options(options)
        conditions = recording.conditions()
        if conditions:
            options["when_host"] = pvector((*conditions, *options.get("when_host", ())))
        attributes = self._checked(values, options)
        if host_items.OPTION in options and not self.problems and not self.broken:
            from statecfg.graph import host_item_rules  # few definitions need it

            try:
                options = host_item_rules.of_node(self.schema, options, template, values)
            except Wrong as error:
                self.wrong("SC0123", f"{self.name} {error}", error.help, "when_host")
        if not self.problems and not name.isprintable():
            self._check_letters(name)
        if self.problems:
            report(*self.problems)
        role = role or recording.role()
        node = Node(
            name,
            attributes,
            _vector((*requires, *(item for item in triggers if item not in requires)) if triggers else requires),
            _vector(triggers),
            _vector(self.schema.node_type.produces_ops),
            Attributes(options) if options else EMPTY_MAP,
            self.location,
            self.broken or bool(self.problems),
            (),
            (*recording.labels(), *labels),
            ((self.location, role),) if role is not None else (),
        )
        recorded = recording.current()
        if recorded is not None:
            recorded.add(node)
        return Graph(node, parts)

    def wrong(self, code: str, detail: str, help: str = "", attribute: str = "") -> None:
        """Record a problem at the source location of the attribute, or of the node if that is unknown."""
        location = self.locations.get(attribute, self.location)
        self.problems.append(problem(code, host_items.shown(detail), host_items.shown(help), location))

    def _sorted_out(self, args: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        values: dict[str, Any] = {}
        options: dict[str, Any] = {}
        more: Mapping[Any, Any] = {}
        if args and type(args[-1]) is not str and isinstance(args[-1], Mapping):
            args, more = args[:-1], args[-1]
        arguments = self.schema.arguments
        if len(args) > len(arguments):
            takes = ", ".join(arguments) or "none"
            count = f"{len(arguments)} positional argument" + ("" if len(arguments) == 1 else "s")
            self.wrong(
                "SC0104",
                f"{self.name} takes {count} ({takes}), got {len(args)}",
                "write attributes by name",
            )
        values.update(zip(arguments, args, strict=False))
        for group in (more, attrs):
            for key, value in group.items():
                name = key if type(key) is str and key in self.schema.fields else schema.plain(key)
                target = options if name in _OPTIONS else values
                if name in target:
                    self.wrong("SC0103", f"`{name}` of {self._label(values)} is given twice", "", name)
                target[name] = value
        if tokens.in_use():
            self._find_secrets(values, options)
        self.broken = any(value is WRONG for value in (*values.values(), *options.values()))
        return values, options

    def _find_secrets(self, values: dict[str, Any], options: dict[str, Any]) -> None:
        """Replace the tokens in strings by secrets. Refuse damaged tokens, and secrets in public attributes."""
        for group in (values, options):
            for name, value in group.items():
                try:
                    group[name] = value = opaque.resolve_tokens(value)
                except tokens.SecretError as error:
                    self.wrong(error.code, f"`{name}` of {self.name}: {error}", error.help, name)
                    group[name] = WRONG
                    continue
                if getattr(value, "on_host", True) and next(host_items.found(value), None) is not None:
                    group[name] = value = self._sampled(name, value, options)
                if (group is options or name in self.schema.shown) and opaque.contains_secret(value):
                    self._refuse_hidden(name, value)
                    group[name] = WRONG

    def _sampled(self, name: str, value: Any, options: Mapping[str, Any]) -> Any:
        """Return an attribute with samples in location of the items of `for_each_host`."""
        try:
            return host_items.sampled_in(name, value, options)
        except Wrong as error:
            self.wrong("SC0123", f"`{name}` of {self.name} contains {error}", error.help, name)
            return WRONG

    def _refuse_hidden(self, name: str, value: Any) -> None:
        detail = f"`{name}` of {self.name} contains"
        if on_host.conceals(value):
            self.wrong("SC0425", f"{detail} a secret: {show(value)}", _IN_THE_OPEN, name)
        else:
            self.wrong("SC0426", f"{detail} a value that exists only on the host: {show(value)}", _BEFORE, name)

    def _label(self, values: Mapping[str, Any]) -> str:
        first = values.get(self.schema.arguments[0]) if self.schema.arguments else None
        return f"{self.name} {show(first)}" if isinstance(first, str) else self.name

    def _name(self, values: Mapping[str, Any], explicit: Any) -> str:
        type_name = self.schema.node_type.name
        if explicit is not None:
            name = name_of(explicit)
            if name is None:
                self.wrong(
                    "SC0108",
                    f"provides is {type_words(explicit)}: {show(explicit)}",
                    "write a name as a string",
                    "provides",
                )
                return f"{type_name}:"
        elif not self.schema.arguments:
            return type_name
        else:
            first = values.get(self.schema.arguments[0])
            if first is WRONG or not isinstance(first, str):
                first = getattr(first, "name", "")
            return f"{type_name}:{first if isinstance(first, str) else ''}"
        if not name or len(name.encode("utf-8", "replace")) > MAX_NODE_NAME or not name.isprintable():
            self.wrong(
                "SC0108",
                f"provides is {show(name)}",
                f"a name has 1 to {MAX_NODE_NAME} bytes and no control characters",
                "provides",
            )
        return name

    def _check_letters(self, name: str) -> None:
        """Refuse a name that contains a line break or another control character from its argument."""
        try:
            no_controls(name)
        except Wrong as error:
            help = "give the node another name: `provides: NAME`"
            self.wrong("SC0108", f"the name {show(name)} is {error}", help)

    def _requirements(self, option: str, value: Any, parts: list[Graph]) -> Sequence[str]:
        if value is WRONG or (not value and not isinstance(value, Graph)):
            return ()
        names: dict[str, None] = {}
        for item in _flat(value):
            if isinstance(item, Graph):
                if item.is_empty:
                    self.wrong("SC0105", f"{option} of {self.name} contains an empty graph", "", option)
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
                help = "write a name such as `file:/etc/motd`, a graph that a node type returned, or a list of these"
                self.wrong("SC0105", f"{option} of {self.name} contains {type_words(item)}: {show(item)}", help, option)
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
        for option in ("protect", "allow_lockout", "take_over"):
            if options.get(option) not in (None, True, False, WRONG):
                got = show(options.pop(option))
                self.wrong("SC0201", f"`{option}` of {self.name}: expected true or false, got {got}", "", option)
        for option in ("when_host", host_items.OPTION):
            if options.get(option) not in (None, WRONG):
                self._check_on_host(option, options)
        for name in [name for name in options if options[name] in (None, False, WRONG)]:
            del options[name]

    def _check_on_host(self, option: str, options: dict[str, Any]) -> None:
        code = "SC0122" if option == "when_host" else "SC0123"
        check: Callable[[Any], Any] = host_conditions.checked if option == "when_host" else host_items.checked
        try:
            options[option] = check(options[option])
        except Wrong as error:
            self.wrong(code, f"`{option}` of {self.name} contains {error}", error.help, option)
            del options[option]

    def _checked(self, values: dict[str, Any], options: Mapping[str, Any]) -> PMap[str, Any]:
        node_schema = self.schema
        kept: dict[str, Any] = {"type": node_schema.node_type.name}
        for name, value in values.items():
            field = node_schema.fields.get(name)
            if field is None:
                self._unknown(name, value)
            elif value is WRONG:
                pass
            elif value is not None or name not in node_schema.optional or node_schema.optional[name] is not None:
                try:
                    if name in node_schema.checks:
                        value = validators.apply(node_schema.checks[name], value)
                    kept[name] = field.type.check(value)
                except ValueError as error:
                    self._refuse(name, value, error)
        for name in node_schema.required:
            if name not in values:
                self._missing(name)
        for name, default in node_schema.optional.items():
            if default is not None and name not in values:
                kept[name] = default
        if not self.problems and not self.broken:
            self._validate(kept)
        if was_read():
            from statecfg.graph import host_text_rules  # only definitions that read facts need it

            for name, detail, help in host_text_rules.problems(kept["type"], {**kept, **options}):
                self.wrong(host_text_rules.CODE, f"{self.name}: {detail}", help, name)
        return Attributes(kept)

    def _validate(self, kept: Mapping[str, Any]) -> None:
        """Let the node type check all attributes together."""
        validate = self.schema.node_type.methods.get("validate")
        if validate is None:
            return
        try:
            validate({name: value for name, value in kept.items() if name != "type"})
        except ValueError as error:
            if isinstance(error, PublicSecret):
                self._refuse(error.attribute, kept.get(error.attribute), error)
            else:
                self.wrong("SC0107", f"{self.name}: {opaque.mask_secrets(str(error))}", getattr(error, "help", ""))

    def _unknown(self, name: str, value: Any) -> None:
        type_name = self.schema.node_type.name
        if isinstance(value, Mapping) and any(schema.plain(key) in self.schema.names for key in value):
            # In Hy, a keyword before another argument names that argument: (node :name {…}).
            help = f'Hy took the following map as its value; write "{name}", or pass attributes only by name'
            self.wrong("SC0101", f"{type_name} has no attribute `{name}`", help, name)
            return
        self.wrong(
            "SC0101",
            f"{type_name} has no attribute `{name}`" + (f" ({self.name})" if self.name != type_name else ""),
            suggest(name, self.schema.names, f"{type_name} takes"),
            name,
        )

    def _missing(self, name: str) -> None:
        field = self.schema.fields[name]
        what = "argument" if name in self.schema.arguments else "attribute"
        expects = "" if field.type is types.ANY else f", {field.type.expects}"
        self.wrong(
            "SC0102",
            f"{self.name} lacks the {what} `{name}`{expects}",
            f"{name}: {field.doc}" if field.doc else f"set `{name}`",
        )

    def _refuse(self, name: str, value: Any, error: ValueError) -> None:
        if isinstance(error, PublicSecret):
            secret = value is None or on_host.conceals(value)
            why = str(error) if secret else f"contains a value that exists only on the host: {show(value)}"
            self.wrong("SC0425" if secret else "SC0426", f"`{name}` of {self.name} {why}", error.help, name)
            return
        right_type = not isinstance(error, types.Mismatch)
        detail = str(error)
        if right_type and not types.hidden(value) and show(value) not in detail:
            sentence = type(error) is Wrong and " " in detail
            verb = "" if detail.startswith("contains ") else "is "
            detail = f"{show(value)} {verb}{detail}" if sentence else f"{show(value)}: {detail}"
        self.wrong(
            "SC0202" if right_type else "SC0201", f"`{name}` of {self.name}: {detail}", getattr(error, "help", ""), name
        )


def name_of(value: Any) -> str | None:
    """Return the name of a node as a string.

    :param value: a string or a keyword (`:web`)
    :returns: the name without the colon; None if `value` is neither a string nor a keyword
    """
    if isinstance(value, Written):
        return value if not value.startswith(":") else Written(value[1:], value.location)
    if isinstance(value, str):
        text = str.__str__(value)
    elif type(value).__name__ == "Keyword" and isinstance(getattr(value, "name", None), str):
        text = value.name
    else:
        return None
    return text[1:] if text.startswith(":") else text


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (str, Graph)):  # nearly all; the question whether they are iterators takes longer
        yield value
    elif isinstance(value, (list, tuple, PVector, Iterator)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _vector(names: Sequence[str]) -> PVector[str]:
    if not names:
        return EMPTY_VECTOR
    return pvector(names)
