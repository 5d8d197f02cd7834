"""Documents of the API, each declared once: the fields of a class define its JSON and the schemas of that JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from operator import attrgetter
from typing import Any, get_type_hints

from statecfg.graph.json_schema import JsonSchema, Properties

Shape = Mapping[str, Any]

TEXT: JsonSchema = {"type": "string"}
BOOLEAN: JsonSchema = {"type": "boolean"}
OBJECT: JsonSchema = {"type": "object"}
TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}
OBJECT_OR_NULL: JsonSchema = {"type": ["object", "null"]}
# Clients send back what they read. These keys have no effect in requests.
IGNORED: JsonSchema = {**TEXT_OR_NULL, "readOnly": True}
IGNORED_OBJECT: JsonSchema = {**OBJECT_OR_NULL, "readOnly": True}
WRITE_ONLY = ("_internal_", "_secure_")
# The schemas of fields by their Python types.
_SCHEMAS: Mapping[Any, JsonSchema] = {
    str: TEXT,
    str | None: TEXT_OR_NULL,
    bool: BOOLEAN,
    Mapping[str, Any]: OBJECT,
    Mapping[str, Any] | None: OBJECT_OR_NULL,
    Sequence[str]: {"type": "array", "items": TEXT},
}


def reference(name: str) -> JsonSchema:
    """Return the schema that refers to another document."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(longest: int = 1024, shortest: int = 0, pattern: str = "", enum: Sequence[str] = ()) -> JsonSchema:
    """Return the schema of a string.

    :param pattern: matches the whole string; "" for any
    :param enum: the allowed strings; empty for any
    """
    schema: JsonSchema = {"type": "string", "minLength": shortest, "maxLength": longest}
    if pattern:
        schema["pattern"] = f"^(?:{pattern})$"
    if enum:
        schema["enum"] = list(enum)
    return schema


def or_null(schema: JsonSchema) -> JsonSchema:
    """Return a schema that also accepts null."""
    more: JsonSchema = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [str(schema["type"]), "null"], **more}


def object_of(properties: Properties, required: Sequence[str] = ()) -> JsonSchema:
    """Return the schema of an object with these keys, and any others."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def values_of(name: str) -> JsonSchema:
    """Return the schema of a request with several documents."""
    return object_of({"values": {"type": "array", "items": reference(name), "maxItems": 1000}}, ("values",))


def readable(value: Any) -> Any:
    """Return JSON without the keys that are write-only."""
    if isinstance(value, Mapping):
        return {key: readable(item) for key, item in value.items() if not key.startswith(WRITE_ONLY)}
    return [readable(item) for item in value] if isinstance(value, list) else value


def or_none(value: Any) -> Any:
    """Return None instead of an empty value."""
    return value or None


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """A key of a document: the annotation of a field, or a computed key.

    :param name: "" for the name of the field
    :param response: its schema in responses; None for the one of the field's type
    :param request: its schema in requests; None if requests don't have it
    :param changes: whether a request may change it; otherwise only a request that creates the object sets it
    :param since: the first version of the API that has it
    :param convert: makes the JSON of a field's value
    :param value: returns the JSON of a computed key from the object
    """

    name: str = ""
    response: JsonSchema | None = None
    request: JsonSchema | None = None
    changes: bool = True
    since: float = 0.0
    convert: Callable[[Any], Any] | None = None
    value: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class _BoundKey:
    """A key with everything that its declaration leaves out."""

    name: str
    response: JsonSchema
    value: Callable[[Any], Any]
    request: JsonSchema | None
    changes: bool
    since: float


def _computed(key: Key) -> _BoundKey:
    if key.response is None or key.value is None:
        raise TypeError(f"the computed key {key.name} needs a schema and a value")
    return _BoundKey(key.name, key.response, key.value, key.request, key.changes, key.since)


def is_part(hint: object) -> bool:
    """Return whether the type of a field is a part of its object: a class that groups fields."""
    return is_dataclass(hint)


def _of_fields(cls: type, part: str = "") -> Iterator[_BoundKey]:
    """Yield the keys of the fields of a class that are annotated with a `Key`, also of those in its parts.

    :param part: the field, followed by a dot, that has `cls` as its type
    """
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if is_part(hint):
            yield from _of_fields(hint, f"{part}{name}.")
        for key in getattr(hint, "__metadata__", ()):
            response = _SCHEMAS[hint.__origin__] if key.response is None else key.response
            value = _converted(attrgetter(part + name), key.convert)
            yield _BoundKey(key.name or name, response, value, key.request, key.changes, key.since)


def _converted(read: Callable[[Any], Any], convert: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return read if convert is None else lambda item: convert(read(item))


class Document:
    """The JSON of a class of objects, in responses and requests.

    :param cls: a dataclass whose fields are annotated with `Key`, or are parts: dataclasses with such fields
    :param computed: further keys
    """

    def __init__(self, cls: type, *computed: Key) -> None:
        self.keys = (*_of_fields(cls), *map(_computed, computed))

    def shape(self, item: Any, version: float) -> Shape:
        """Return an object with the keys of a version of the API: older clients fail on unknown keys."""
        return {key.name: key.value(item) for key in self.keys if version >= key.since}

    def response(self, *optional: str) -> JsonSchema:
        """Return the schema of responses. Keys that not every version has are optional."""
        required = [key.name for key in self.keys if not key.since and key.name not in optional]
        return object_of({key.name: key.response for key in self.keys}, required)

    def creation(self, *required: str, **other: JsonSchema) -> JsonSchema:
        """Return the schema of requests that create an object.

        :param other: schemas that differ from those of the keys
        """
        schemas = {key.name: key.request for key in self.keys if key.request is not None}
        return object_of({**schemas, **other}, required)

    def change(self, *required: str, **other: JsonSchema) -> JsonSchema:
        """Return the schema of requests that change an object; without `required`, they need at least one key."""
        schemas = {key.name: key.request if key.changes else IGNORED for key in self.keys if key.request is not None}
        schema = object_of({**schemas, **other}, required)
        effective = [name for name, inner in schema["properties"].items() if not inner.get("readOnly")]
        return schema if required else {**schema, "anyOf": [{"required": [name]} for name in effective]}
