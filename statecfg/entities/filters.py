"""Filters of lists, in FIQL: comparisons joined by `;` (and) and `,` (or), with parentheses.

Source: draft-nottingham-atompub-fiql-00. A comparison is a key, one of == != =lt= =le= =gt= =ge=, and a value. After ==
and !=, `*` in the value matches any text. A backslash escapes one of `; , ( ) * \\`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from statecfg.entities.problems import bad
from statecfg.problems import did_you_mean, sentence
from statecfg.problems.frozen import dataclass

LONGEST = 8192
DEEPEST = 32
MOST = 100  # comparisons
INVALID = "INVALID_FILTER"
_COMPARISON = re.compile(r"([A-Za-z0-9_.@$/-]+)(==|!=|=lt=|=le=|=gt=|=ge=)((?:\\.|[^;,()\\])*)", re.S)
_PIECE = re.compile(r"\\(.)|(\*)|([^\\*]+)", re.S)
_OPERATORS = {"==": "==", "!=": "!=", "=lt=": "<", "=le=": "<=", "=gt=": ">", "=ge=": ">="}
Condition = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FilterField:
    """The column that a key of a filter refers to.

    :param column: the column in the store
    :param value_type: "text", "time" (ISO 8601 in filters), "number", or "json" (the key continues with keys inside it)
    """

    column: str
    value_type: str = "text"


Fields = Mapping[str, FilterField]


def parse(text: str, fields: Fields) -> Condition | None:
    """Parse a filter to a condition of the store (see `store.conditions`); return None for an empty filter.

    :param fields: key → field
    :raises ApiError: the syntax is wrong, or the filter names an unknown key
    """
    if not text.strip():
        return None
    if len(text) > LONGEST:
        raise bad(f"The filter is longer than {LONGEST} characters.", INVALID)
    return _Parser(text, fields).whole()


def order(name: str, fields: Fields) -> tuple[str, tuple[str, ...]] | None:
    """Return the column, and the keys inside it, to sort a list by; None for an empty name.

    :raises ApiError: there is no field of that name
    """
    if not name:
        return None
    field, path = _field(name, fields)
    return field.column, path


def _field(name: str, fields: Fields) -> tuple[FilterField, tuple[str, ...]]:
    field = fields.get(name)
    if field is not None and field.value_type != "json":
        return field, ()
    first, *path = name.split(".")
    field = fields.get(first)
    if field is not None and field.value_type == "json" and not path:
        raise bad(f"{first} is an object: name a key inside it, such as {first}.size.", INVALID)
    if field is None or field.value_type != "json" or not all(path):
        hint = did_you_mean(name, fields) or f"Valid fields: {', '.join(fields)}."
        raise bad(f"Unknown field {name[:100]}.{sentence(hint)}", INVALID)
    return field, tuple(path)


class _Parser:
    def __init__(self, text: str, fields: Fields) -> None:
        self.text, self.fields, self.at, self.depth, self.comparisons = text, fields, 0, 0, 0

    def whole(self) -> Condition:
        condition = self.either()
        if self.at < len(self.text):
            raise self.error()
        return condition

    def either(self) -> Condition:
        return self.joined(",", "or", self.both)

    def both(self) -> Condition:
        return self.joined(";", "and", self.one)

    def joined(self, separator: str, operator: str, part: Any) -> Condition:
        items = [part()]
        while self.text.startswith(separator, self.at):
            self.at += 1
            # Some clients put a separator after each comparison.
            if self.at == len(self.text):
                break
            items.append(part())
        return items[0] if len(items) == 1 else (operator, items)

    def one(self) -> Condition:
        if not self.text.startswith("(", self.at):
            return self.comparison()
        self.depth += 1
        if self.depth > DEEPEST:
            raise bad(f"The filter is nested more than {DEEPEST} levels deep.", INVALID)
        self.at += 1
        condition = self.either()
        if not self.text.startswith(")", self.at):
            raise self.error()
        self.at += 1
        self.depth -= 1
        return condition

    def comparison(self) -> Condition:
        match = _COMPARISON.match(self.text, self.at)
        if match is None:
            raise self.error()
        self.comparisons += 1
        if self.comparisons > MOST:
            raise bad(f"The filter has more than {MOST} comparisons.", INVALID)
        self.at = match.end()
        name, operator, raw = match.groups()
        field, path = _field(name, self.fields)
        value = _value(name, field, raw)
        if field.value_type in ("text", "json") and operator in ("==", "!="):
            value = _pattern(raw)
        return (_OPERATORS[operator], field.column, path, value)

    def error(self) -> Exception:
        rest = self.text[self.at :][:60]
        return bad(f"The filter is invalid from character {self.at + 1} on: {rest!r}.", INVALID)


def _pattern(raw: str) -> str | tuple[str, ...]:
    """Parse a value with wildcards: return a string, or the strings before, between and after the `*`."""
    pieces = [""]
    for escaped, star, plain in _PIECE.findall(raw.replace("\0", "")):
        if star:
            pieces.append("")
        else:
            pieces[-1] += escaped or plain
    return pieces[0] if len(pieces) == 1 else tuple(pieces)


def _value(name: str, field: FilterField, raw: str) -> Any:
    value = re.sub(r"\\(.)", r"\1", raw, flags=re.S).replace("\0", "")
    if field.value_type == "number":
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise bad(f"{name} can only be compared with integers.", INVALID)
        return int(value)
    if field.value_type != "time":
        return value
    try:
        moment = datetime.datetime.fromisoformat(value)
        # A time without a zone is UTC, like the times in replies.
        return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
    except (ValueError, OverflowError):
        raise bad(f"{name} can only be compared with times such as 2031-05-01T12:30:00.000Z.", INVALID) from None
