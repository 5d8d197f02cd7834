"""The type of JSON Schemas (draft 2020-12): of attributes and playbooks, and of the documents of the API."""

from __future__ import annotations

from typing import Any, TypedDict

JsonSchema = TypedDict(
    "JsonSchema",
    {
        "$schema": str,
        "$ref": str,
        "title": str,
        "description": str,
        "markdownDescription": str,
        "patternErrorMessage": str,
        "errorMessage": str,
        "doNotSuggest": bool,
        "defaultSnippets": list[dict[str, str]],
        "type": str | list[str],
        "format": str,
        "const": Any,
        "enum": list[Any],
        "default": Any,
        "examples": list[Any],
        "readOnly": bool,
        "pattern": str,
        "minLength": int,
        "maxLength": int,
        "minimum": float,
        "maximum": float,
        "exclusiveMinimum": float,
        "items": "JsonSchema | list[JsonSchema]",
        "minItems": int,
        "maxItems": int,
        "uniqueItems": bool,
        "properties": "dict[str, JsonSchema]",
        "propertyNames": "JsonSchema",
        "additionalProperties": "bool | JsonSchema",
        "required": list[str],
        "dependencies": dict[str, list[str]],
        "minProperties": int,
        "maxProperties": int,
        "anyOf": "list[JsonSchema]",
        "allOf": "list[JsonSchema]",
        "oneOf": "list[JsonSchema]",
        "not": "JsonSchema",
        "if": "JsonSchema",
        "then": "bool | JsonSchema",
        "else": "bool | JsonSchema",
        "definitions": "dict[str, JsonSchema]",
    },
    total=False,
)
"""A JSON Schema with the keywords that statecfg uses, those of editors included."""

Properties = dict[str, JsonSchema]
"""The schemas of keys, or of definitions."""
