"""Schemas of node types, derived from their signatures: arguments, attributes, defaults, and value checks."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from statecfg.graph import types, validators
from statecfg.graph.json_schema import JsonSchema, Properties
from statecfg.graph.types import ANY, Type, TypeProblem, of_annotation
from statecfg.problems import InvalidInput, SourceLocation, problem
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph import values
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import OPTIONS, NodeType

NAMES: dict[str, Any] = {
    **{name: getattr(typing, name) for name in typing.__all__},
    **{name: value for name, value in vars(values).items() if not name.startswith("_")},
    "Blob": Blob,
}
_SCHEMAS: dict[NodeType[...], TypedSchema] = {}
_PARAM = re.compile(r":param\s+(?:[\w\[\], .|]+\s+)?`*([\w?-]+)`*\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Field:
    """One argument or attribute.

    :param name: its name, with underscores
    :param type: checks its values and describes them in messages
    :param doc: its description from the node type's docstring, in one line
    """

    name: str
    type: Type
    doc: str = ""


@dataclass(frozen=True, slots=True)
class TypedSchema:
    """The arguments and attributes of a node type.

    :param node_type: the node type
    :param arguments: names of the positional arguments, in order; those with a default are in `optional` too
    :param required: names of all required arguments and attributes, arguments first
    :param optional: name → default of all others
    :param fields: all arguments and attributes by name
    :param checks: validators by attribute name (`statecfg.graph.validators`)
    :ivar shown: names of the arguments and attributes that all reports show, so they can't be secrets
    """

    node_type: NodeType[...]
    arguments: tuple[str, ...]
    required: tuple[str, ...]
    optional: Mapping[str, Any]
    fields: Mapping[str, Field]
    checks: Mapping[str, Any] = field(default_factory=dict)
    shown: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        """Compute which fields can't be secrets."""
        names = (name for name, item in self.fields.items() if item.type.shown)
        object.__setattr__(self, "shown", frozenset((*self.arguments, *names)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes and of the options that every node accepts."""
        return (*self.fields, *OPTIONS)


def of(node_type: NodeType[...]) -> TypedSchema:
    """Return the schema of a node type. It is computed once.

    :raises InvalidInput: the definition of the node type contains an error
    """
    node_schema = _SCHEMAS.get(node_type)
    if node_schema is None:
        node_schema = _SCHEMAS[node_type] = (
            _from_hy(node_type) if node_type.given_schema is not None else _from_signature(node_type)
        )
    return node_schema


def _from_hy(node_type: NodeType[...]) -> TypedSchema:
    declared = node_type.given_schema
    assert declared is not None
    arguments = tuple(map(plain, declared.arguments))
    required = (*arguments, *map(plain, declared.required))
    optional = {plain(name): types.frozen(default) for name, default in declared.optional.items()}
    docs = descriptions(node_type.__doc__)
    fields = {name: Field(name, ANY, docs.get(name, "")) for name in (*required, *optional)}
    _refuse_options(node_type, fields)
    return TypedSchema(node_type, arguments, required, optional, fields, validators.of(node_type.module))


def _from_signature(node_type: NodeType[...]) -> TypedSchema:
    function = node_type.function
    if function is None:
        return TypedSchema(node_type, (), (), {}, {})
    arguments, required, optional = [], [], {}
    fields: dict[str, Field] = {}
    docs = descriptions(node_type.__doc__)
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            detail = f"`*{name}` would also collect attributes"
            raise _invalid(node_type, detail, f"use a list instead: `{name}: list[str]`")
        if parameter.kind is not parameter.KEYWORD_ONLY:
            arguments.append(name)
        if parameter.default is parameter.empty:
            required.append(name)
        fields[name] = Field(name, _type(node_type, name, parameter.annotation), docs.get(name, ""))
        if parameter.default is not parameter.empty:
            optional[name] = _default(node_type, fields[name], parameter.default)
    _refuse_options(node_type, fields)
    return TypedSchema(node_type, tuple(arguments), tuple(required), optional, fields, validators.of(node_type.module))


def _type(node_type: NodeType[...], name: str, annotation: Any) -> Type:
    if annotation is inspect.Parameter.empty:
        return ANY
    scope = {**NAMES, **getattr(node_type.function, "__globals__", {})}
    try:
        return of_annotation(annotation, scope)
    except TypeProblem as error:
        raise _invalid(node_type, f"the annotation of `{name}`: {error}", error.help) from None


def _default(node_type: NodeType[...], field: Field, value: Any) -> Any:
    """Return a default after the same check as an explicit value; None means that the attribute is omitted."""
    try:
        return None if value is None else field.type.check(value)
    except ValueError as error:
        raise _invalid(node_type, f"the default of `{field.name}`: {error}", getattr(error, "help", "")) from None


def _refuse_options(node_type: NodeType[...], fields: Mapping[str, Field]) -> None:
    taken = [name for name in fields if name in OPTIONS or name == "type"]
    if taken:
        detail = f"`{taken[0]}` is already an option of every node"
        raise _invalid(node_type, detail, "give the attribute another name")


def _invalid(node_type: NodeType[...], detail: str, help: str) -> InvalidInput:
    code = getattr(node_type.function, "__code__", None)
    written = node_type.written if code is None else (code.co_filename, code.co_firstlineno)
    locations = (SourceLocation(*written),) if written is not None else ()
    return InvalidInput([problem("SC0119", f"node type {node_type.name}: {detail}", help, *locations)])


def descriptions(doc: str | None) -> dict[str, str]:
    """Return the description of each parameter: its `:param name:` line and the indented lines after it.

    :param doc: the docstring of a node type, or of a class
    """
    docs: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(doc or "").splitlines():
        match = _PARAM.match(line.strip())
        if match:
            name = plain(match.group(1))
            docs[name] = match.group(2).strip()
        elif name and line.startswith(" ") and line.strip():
            docs[name] += " " + line.strip()
        else:
            name = ""
    return docs


def plain(name: object) -> str:
    """Return an attribute's name as it is stored: "restart-on", `:restart-on` or a keyword becomes `restart_on`."""
    text = name if type(name) is str else str(getattr(name, "name", name))
    if text[:4] == "hyx_":  # a keyword argument of Hy that is not a Python identifier, such as :block?
        text = unmangled(text)
    return text.lstrip(":").replace("-", "_") if "-" in text or text[:1] == ":" else text


def json_schema(node_type: NodeType[...]) -> JsonSchema:
    """Return the JSON Schema (draft 2020-12) of a node's arguments, attributes and options."""
    schema = of(node_type)
    properties: Properties = {}
    for name, item in schema.fields.items():
        accepted = validators.json_schema(schema.checks.get(name, ())) if item.type is ANY else item.type.json()
        properties[name] = {**accepted, **({"description": item.doc} if item.doc else {})}
        default = schema.optional.get(name)
        if isinstance(default, (str, int, float, bool, list, dict)):
            properties[name]["default"] = default
    names: JsonSchema = {"type": "array", "items": {"type": "string"}}
    options: Properties = {
        "provides": {"type": "string"},
        "requires": names,
        "restart_on": names,
        "tags": names,
        "protect": {"type": "boolean"},
        "allow_lockout": {"type": "boolean"},
        "take_over": {"type": "boolean"},
        "when_host": {"type": ["object", "array"]},
        "for_each_host": {"type": "object"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": node_type.name,
        "description": inspect.cleandoc(node_type.__doc__ or "").split("\n\n")[0],
        "type": "object",
        "properties": {**properties, **options},
        "required": list(schema.required),
        "additionalProperties": False,
    }


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
