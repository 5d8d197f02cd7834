"""Documents of the API, each declared once: its keys with their values, their JSON schemas and their versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]
Shape = dict[str, Any]

TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
# Clients send back what they read. These keys have no effect in requests.
IGNORED: Schema = {**TEXT_OR_NULL, "readOnly": True}
IGNORED_OBJECT: Schema = {**OBJECT_OR_NULL, "readOnly": True}


def reference(name: str) -> Schema:
    """Return the schema that refers to another document."""
    return {"$ref": f"#/components/schemas/{name}"}


def text(longest: int = 1024, shortest: int = 0, pattern: str = "", **more: Any) -> Schema:
    """Return the schema of a string.

    :param pattern: matches the whole string; "" for any
    """
    whole = {"pattern": f"^(?:{pattern})$"} if pattern else {}
    return {"type": "string", "minLength": shortest, "maxLength": longest, **whole, **more}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also accepts null."""
    more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **more}


def object_of(properties: Schema, required: Sequence[str] = ()) -> Schema:
    """Return the schema of an object with these keys, and any others."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def values_of(name: str) -> Schema:
    """Return the schema of a request with several documents."""
    return object_of({"values": {"type": "array", "items": reference(name), "maxItems": 1000}}, ("values",))


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a document.

    :param answer: its schema in answers
    :param value: the attribute of the object that has its value, or a function that returns the value
    :param request: its schema in requests; None if requests don't have it
    :param changes: whether a request may change it; otherwise only a request that creates the object sets it
    :param since: the first version of the API that has it
    """

    name: str
    answer: Schema
    value: str | Callable[[Any], Any]
    request: Schema | None = None
    changes: bool = True
    since: float = 0.0

    def of(self, item: Any) -> Any:
        """Return the value of the key."""
        return getattr(item, self.value) if isinstance(self.value, str) else self.value(item)


class Document:
    """The form of one kind of object in answers and requests.

    :param keys: in the order in which answers have them
    """

    def __init__(self, *keys: Key) -> None:
        self.keys = keys

    def shape(self, item: Any, version: float) -> Shape:
        """Return an object with the keys of a version of the API: older clients fail on unknown keys."""
        return {key.name: key.of(item) for key in self.keys if version >= key.since}

    def answer(self, *optional: str) -> Schema:
        """Return the schema of answers. Keys that not every version has are optional."""
        required = [key.name for key in self.keys if not key.since and key.name not in optional]
        return object_of({key.name: key.answer for key in self.keys}, required)

    def creation(self, *required: str, **other: Schema) -> Schema:
        """Return the schema of requests that create an object.

        :param other: schemas that differ from those of the keys
        """
        schemas = {key.name: key.request for key in self.keys if key.request is not None}
        return object_of({**schemas, **other}, required)

    def change(self, *required: str, **other: Schema) -> Schema:
        """Return the schema of requests that change an object; without `required`, they need at least one key."""
        schemas = {key.name: key.request if key.changes else IGNORED for key in self.keys if key.request is not None}
        schema = object_of({**schemas, **other}, required)
        effective = [name for name, inner in schema["properties"].items() if not inner.get("readOnly")]
        return schema if required else {**schema, "anyOf": [{"required": [name]} for name in effective]}
