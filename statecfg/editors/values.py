"""JSON Schemas of values as they are written in YAML: including templates, secrets and empty values."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Iterable
from typing import cast

from statecfg.graph.json_schema import JsonSchema, Properties
from statecfg.graph.schema import Field
from statecfg.graph.types import ANY

_TEMPLATE = r"\{[{%#]"
SECRET: JsonSchema = {"$ref": "#/definitions/secret"}
NOTHING: JsonSchema = {"$ref": "#/definitions/nothing"}
ANYTHING: JsonSchema = {"anyOf": [{}]}  # for a schema without keys, editors would leave out the colon
_PLAIN = re.compile(r"[A-Za-z0-9_./][\w./:-]*[\w./-]\Z", re.ASCII)  # needs no quotes
# What only the result of a template must be, and alternatives that YAML can't express, such as bytes.
_NOT_OF_TEMPLATES = ("minLength", "maxLength", "format", "anyOf")


def template(expects: str) -> JsonSchema:
    """Return the schema of a template.

    :param expects: a description of valid values, for the message about other strings
    """
    return {"type": "string", "pattern": _TEMPLATE, "patternErrorMessage": f"Expected {expects}, or a template."}


def in_yaml(schema: JsonSchema, expects: str) -> JsonSchema:
    """Return the schema of a value that can also be a template.

    :param schema: the schema of the value itself
    :param expects: a description of valid values
    """
    if "anyOf" in schema and "type" not in schema:
        if {} in schema["anyOf"]:
            return {}
        options = [in_yaml(option, expects) for option in schema["anyOf"]]
        # Each option also accepts templates, but one of them is enough for all.
        flat = [
            part for option in options for part in option.get("anyOf", [option]) if part.get("pattern") != _TEMPLATE
        ]
        return {"anyOf": [*flat, template(expects)]}
    if "enum" in schema:
        return {"anyOf": [schema, template(expects)]}
    if schema.get("type") == "string":
        return _text(schema, expects)
    if "type" not in schema:
        return schema.copy()
    inner = schema.copy()
    for key in ("items", "additionalProperties"):
        part = cast("JsonSchema | bool | None", inner.get(key))
        if isinstance(part, dict):
            inner[key] = in_yaml(part, "a string" if part.get("type") == "string" else "a valid value")
    return {"anyOf": [inner, template(expects)]}


def _options(schema: JsonSchema) -> list[JsonSchema]:
    """Return the alternatives of a schema: several if it consists of them, otherwise itself."""
    alternatives: list[JsonSchema] = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    return alternatives


def _text(schema: JsonSchema, expects: str) -> JsonSchema:
    text = _without(schema, _NOT_OF_TEMPLATES)
    if "pattern" in text:
        text["pattern"] = f"{text['pattern']}|{_TEMPLATE}"
        text["patternErrorMessage"] = f"Expected {expects}."
    return text


def _without(schema: JsonSchema, keywords: Collection[str]) -> JsonSchema:
    return cast(JsonSchema, {key: value for key, value in schema.items() if key not in keywords})


def attribute(field: Field, schema: JsonSchema, required: bool) -> JsonSchema:
    """Return the schema of an attribute of a node.

    :param schema: the schema of the attribute itself, with description and default
    :param required: whether the attribute must have a value
    """
    about: JsonSchema = {"default": schema["default"]} if "default" in schema else {}
    expects = "a valid value" if field.type is ANY else field.type.expects
    written = in_yaml(_without(schema, ("description", "default")), expects)
    more = [] if field.type.shown else [SECRET]
    if not required and "default" not in schema:
        more.append(NOTHING)
    if not written:
        written = ANYTHING
    elif more:
        written = {"anyOf": [*_options(written), *more]}
    return {**written, **about, **described(field.doc)}


def described(text: str) -> JsonSchema:
    """Return the keys that describe a value: for programs, and as Markdown for editors."""
    if not text:
        return {}
    plain = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.S)
    return {"description": plain, "markdownDescription": plain} if "`" in plain else {"description": plain}


def about_type(doc: str | None) -> JsonSchema:
    """Return the description of a node type: the first paragraph of its docstring, and its example in YAML."""
    text = inspect.cleandoc(doc or "")
    first = " ".join(text.split("\n\n")[0].split())
    keys = described(first)
    example = re.search(r"\n\nIn YAML::\n\n?(.*?)(?=\n\n\S|\Z)", text, re.S)
    if example:
        code = inspect.cleandoc("\n" + example[1])
        keys["markdownDescription"] = f"{keys.get('description', '')}\n\n```yaml\n{code}\n```"
    return keys


def names(words: Iterable[str], doc: str = "") -> JsonSchema:
    """Return the schema of a string that is often one of some words, which editors suggest."""
    snippets = [{"label": word, "bodyText": _snippet(word)} for word in sorted(set(words))]
    return {"type": "string", **({"defaultSnippets": snippets} if snippets else {}), **described(doc)}


def _snippet(word: str) -> str:
    """Return a string as editors insert it: quoted if necessary, and with a backslash before what means a variable."""
    return (word if _PLAIN.match(word) else json.dumps(word, ensure_ascii=False)).replace("$", "\\$")


def one_or_more(item: JsonSchema, doc: str = "") -> JsonSchema:
    """Return the schema of one item, or of a list of them, or nothing."""
    return {"anyOf": [item, {"type": "array", "items": item}, NOTHING], **described(doc)}


def definitions() -> Properties:
    """Return the definitions that other schemas refer to."""
    return {
        "secret": {"type": "object", **described("A secret: `!secret {env: NAME}` or `!secret {file: PATH}`.")},
        # Matches only null. With `type: null`, editors would suggest to write `null` for each attribute.
        "nothing": {"not": {"type": ["string", "number", "boolean", "object", "array"]}},
    }


def optional(value: JsonSchema, doc: str = "") -> JsonSchema:
    """Return the schema of a value that can be left out by writing nothing after the colon."""
    return {"anyOf": [*_options(value), NOTHING], **described(doc)}


def closed(properties: Properties, required: Iterable[str] = ()) -> JsonSchema:
    """Return the schema of a map that can have only these keys."""
    needs = list(required)
    return {
        "type": "object",
        "properties": properties,
        **({"required": needs} if needs else {}),
        "additionalProperties": False,
    }
