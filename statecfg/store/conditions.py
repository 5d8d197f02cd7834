"""Translate filters of lists to SQL for both databases: comparisons of columns and of values inside JSON columns.

A condition is a tree of tuples: `("and", conditions)`, `("or", conditions)`, and comparisons `(operator, field, path,
value)`. The operator is one of == != < <= > >=. `field` is the name of a column. `path` is the keys inside its JSON
value; it is empty for the column itself. `value` is a string or a number. For == and !=, it can also be a tuple of
texts: the parts of a pattern, between which any text matches.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Numeric, Table, Text, and_, case, cast, false, func, literal, not_, or_, type_coerce
from sqlalchemy.dialects.postgresql import JSON

Condition = tuple[Any, ...]

_TRUTH = ("true", "false")
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# A number in JSON notation, so that 1e3 in a filter finds 1000. "007" is a string.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")


def sql(condition: Condition, table: Table, shared: bool) -> Any:
    """Return a condition as an SQL expression.

    :param table: the table that contains the fields
    :param shared: whether the database is PostgreSQL
    """
    op = condition[0]
    if op == "and":
        return and_(*(sql(item, table, shared) for item in condition[1]))
    if op == "or":
        return or_(*(sql(item, table, shared) for item in condition[1]))
    _, field, path, value = condition
    column = table.c[field]
    if op == "!=":
        # A missing value is unequal to every value.
        return not_(func.coalesce(_comparison("==", column, path, value, shared), false()))
    return _comparison(op, column, path, value, shared)


def looks_inside(condition: Condition) -> bool:
    """Return whether a condition compares a value inside a JSON column."""
    if condition[0] in ("and", "or"):
        return any(looks_inside(item) for item in condition[1])
    return bool(condition[2])


def sort_keys(column: Any, path: tuple[str, ...], shared: bool) -> list[Any]:
    """Return the expressions to sort a list by. Texts are sorted by code point, regardless of the database's locale.

    With a path into JSON, rows without a value come first, then numbers in numeric order, then strings.
    """
    collation = "C" if shared else "BINARY"
    if path and not shared:
        # This is how SQLite sorts values.
        return [func.json_extract(type_coerce(column, Text), _json_path(path))]
    if path:
        text, number = _inside(column, path, shared)
        rank = case((number.is_not(None), 1), (text.is_not(None), 2), else_=0)
        return [rank, number, text.collate(collation)]
    is_text = isinstance(column.type, Text) or column.type.python_type is str
    return [column.collate(collation) if is_text else column]


def _comparison(op: str, column: Any, path: tuple[str, ...], value: Any, shared: bool) -> Any:
    if not path:
        return _compared(op, column, value, shared)
    text, number = _inside(column, path, shared)
    if isinstance(value, tuple):
        return _compared(op, text, value, shared)
    is_number = _NUMBER.fullmatch(value) is not None
    if not shared and op == "==" and value not in _TRUTH and not _is_truth(value, is_number):
        # Same result as below, but reads the JSON only once. SQLite distinguishes numbers from strings, but not
        # booleans from 0 and 1.
        inner = func.json_extract(type_coerce(column, Text), _json_path(path))
        compared = inner.in_([literal(value), *([cast(literal(value), Numeric)] if is_number else [])])
    elif is_number:
        same = _ordered(op, number, cast(literal(value), Numeric))
        return case((number.is_not(None), same), else_=_compared(op, text, value, shared))
    else:
        compared = _compared(op, text, value, shared)
    if op != "==" or is_number or value in _TRUTH:
        return compared
    # Searching the raw text first excludes most rows and is faster than reading their JSON. It finds every match,
    # because column and needle are serialized by the same rules.
    raw, needle = type_coerce(column, Text), json.dumps(value)
    return and_((func.strpos(raw, needle) if shared else func.instr(raw, needle)) > 0, compared)


def _is_truth(value: str, is_number: bool) -> bool:
    return is_number and float(value) in (0.0, 1.0)


def _compared(op: str, text: Any, value: Any, shared: bool) -> Any:
    if isinstance(value, tuple):
        return text.like(_like(value), escape="\\") if shared else text.op("GLOB")(_glob(value))
    if op == "==" or not isinstance(value, str):
        return _ordered(op, text, value)
    return _ordered(op, text.collate("C" if shared else "BINARY"), value)


def _ordered(op: str, left: Any, right: Any) -> Any:
    return left == right if op == "==" else _COMPARE[op](left, right)


def _inside(column: Any, path: tuple[str, ...], shared: bool) -> tuple[Any, Any]:
    """Return the value at a path inside a JSON column, as a string and, if it is a number, as a number."""
    document: Any = type_coerce(column, Text)
    if shared:
        document = cast(document, JSON)
        text = func.json_extract_path_text(document, *path)
        json_type = func.json_typeof(func.json_extract_path(document, *path))
        return type_coerce(text, Text), case((json_type == "number", cast(text, Numeric)))
    value, json_type = func.json_extract(document, _json_path(path)), func.json_type(document, _json_path(path))
    truth = case((json_type == "true", "true"), (json_type == "false", "false"), else_=cast(value, Text))
    return truth, case((json_type.in_(("integer", "real")), value))


def _json_path(path: tuple[str, ...]) -> str:
    return "$" + "".join(f'."{key}"' for key in path)


def _like(pieces: tuple[str, ...]) -> str:
    return "%".join(re.sub(r"[\\%_]", r"\\\g<0>", piece) for piece in pieces)


def _glob(pieces: tuple[str, ...]) -> str:
    return "*".join(re.sub(r"[*?\[]", r"[\g<0>]", piece) for piece in pieces)
