"""Edit one key in the text of a TOML file. Comments, order and all other values stay as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from statecfg.resources.shared import lines
from statecfg.resources.text.key_texts import MISSING, UNKNOWN, NotEditable, WrittenValue, dotted, quoted_text, row_of

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")  # what may follow a value in its line
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_LONG = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?\'{3,5}(?!\')', re.S)
_PLAIN = re.compile(r"\d{4}-\d\d-\d\d[Tt ][0-9:.+Zz-]+|[A-Za-z0-9_.:+-]+")
LONGEST = 40  # characters of a number that statecfg understands
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9](?:_?\d)*)")


class _TomlEntry:
    """A key with its value, or a header (`end` is None, and `array` tells whether it is one of `[[…]]`)."""

    def __init__(self, table: Sequence[str], key: Sequence[str], row: int) -> None:
        self.table, self.key, self.row, self.array = tuple(table), tuple(key), row, False
        self.start, self.value = 0, UNKNOWN
        self.end: int | None = None

    @property
    def path(self) -> tuple[str, ...]:
        return self.table + self.key


class _TomlReader:
    """Reads the text of a file once from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._counted = 0, 0  # a position, and its line

    def row(self) -> int:
        """Return the line of the present position, counted from 0."""
        at, row = self._counted
        self._counted = self.at, row + self.text.count("\n", at, self.at)
        return self._counted[1]

    def entries(self) -> list[_TomlEntry]:
        """Return all keys and headers.

        :raises NotEditable: if the text is not TOML
        """
        found: list[_TomlEntry] = []
        table: Sequence[str] = ()
        self.skip(_BLANK)
        while self.at < len(self.text):
            row = self.row()
            if self.text[self.at] == "[":
                array = self.text.startswith("[[", self.at)
                self.at += 2 if array else 1
                table = self.key()
                self.expect("]]" if array else "]")
                entry = _TomlEntry(table, (), row)
                entry.array = array
            else:
                entry = _TomlEntry(table, self.key(), row)
                self.expect("=")
                self.skip(_SPACE)
                entry.start = self.at
                entry.value = self.value()
                entry.end = self.at
            found.append(entry)
            if not self.skip(_REST):
                raise self.wrong("a line break")
            self.skip(_BLANK)
        return found

    def skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at
        return found is not None

    def wrong(self, wanted: str) -> NotEditable:
        return NotEditable(row_of(self.text, self.at), f"this is not TOML: {wanted} is missing")

    def expect(self, sign: str) -> None:
        self.skip(_SPACE)
        if not self.text.startswith(sign, self.at):
            raise self.wrong(f"`{sign}`")
        self.at += len(sign)

    def key(self) -> list[str]:
        """Read a key with all its parts."""
        parts = []
        while True:
            self.skip(_SPACE)
            found = _QUOTED.match(self.text, self.at) or _NAME.match(self.text, self.at)
            if found is None:
                raise self.wrong("a key")
            self.at = found.end()
            part = found.group()
            part = _unquoted(part) if part[0] in "\"'" else part
            if part is UNKNOWN:
                raise NotEditable(row_of(self.text, self.at), "the key has an escape that only TOML knows")
            parts.append(part)
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def value(self) -> Any:
        """Read a value; return `UNKNOWN` for one that statecfg never writes."""
        sign = self.text[self.at : self.at + 1]
        if sign == "[":
            return self.listed("]", self.value)
        if sign == "{":
            self.listed("}", self.pair)
            return UNKNOWN
        found = _LONG.match(self.text, self.at)
        if found is None and not self.text.startswith(('"""', "'''"), self.at):
            found = _QUOTED.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
        if found is None:
            raise self.wrong("a value")
        self.at = found.end()
        return _unquoted(found.group()) if sign in ('"', "'") else _plain(found.group())

    def pair(self) -> Any:
        self.key()
        self.expect("=")
        self.skip(_SPACE)
        return self.value()

    def listed(self, end: str, item: Any) -> list[Any]:
        """Read the elements of an array, or of an inline table."""
        self.at += 1
        items = []
        self.skip(_BLANK)
        while not self.text.startswith(end, self.at):
            items.append(item())
            self.skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self.skip(_BLANK)
            elif not self.text.startswith(end, self.at):
                raise self.wrong(f"`{end}`")
        self.at += 1
        return items


