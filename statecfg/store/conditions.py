"""Conditions of lists as SQL: comparisons of columns and of what is inside a JSON column, on both databases.

A condition is a tree of tuples: `("and", conditions)`, `("or", conditions)`, and comparisons
`(operator, field, path, value)` where the operator is one of == != < <= > >=, `field` the name of a column, `path` the
keys inside it, none for the column itself, and `value` a text, a number, or, after == and !=, a tuple of the texts
between which any other text may stand.
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
# A number as JSON writes it, so that 1e3 in a filter finds 1000; "007" stays a text.
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?")


def sql(condition: Condition, table: Table, shared: bool) -> Any:
    """Return a condition as an SQL expression.

    :param table: whose columns the fields are
    :param shared: whether for PostgreSQL
    """
    kind = condition[0]
    if kind == "and":
        return and_(*(sql(item, table, shared) for item in condition[1]))
    if kind == "or":
        return or_(*(sql(item, table, shared) for item in condition[1]))
    _, field, path, value = condition
    column = table.c[field]
    if kind == "!=":
        # What is not there is not equal to anything.
        return not_(func.coalesce(_comparison("==", column, path, value, shared), false()))
    return _comparison(kind, column, path, value, shared)


def looks_inside(condition: Condition) -> bool:
    """Tell whether a condition compares what is inside a JSON column."""
    if condition[0] in ("and", "or"):
        return any(looks_inside(item) for item in condition[1])
    return bool(condition[2])


def sort_keys(column: Any, path: tuple[str, ...], shared: bool) -> list[Any]:
    """Return what a list is sorted by: texts by their characters' numbers, wherever the database is.

    Inside JSON, what has no such key comes first, then numbers by their size, then texts.
    """
    collation = "C" if shared else "BINARY"
    if path and not shared:
        # SQLite's own order of values is this one.
        return [func.json_extract(type_coerce(column, Text), _place(path))]
    if path:
        text, number = _inside(column, path, shared)
        kind = case((number.is_not(None), 1), (text.is_not(None), 2), else_=0)
        return [kind, number, text.collate(collation)]
    is_text = isinstance(column.type, Text) or column.type.python_type is str
    return [column.collate(collation) if is_text else column]


def _comparison(kind: str, column: Any, path: tuple[str, ...], value: Any, shared: bool) -> Any:
    if not path:
        return _compared(kind, column, value, shared)
    text, number = _inside(column, path, shared)
    if isinstance(value, tuple):
        return _compared(kind, text, value, shared)
    is_number = _NUMBER.fullmatch(value) is not None
    if not shared and kind == "==" and value not in _TRUTH and not _is_truth(value, is_number):
        # The same as below, with the JSON read once: numbers and texts keep apart in SQLite, but truth is 0 or 1 there.
        found = func.json_extract(type_coerce(column, Text), _place(path))
        compared = found.in_([literal(value), *([cast(literal(value), Numeric)] if is_number else [])])
    elif is_number:
        same = _ordered(kind, number, cast(literal(value), Numeric))
        return case((number.is_not(None), same), else_=_compared(kind, text, value, shared))
    else:
        compared = _compared(kind, text, value, shared)
    if kind != "==" or is_number or value in _TRUTH:
        return compared
    # Most rows are told apart by looking for the text alone, which is faster than reading their JSON. It stands in
    # there as it is, since both are written by the same rules.
    raw, needle = type_coerce(column, Text), json.dumps(value)
    return and_((func.strpos(raw, needle) if shared else func.instr(raw, needle)) > 0, compared)


def _is_truth(value: str, is_number: bool) -> bool:
    return is_number and float(value) in (0.0, 1.0)


def _compared(kind: str, text: Any, value: Any, shared: bool) -> Any:
    if isinstance(value, tuple):
        return text.like(_like(value), escape="\\") if shared else text.op("GLOB")(_glob(value))
    if kind == "==" or not isinstance(value, str):
        return _ordered(kind, text, value)
    return _ordered(kind, text.collate("C" if shared else "BINARY"), value)


def _ordered(kind: str, left: Any, right: Any) -> Any:
    return left == right if kind == "==" else _COMPARE[kind](left, right)


def _inside(column: Any, path: tuple[str, ...], shared: bool) -> tuple[Any, Any]:
    """Return what is at a path inside a JSON column, as a text, and as a number where it is one."""
    document: Any = type_coerce(column, Text)
    if shared:
        document = cast(document, JSON)
        text = func.json_extract_path_text(document, *path)
        kind = func.json_typeof(func.json_extract_path(document, *path))
        return type_coerce(text, Text), case((kind == "number", cast(text, Numeric)))
    value, kind = func.json_extract(document, _place(path)), func.json_type(document, _place(path))
    truth = case((kind == "true", "true"), (kind == "false", "false"), else_=cast(value, Text))
    return truth, case((kind.in_(("integer", "real")), value))


def _place(path: tuple[str, ...]) -> str:
    return "$" + "".join(f'."{key}"' for key in path)


def _like(pieces: tuple[str, ...]) -> str:
    return "%".join(re.sub(r"[\\%_]", r"\\\g<0>", piece) for piece in pieces)


def _glob(pieces: tuple[str, ...]) -> str:
    return "*".join(re.sub(r"[*?\[]", r"[\g<0>]", piece) for piece in pieces)
