"""Schemas of types, and entities looked at by them. Source: JSON Schema, drafts 4, 6 and 7; 4 where none is named."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from statecfg.entities import patterns
from statecfg.entities.model import Json
from statecfg.entities.problems import bad

INVALID = "RDE_INVALID_SCHEMA"
LARGEST = 1 << 20  # bytes of a schema
SHOWN = 512  # characters of what is wrong with an entity
_DRAFTS = {f"http://json-schema.org/draft-0{number}/schema": f"Draft{number}Validator" for number in (4, 6, 7)}


def check_schema(schema: Json) -> None:
    """Refuse a schema that is none, is of another draft, or refers to something outside itself. Raises ApiError."""
    import jsonschema

    if len(json.dumps(schema)) > LARGEST:
        raise bad(f"The schema is larger than {LARGEST} bytes.", INVALID)
    try:
        _check_draft(schema)
        _check_inside(schema)
    except jsonschema.SchemaError as problem:
        place = "/".join(map(str, problem.path))
        raise bad(f"The schema is wrong{f' at {place}' if place else ''}: {problem.message[:SHOWN]}", INVALID) from None
    except RecursionError:
        raise bad("The schema is nested too deeply.", INVALID) from None
    except OverflowError:
        raise bad("The schema has a pattern that repeats something too often.", INVALID) from None


def wrong(schema: Json, content: Any, nulls: bool = False, ours: bool = False) -> str:
    """Return what is wrong with an entity's content by its type's schema; "" for nothing.

    :param nulls: whether null may stand inside of it for whatever has no value yet, as clients write it
    :param ours: the schema is our own, whose patterns are known to be quick
    """
    import referencing.exceptions
    from jsonschema.exceptions import best_match

    text = json.dumps(schema, sort_keys=True)
    bounded = '"pattern' in text and not ours
    try:
        with patterns.SEARCHES.bounded() if bounded else contextlib.nullcontext():
            problems = _validator(text, bounded).iter_errors(content)
            problem = best_match(each for each in problems if not (nulls and each.path and each.instance is None))
    except patterns.TooSlow:
        return f"a pattern of the type's schema takes longer than {patterns.WORK:g} s"
    except referencing.exceptions.Unresolvable:
        return "the type's schema refers to something that it does not have"
    except RecursionError:
        return "the type's schema refers to itself without end"
    except OverflowError:
        return "a number is too large to be looked at by multipleOf"
    except (AttributeError, TypeError, ValueError):
        # What is referred to, from inside itself, may be any JSON, which nobody has looked at as a schema.
        return "the type's schema refers to what is no schema"
    if problem is None:
        return ""
    place = ".".join(map(str, problem.absolute_path))
    text = problem.message if len(problem.message) <= SHOWN else f"{problem.message[:SHOWN]}…"
    return f"{place}: {text}" if place else text


def _check_draft(schema: Json) -> None:
    """Refuse what is no schema of its draft, but for true and false in the place of schemas in draft 4.

    Clients' types have them there: only later drafts know them. Raises jsonschema.SchemaError.
    """
    import jsonschema
    from jsonschema.exceptions import best_match

    draft = _draft(schema)
    meta = draft.META_SCHEMA
    problem = best_match(
        each
        for each in draft(meta, format_checker=draft.FORMAT_CHECKER).iter_errors(schema)
        if not (isinstance(each.instance, bool) and each.validator == "type" and each.schema == meta)
    )
    if problem is not None:
        raise jsonschema.SchemaError.create_from(problem)


def _draft(schema: Json) -> Any:
    import jsonschema

    named = schema.get("$schema", "http://json-schema.org/draft-04/schema#")
    found = _DRAFTS.get(named.rstrip("#").replace("https:", "http:")) if isinstance(named, str) else None
    if found is None:
        raise bad("The schema's $schema has to be that of draft 4, 6 or 7 of JSON Schema.", INVALID)
    return getattr(jsonschema, found)


def _check_inside(value: Any) -> None:
    """Refuse a $ref that is not inside the schema, since nothing is ever fetched, and keys that are no patterns."""
    if isinstance(value, dict):
        patterns = value.get("patternProperties")
        for pattern in patterns if isinstance(patterns, dict) else ():
            _check_pattern(pattern)
        reference = value.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise bad(f"The schema refers to {reference[:SHOWN]}: only what is inside it (#…) can be.", INVALID)
        for item in value.values():
            _check_inside(item)
    elif isinstance(value, list):
        for item in value:
            _check_inside(item)


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as problem:
        raise bad(f"The schema has the pattern {pattern[:SHOWN]!r}: {problem.msg}.", INVALID) from None


@functools.lru_cache(maxsize=64)
def _validator(text: str, bounded: bool) -> Any:
    import jsonschema
    import referencing

    schema = json.loads(text)
    extend: Any = jsonschema.validators.extend
    kind = extend(_draft(schema), {"uniqueItems": _unique, **(_BOUNDED if bounded else {})})
    # A registry that finds nothing: without it, jsonschema would fetch what a schema names.
    return kind(schema, registry=referencing.Registry())


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yield what is wrong with a list that is to have no two equal items.

    In place of jsonschema's own, which compares each object in it with every other: of 3,000, for half a minute.
    """
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(instance, list) and len(set(map(_hashable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _hashable(value: Any) -> Any:
    """Return what is the same for equal JSON values, and for no others: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        # As a text, of which nobody can choose many with the same hash.
        return (float, str(int(value)) if value == int(value) else repr(value))
    return (type(value), value)


# The keywords with patterns, as jsonschema has them, but for who looks for the patterns.


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not patterns.SEARCHES.found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, given: Json, instance: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in given.items() if isinstance(instance, dict) else ():
        for key, item in instance.items():
            if patterns.SEARCHES.found(pattern, key):
                yield from validator.descend(item, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, given: Any, instance: Any, schema: Any) -> Iterator[Any]:
    import jsonschema

    known = set(schema.get("properties", ()))
    for key in instance if isinstance(instance, dict) else ():
        if any(patterns.SEARCHES.found(pattern, key) for pattern in schema.get("patternProperties", ())):
            known.add(key)
    check = jsonschema.Draft7Validator.VALIDATORS["additionalProperties"]
    yield from check(validator, given, instance, {"properties": known})


_BOUNDED = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
