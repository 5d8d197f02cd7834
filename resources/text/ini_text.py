"""Edit one key in the text of an INI file. Comments, order and spaces stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from statecfg.resources.shared import lines
from statecfg.resources.text.key_texts import MISSING, NotEditable

_HEADER = re.compile(r"\s*\[([^\]]*)\]\s*(?:[#;].*)?\Z")
_ENTRY = re.compile(r"(\s*)([^=:\s\[#;][^=:]*)([=:])(.*)\Z", re.S)


class _IniEntry:
    """A line with a key.

    :ivar sign: the separator with the spaces around it
    """

    def __init__(self, found: re.Match[str]) -> None:
        self.indent, name, sign, rest = found.groups()
        self.key, self.value = name.rstrip(), rest.strip()
        after = rest[: len(rest) - len(rest.lstrip())] if self.value else rest
        self.sign = name[len(self.key) :] + sign + after


class _KeyPosition:
    """Where a key is, or belongs.

    :ivar at: the line of the key; None if it is missing
    :ivar entry: the key's line, or another line that shows the style of the file
    :ivar end: the line after which a new key goes, -1 for the beginning; None if there is no such section
    :ivar headers: the lines of the section's headers
    :ivar similar: the line of a key that many programs read as the same one, and its name
    :ivar similar_section: the line of a section that differs only in case, and its name
    """

    def __init__(self, rows: list[str], section: str, key: str) -> None:
        self.at: int | None = None
        self.entry: _IniEntry | None = None
        self.end: int | None = None if section else -1
        self.headers: list[int] = []
        self.similar: tuple[int, str] | None = None
        self.similar_section: tuple[int, str] | None = None
        valueless: int | None = None
        current, indent, styled, last = "", None, False, -1
        for at, row in enumerate(map(lines.bare, rows)):
            if not row.strip() or row.lstrip()[0] in "#;":
                continue
            header, found = _HEADER.match(row), _ENTRY.match(row)
            entry = _IniEntry(found) if found is not None else None
            if header:
                current, indent = header.group(1).strip(), None
                if current == section:
                    self.end = at
                    self.headers.append(at)
                elif current.lower() == section.lower():  # `a-b` and `a_b` can be two shares or two programs
                    self.similar_section = at, current
                continue
            continues = indent is not None and len(row) - len(row.lstrip()) > indent
            if current == section:
                self.end = at
                of_key = last == self.at and (at - 1 == last or not entry)
                if continues and (of_key or (entry and entry.key == key)):
                    raise NotEditable(at, "this line continues the value before it")
            if entry is None or continues:
                if not continues and current == section and row.strip().lower() == key.lower():
                    valueless = at
                continue
            indent, last = len(entry.indent), at
            if current == section and entry.key == key:
                if self.at is not None:
                    raise NotEditable(at, f"the key `{key}` is also in line {self.at + 1}")
                if entry.value.endswith("\\"):
                    raise NotEditable(at, "the value continues in the next line")
                self.at, self.entry, styled = at, entry, True
                continue
            if current == section and _alike(entry.key, key):
                self.similar = at, entry.key
            if not styled:
                self.entry, styled = entry, current == section
        if self.at is None and valueless is not None:
            raise NotEditable(valueless, f"the key `{key}` has no value here; manage this line with line_in_file")

    def require_no_similar(self) -> None:
        """Check that no section or key of the file differs only in its spelling from the wanted one.

        :raises NotEditable: if there is
        """
        there = bool(self.headers) or self.end == -1
        found = self.similar if there else self.similar_section
        if self.at is None and found is not None:
            what = f"the {'key' if there else 'section'} is written `{found[1]}` here"
            raise NotEditable(found[0], f"{what}, and many programs see no difference; write it as the file does")

    def require_one_section(self) -> None:
        """Check that a new key can go into one section only.

        :raises NotEditable: if there are several sections of this name
        """
        if len(self.headers) > 1:
            first, second = self.headers[:2]
            why = f"this section is also in line {first + 1}, and the key could go into either"
            raise NotEditable(second, f"{why}; join the sections, or write the line with line_in_file and `after`")


def _alike(one: str, other: str) -> bool:
    """Tell whether names differ only in case, in spaces, or in `-` and `_`."""
    plain = [re.sub(r"[-_\s]+", "_", name).lower() for name in (one, other)]
    return plain[0] == plain[1]


def literal(value: Any) -> str:
    """Return a value as text of the file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def get(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key as text; `MISSING` if it is not there."""
    position = _KeyPosition(lines.split(text), *key)
    return MISSING if position.at is None or position.entry is None else position.entry.value


written = get  # all values are text


def put(text: str, key: Sequence[str], value: Any, quoted: bool = False) -> str:
    """Return the text in which the key has this value."""
    rows = lines.split(text)
    position, end = _KeyPosition(rows, *key), lines.line_ends(rows)
    if position.at is not None and position.entry is not None:
        entry = position.entry
        rows[position.at] = entry.indent + entry.key + entry.sign + literal(value) + lines.line_end(rows[position.at])
        return "".join(rows)
    position.require_no_similar()
    position.require_one_section()
    indent, separator = "", " = "
    if position.entry is not None:
        before, after = re.split("[=:]", position.entry.sign)
        sign = position.entry.sign.strip()
        indent, separator = position.entry.indent, (" " if before else "") + sign + (" " if after else "")
    new = [f"{indent}{key[1]}{separator}{literal(value)}" + end]
    if position.end is None:
        new = [*([end] if rows else []), f"[{key[0]}]" + end, *new]
    at = len(rows) if position.end is None else position.end + 1
    if at == len(rows) and rows and not lines.line_end(rows[-1]):
        rows[-1] += end
    rows[at:at] = new
    return "".join(rows)


def remove(text: str, key: Sequence[str]) -> str:
    """Return the text without the key."""
    rows = lines.split(text)
    position = _KeyPosition(rows, *key)
    position.require_no_similar()
    if position.at is not None:
        del rows[position.at]
    return "".join(rows)