def _unquoted(text: str) -> Any:
    if text[:3] in ('"""', "'''"):
        return UNKNOWN
    if text[0] == "'":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return UNKNOWN


def _plain(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if len(text) > LONGEST:
        return UNKNOWN
    if _DECIMAL.fullmatch(text):
        return int(text.replace("_", ""))
    try:
        return float(text) if re.fullmatch(r"[+-]?\d[\d.eE+-]*", text) else UNKNOWN
    except ValueError:
        return UNKNOWN


def literal(value: Any) -> str:
    """Return a value as text of the file."""
    if isinstance(value, WrittenValue):
        return value
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, str):
        return quoted_text(value)
    return json.dumps(value)


def _find(text: str, key: Sequence[str]) -> tuple[list[_TomlEntry], _TomlEntry | None]:
    """Return all keys and headers, and the wanted key.

    :raises NotEditable: if the key can't be edited
    """
    found, wanted = None, tuple(key)
    try:
        entries = _TomlReader(text).entries()
    except RecursionError:
        raise NotEditable(None, "the values are nested too deeply") from None
    for entry in entries:
        path = entry.path
        if entry.array and wanted[: len(path)] == path:
            raise NotEditable(entry.row, f"`{dotted(path)}` is an array of tables")
        if entry.end is not None and path == wanted:
            if found is not None:
                raise NotEditable(entry.row, f"`{dotted(key)}` is also in line {found.row + 1}")
            found = entry
        elif entry.end is not None and wanted[: len(path)] == path:
            raise NotEditable(entry.row, f"`{dotted(path)}` is not a table with its own lines")
        elif path[: len(wanted)] == wanted:
            raise NotEditable(entry.row, f"`{dotted(key)}` is a table")
    return entries, found


def get(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key: `MISSING` if it is not there, `UNKNOWN` if statecfg never writes such a value."""
    _, found = _find(text, key)
    return MISSING if found is None else found.value


def written(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key as it is written; `MISSING` if it is not there."""
    _, found = _find(text, key)
    return MISSING if found is None or found.end is None else WrittenValue(text[found.start : found.end])


def put(text: str, key: Sequence[str], value: Any, quoted: bool = False) -> str:
    """Return the text in which the key has this value."""
    entries, found = _find(text, key)
    if found is not None and found.end is not None:
        return text[: found.start] + literal(value) + text[found.end :]
    above, wanted = tuple(key[:-1]), tuple(key)
    # The table with its own header; otherwise one in which dotted keys define the table; otherwise a new header.
    inside = [entry for entry in entries if entry.table == above]
    if not inside:
        keys = [entry for entry in entries if entry.end is not None and len(entry.table) < len(above)]
        inside = [entry for entry in keys if entry.path[: len(above)] == above]
    rows = lines.split(text)
    end = lines.line_ends(rows)
    table = inside[-1].table if inside else above
    new = [f"{_key(wanted[len(table) :])} = {literal(value)}" + end]
    at = len(rows) if above else 0
    if inside:
        last = inside[-1]
        at = row_of(text, (last.end or 1) - 1) + 1 if last.end is not None else last.row + 1
        indent = rows[last.row][: len(rows[last.row]) - len(rows[last.row].lstrip())]
        new[0] = indent + new[0]
    elif above:
        new = [*([end] if rows else []), f"[{_key(above)}]" + end, *new]
    if at == len(rows) and rows and not lines.line_end(rows[-1]):
        rows[-1] += end
    rows[at:at] = new
    return "".join(rows)


def _key(names: Sequence[str]) -> str:
    return ".".join(name if _NAME.fullmatch(name) else literal(name) for name in names)


def remove(text: str, key: Sequence[str]) -> str:
    """Return the text without the key."""
    _, found = _find(text, key)
    if found is None or found.end is None:
        return text
    rows = lines.split(text)
    del rows[found.row : row_of(text, found.end - 1) + 1]
    return "".join(rows)
