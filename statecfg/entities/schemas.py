"""Check schemas of types, and validate entities with them. Source: JSON Schema, drafts 4 (the default), 6 and 7."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from statecfg.entities import patterns
from statecfg.entities.model import Json
from statecfg.entities.problems import bad

INVALID = "RDE_INVALID_SCHEMA"
LARGEST = 1 << 20  # bytes of a schema
RESULTS = 256  # results that are kept
SHOWN = 512  # characters of a validation error
_RESULTS: dict[bytes, str] = {}
_DRAFTS = {f"http://json-schema.org/draft-0{number}/schema": f"Draft{number}Validator" for number in (4, 6, 7)}


def check_schema(schema: Json) -> None:
    """Check a type's schema. It may only refer to itself.

    :raises ApiError: it is invalid, too large, of another draft, or refers to something outside itself
    """
    import jsonschema

    if len(json.dumps(schema)) > LARGEST:
        raise bad(f"The schema is larger than {LARGEST} bytes.", INVALID)
    try:
        _check_draft(schema)
        _check_inside(schema)
    except jsonschema.SchemaError as problem:
        path = "/".join(map(str, problem.path))
        raise bad(f"The schema is invalid{f' at {path}' if path else ''}: {problem.message[:SHOWN]}", INVALID) from None
    except RecursionError:
        raise bad("The schema is nested too deeply.", INVALID) from None
    except OverflowError:
        raise bad("The schema has a pattern that repeats something too often.", INVALID) from None


def error(schema: Json, content: Any, nulls: bool = False, ours: bool = False) -> str:
    """Return why an entity's content is invalid by its type's schema; "" if it is valid.

    The result is kept, so that a call before a transaction makes the call inside of it fast: while a transaction is
    open, other changes wait.

    :param nulls: accept null for any inner value: clients write it for values that are not set yet
    :param ours: whether the schema is one of statecfg's own, whose patterns are known to be fast
    """
    text = json.dumps(schema, sort_keys=True)
    if ours:
        return _error(text, content, nulls, False)
    key = hashlib.sha256(json.dumps([text, content, nulls], sort_keys=True).encode("utf-8", "replace")).digest()
    found = _RESULTS.get(key)
    if found is None:
        found = _error(text, content, nulls, '"pattern' in text)
        if len(_RESULTS) >= RESULTS:
            _RESULTS.clear()
        _RESULTS[key] = found
    return found


def _error(text: str, content: Any, nulls: bool, bounded: bool) -> str:
    import referencing.exceptions
    from jsonschema.exceptions import best_match

    try:
        with patterns.SEARCHES.bounded() if bounded else contextlib.nullcontext():
            problems = _validator(text, bounded).iter_errors(content)
            problem = best_match(item for item in problems if not (nulls and item.path and item.instance is None))
    except patterns.TooSlow:
        return f"a pattern of the type's schema takes longer than {patterns.WORK:g} s"
    except referencing.exceptions.Unresolvable:
        return "the type's schema refers to something that it does not contain"
    except RecursionError:
        return "the type's schema refers to itself endlessly"
    except OverflowError:
        return "a number is too large for multipleOf"
    except (AttributeError, TypeError, ValueError):
        # A reference inside the schema may name any JSON, which was never checked as a schema.
        return "a reference in the schema does not point to a schema"
    if problem is None:
        return ""
    path = ".".join(map(str, problem.absolute_path))
    text = problem.message if len(problem.message) <= SHOWN else f"{problem.message[:SHOWN]}…"
    return f"{path}: {text}" if path else text


def _check_draft(schema: Json) -> None:
    """Check a schema by its draft. In draft 4, accept true and false as schemas.

    Clients' types use them there, although only later drafts define them.

    :raises jsonschema.SchemaError: it is invalid
    """
    import jsonschema
    from jsonschema.exceptions import best_match

    draft = _draft(schema)
    meta = draft.META_SCHEMA
    problem = best_match(
        item
        for item in draft(meta, format_checker=draft.FORMAT_CHECKER).iter_errors(schema)
        if not (isinstance(item.instance, bool) and item.validator == "type" and item.schema == meta)
    )
    if problem is not None:
        raise jsonschema.SchemaError.create_from(problem)


def _draft(schema: Json) -> Any:
    import jsonschema

    named = schema.get("$schema", "http://json-schema.org/draft-04/schema#")
    validator = _DRAFTS.get(named.rstrip("#").replace("https:", "http:")) if isinstance(named, str) else None
    if validator is None:
        raise bad("The schema's $schema must be that of draft 4, 6 or 7 of JSON Schema.", INVALID)
    return getattr(jsonschema, validator)


def _check_inside(value: Any) -> None:
    """Refuse a $ref to the outside, because nothing is ever fetched, and invalid patterns in `patternProperties`."""
    if isinstance(value, dict):
        patterns = value.get("patternProperties")
        for pattern in patterns if isinstance(patterns, dict) else ():
            _check_pattern(pattern)
        reference = value.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise bad(f"The schema refers to {reference[:SHOWN]}; it may only refer to itself (#…).", INVALID)
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
    validator = extend(_draft(schema), {"uniqueItems": _unique, **(_BOUNDED if bounded else {})})
    # An empty registry: without it, jsonschema would fetch the schemas that a schema refers to.
    return validator(schema, registry=referencing.Registry())


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yield an error if a list has equal items, for `uniqueItems`.

    jsonschema's own check compares each pair of objects. With 3,000 of them, it takes half a minute.
    """
    from jsonschema.exceptions import ValidationError

    if wanted and isinstance(instance, list) and len(set(map(_hashable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON values only: 1 equals 1.0, and true differs from 1."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        # As text: hashes of strings are random, so an attacker can't choose numbers that collide.
        return (float, str(int(value)) if value == int(value) else repr(value))
    return (type(value), value)


# The keywords with patterns, as in jsonschema, but with searches under a time limit.


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not patterns.SEARCHES.matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, value: Json, instance: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in value.items() if isinstance(instance, dict) else ():
        for key, item in instance.items():
            if patterns.SEARCHES.matches(pattern, key):
                yield from validator.descend(item, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    import jsonschema

    properties = set(schema.get("properties", ()))
    for key in instance if isinstance(instance, dict) else ():
        if any(patterns.SEARCHES.matches(pattern, key) for pattern in schema.get("patternProperties", ())):
            properties.add(key)
    check = jsonschema.Draft7Validator.VALIDATORS["additionalProperties"]
    yield from check(validator, value, instance, {"properties": properties})


_BOUNDED = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
