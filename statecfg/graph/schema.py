"""What node types take, made from their signatures: arguments, attributes, defaults, and the check of each value."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from statecfg.graph import types, validators
from statecfg.graph.types import ANY, Type, TypeProblem, of_annotation
from statecfg.problems import InvalidInput, SourceLocation, problem
from statecfg.remote.graph import values
from statecfg.remote.graph.borg import unmangled
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import OPTIONS, NodeType

_NAMES: dict[str, Any] = {
    **{name: getattr(typing, name) for name in typing.__all__},
    **{name: value for name, value in vars(values).items() if not name.startswith("_")},
    "Blob": Blob,
}
_KNOWN: dict[NodeType[...], Schema] = {}
_PARAM = re.compile(r":param\s+(?:[\w\[\], .|]+\s+)?`*([\w?-]+)`*\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Field:
    """One argument or attribute.

    :param type: the check of its values and the words for it
    :param doc: what the node type's docstring says about it, in one line
    """

    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a node type takes.

    :param kind: the node type
    :param arguments: names of the positional arguments, in order; those with a default are in `optional` too
    :param required: names of all that must be given, arguments first
    :param optional: name → default of the others
    :param fields: everything by name
    :param checks: validators by attribute name (`statecfg.graph.validators`)
    :param shown: names of those that reports show everywhere, so that none can be a secret: arguments, names, paths
    """

    kind: NodeType[...]
    arguments: tuple[str, ...]
    required: tuple[str, ...]
    optional: Mapping[str, Any]
    fields: Mapping[str, Field]
    checks: Mapping[str, Any] = field(default_factory=dict)
    shown: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Gather what can't be a secret."""
        named = (name for name, item in self.fields.items() if item.type.shown)
        object.__setattr__(self, "shown", frozenset((*self.arguments, *named)))

    @property
    def names(self) -> tuple[str, ...]:
        """All that may be given, the options of every node last."""
        return (*self.fields, *OPTIONS)


def of(kind: NodeType[...]) -> Schema:
    """Return the schema of a node type, made once. Raises InvalidInput where its definition is wrong."""
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = _given(kind) if kind.given_schema is not None else _signature(kind)
    return known


def _given(kind: NodeType[...]) -> Schema:
    given = kind.given_schema
    assert given is not None
    arguments = tuple(map(plain, given.arguments))
    required = (*arguments, *map(plain, given.required))
    optional = {plain(name): types.frozen(default) for name, default in given.optional.items()}
    docs = _docs(kind)
    fields = {name: Field(name, ANY, docs.get(name, "")) for name in (*required, *optional)}
    _refuse_options(kind, fields)
    return Schema(kind, arguments, required, optional, fields, validators.of(kind.module))


def _signature(kind: NodeType[...]) -> Schema:
    function = kind.function
    if function is None:
        return Schema(kind, (), (), {}, {})
    arguments, required, optional = [], [], {}
    fields: dict[str, Field] = {}
    docs = _docs(kind)
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise _wrong(kind, f"*{name} can't be told apart from attributes", f"take a list: `{name}: list[str]`")
        if parameter.kind is not parameter.KEYWORD_ONLY:
            arguments.append(name)
        if parameter.default is parameter.empty:
            required.append(name)
        fields[name] = Field(name, _type(kind, name, parameter.annotation), docs.get(name, ""))
        if parameter.default is not parameter.empty:
            optional[name] = _default(kind, fields[name], parameter.default)
    _refuse_options(kind, fields)
    return Schema(kind, tuple(arguments), tuple(required), optional, fields, validators.of(kind.module))


def _type(kind: NodeType[...], name: str, annotation: Any) -> Type:
    if annotation is inspect.Parameter.empty:
        return ANY
    scope = {**_NAMES, **getattr(kind.function, "__globals__", {})}
    try:
        return of_annotation(annotation, scope)
    except TypeProblem as error:
        raise _wrong(kind, f"the annotation of `{name}`: {error}", error.help) from None


def _default(kind: NodeType[...], field: Field, value: Any) -> Any:
    """Return a default as a given value would be kept; None stands for leaving the attribute out."""
    try:
        return None if value is None else field.type.check(value)
    except ValueError as error:
        raise _wrong(kind, f"the default of `{field.name}`: {error}", getattr(error, "help", "")) from None


def _refuse_options(kind: NodeType[...], fields: Mapping[str, Field]) -> None:
    taken = [name for name in fields if name in OPTIONS or name == "type"]
    if taken:
        raise _wrong(kind, f"every node takes `{taken[0]}` already", "give the attribute another name")


def _wrong(kind: NodeType[...], detail: str, help: str) -> InvalidInput:
    code = getattr(kind.function, "__code__", None)
    written = kind.written if code is None else (code.co_filename, code.co_firstlineno)
    places = (SourceLocation(*written),) if written is not None else ()
    return InvalidInput([problem("SC0119", f"node type {kind.name}: {detail}", help, *places)])


def _docs(kind: NodeType[...]) -> dict[str, str]:
    """Return what the docstring says about each parameter: its `:param name:` line and the indented ones after it."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(kind.__doc__ or "").splitlines():
        match = _PARAM.match(line.strip())
        if match:
            name = plain(match.group(1))
            found[name] = match.group(2).strip()
        elif name and line.startswith(" ") and line.strip():
            found[name] += " " + line.strip()
        else:
            name = ""
    return found


def plain(name: object) -> str:
    """Return an attribute's name as it is stored: `:restart-on`, a keyword or "restart-on" is `restart_on`."""
    text = name if type(name) is str else str(getattr(name, "name", name))
    if text[:4] == "hyx_":  # a keyword argument in Hy whose name is no identifier, such as :block?
        text = unmangled(text)
    return text.lstrip(":").replace("-", "_") if "-" in text or text[:1] == ":" else text


def json_schema(kind: NodeType[...]) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a node's attributes, its positional arguments among them."""
    schema = of(kind)
    properties: dict[str, Any] = {}
    for name, item in schema.fields.items():
        properties[name] = {**item.type.json(), **({"description": item.doc} if item.doc else {})}
        default = schema.optional.get(name)
        if isinstance(default, (str, int, float, bool, list, dict)):
            properties[name]["default"] = default
    names = {"type": "array", "items": {"type": "string"}}
    options = {
        "provides": {"type": "string"},
        "requires": names,
        "restart_on": names,
        "tags": names,
        "protect": {"type": "boolean"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.name,
        "description": inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0],
        "type": "object",
        "properties": {**properties, **options},
        "required": list(schema.required),
        "additionalProperties": False,
    }
