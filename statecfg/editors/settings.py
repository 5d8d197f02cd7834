"""The JSON Schema of `statecfg.toml`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

from statecfg.editors.values import closed, described
from statecfg.graph.json_schema import JsonSchema, Properties
from statecfg.graph.schema import descriptions
from statecfg.playbook import project

_TYPES: dict[type, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number", "minimum": 0},
    list: {"type": "array", "items": {"type": "string"}},
}
_MORE: dict[str, JsonSchema] = {"forks": {"minimum": 1, "maximum": 1000}}


def settings() -> JsonSchema:
    """Return the schema of a project's settings."""
    about = dict(_about(project.Settings))
    keys: Properties = {
        name: {**_TYPES[value_type], **_MORE.get(name, {}), **described(_sentence(about.get(name, "")))}
        for name, (value_type, _) in project.SETTINGS.items()
    }
    return closed(keys)


def _about(settings_class: type[Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and description of each setting of a class, and of the classes of its fields."""
    yield from descriptions(settings_class.__doc__).items()
    for field in dataclasses.fields(settings_class):
        inner = getattr(sys.modules[settings_class.__module__], str(field.type), None)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            yield from _about(inner)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
