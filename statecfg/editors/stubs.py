"""Write node types as Python functions, so that type checkers know the arguments and attributes of all of them.

Type checkers read the signatures of node types in Python from the built-in files, but neither Hy nor a project's own
files, which `statecfg.resources` finds when it runs.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from statecfg.editors.values import about_type
from statecfg.graph import schema
from statecfg.graph.json_schema import JsonSchema
from statecfg.remote.graph.nodetype import NodeType

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_WIDTH = 120


def module(node_types: Iterable[NodeType[...]], first: str) -> str:
    """Return the text of a stub with these node types.

    :param first: the first line, a comment about who wrote the file
    """
    types = sorted(node_types, key=lambda node_type: node_type.name)
    names = ", ".join(f'"{node_type.name}"' for node_type in types)
    body = "".join(map(_function, types))
    abstract = [name for name in ("Mapping", "Sequence") if f"{name}[" in body]
    special = [name for name in ("Any", "Literal", "Unpack") if re.search(rf"\b{name}\b", body)]
    imports = [f"from collections.abc import {', '.join(abstract)}"] if abstract else []
    imports += [f"from typing import {', '.join(special)}"] if special else []
    imports += ["", "from statecfg import NodeOptions, node_type"] if types else []
    return "\n".join([first, *imports, "", f"__all__ = [{names}]\n"]) + body


def _function(node_type: NodeType[...]) -> str:
    found = schema.of(node_type)
    written = schema.json_schema(node_type)["properties"]
    parameters = [_parameter(name, written[name], name in found.optional) for name in found.arguments]
    attributes = [
        _parameter(name, written[name], name in found.optional) for name in found.fields if name not in found.arguments
    ]
    lines = [*parameters, *(["*", *attributes] if attributes else []), "**options: Unpack[NodeOptions]"]
    doc = about_type(node_type.__doc__).get("description", "")
    about = doc.replace("\\", "\\\\").replace('"', '\\"')
    text = "\n    ".join(textwrap.wrap(f'"""{about}', _WIDTH - 8)) + '"""'
    signature = "".join(f"    {line},\n" for line in lines)
    return f"\n@node_type\ndef {node_type.name}(\n{signature}) -> None:\n    {text}\n"


def _parameter(name: str, written: JsonSchema, is_optional: bool) -> str:
    annotation = _annotation(written)
    if not is_optional:
        return f"{_identifier(name)}: {annotation}"
    if "default" not in written and annotation != "Any":
        annotation += " | None"
    return f"{_identifier(name)}: {annotation} = ..."


def _annotation(written: Mapping[str, Any]) -> str:
    """Return the annotation for the values of a JSON Schema."""
    if "anyOf" in written:
        options = list(dict.fromkeys(_annotation(option) for option in written["anyOf"]))
        return "Any" if "Any" in options else " | ".join(options)
    if "enum" in written:
        return f"Literal[{', '.join(map(repr, written['enum']))}]"
    if written.get("type") == "array":
        return f"Sequence[{_annotation(written.get('items', {}))}]"
    if written.get("type") == "object":
        values = written.get("additionalProperties", {})
        return f"Mapping[str, {_annotation(values) if isinstance(values, dict) else 'Any'}]"
    return _PLAIN.get(str(written.get("type")), "Any")


def _identifier(name: str) -> str:
    """Return the Python name of an attribute. Hy writes `block?` in the same way."""
    if name.isidentifier():
        return name
    letters = (
        letter if letter == "_" or letter.isalnum() else f"X{unicodedata.name(letter).lower().replace(' ', '_')}X"
        for letter in name
    )
    return "hyx_" + "".join(letters)
