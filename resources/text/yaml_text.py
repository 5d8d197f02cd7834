"""Edit one key in the text of a YAML file: block maps, one key per line. Comments, order and all other lines stay.

The standard library has no YAML. This module understands block maps well enough to find a key, and refuses the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from statecfg.resources.shared import lines
from statecfg.resources.text.key_texts import MISSING, UNKNOWN, NotEditable, WrittenValue, dotted, quoted_text

_QUOTED = r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\''
_ENTRY = re.compile(
    r"( *)((?:%s)[ \t]*|<<[ \t]*|[A-Za-z0-9_./$][^:#'\"\[\]{},&*]*):(?=[ \t]|\Z)([ \t]*)(.*)\Z" % _QUOTED, re.S
)
_STRING = re.compile(f"(?:{_QUOTED})(?=[ \t]*(?:#|\\Z))")
_COMMENT = re.compile(r"(?:\A|(?<=[ \t]))#")
_INSIDE = re.compile(r"[\[{,:][ \t]*(?:%s)" % _QUOTED)  # strings in a list or map, which may contain `#`
_ITEM = re.compile(r"( *)-[ \t]+(.*)\Z", re.S)
_ANCHOR = re.compile(r"(?:\A|[\s\[{,])&([^\s\[\]{},]+)")
_WORD = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.+@-]*")
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{,39})")
_FLOAT = re.compile(r"[+-]?(?:0|[1-9]\d{,39})\.\d+(?:e[+-]?\d+)?")
# Readers of YAML 1.1 and of 1.2 disagree about these words.
_NOTHING = ("", "{}", "~", "null", "Null", "NULL")  # what a map without keys is written as
_OTHER = frozenset("y n yes no on off true false null ~ .inf .nan .".split())  # noqa: SIM905  # shorter than a list


class _YamlEntry:
    """A key of a block map, with its lines.

    :ivar end: the line after its value; blank lines and comments before the next key do not belong to it
    :ivar text: the value in the key's own line, without its comment
    """

    def __init__(self, found: re.Match[str], row: int) -> None:
        self.name, self.row, self.end = _unquoted(found.group(2).rstrip(" \t")), row, row + 1
        self.indent = len(found.group(1))
        self.start, self.text = found.start(4), _without_comment(found.group(4))


def _without_comment(text: str) -> str:
    string = _STRING.match(text)
    if string is not None:
        return string.group()
    end = len(text)
    quoted = [found.span() for found in _INSIDE.finditer(text)] if text[:1] in ("[", "{") else []
    for found in _COMMENT.finditer(text):
        while quoted and quoted[0][1] <= found.start():
            del quoted[0]
        if not quoted or found.start() < quoted[0][0]:
            end = found.start()
            break
    return text[:end].rstrip(" \t")


def _unquoted(text: str) -> Any:
    if text[:1] == "'":
        return text[1:-1].replace("''", "'")
    if text[:1] == '"':
        try:
            return json.loads(text)
        except ValueError:
            return UNKNOWN
    return text


def _entries(rows: Sequence[str], start: int, stop: int) -> list[_YamlEntry]:
    """Return the keys of the block map in these lines.

    :raises NotEditable: if there is something else
    """
    found: list[_YamlEntry] = []
    names: dict[Any, _YamlEntry] = {}
    for at in range(start, stop):
        row = lines.bare(rows[at])
        if "\r" in row:
            raise NotEditable(at, "YAML reads the CR in this line as a line end; write LF or CR LF")
        indent = len(row) - len(row.lstrip(" "))
        blank = not row.strip() or (row.lstrip().startswith("#") and not (found and found[-1].text[:1] in ("|", ">")))
        if not blank and found and indent > found[0].indent:
            found[-1].end = at + 1
        if blank or row.lstrip().startswith("#") or (found and indent > found[0].indent):
            continue
        if found and indent == found[0].indent and _ITEM.match(row + " ") and not found[-1].text:
            found[-1].end = at + 1  # a list may have the indentation of its key
            continue
        match = _ENTRY.match(row)
        if match is None or "\t" in row[: indent + 1] or (found and indent != found[0].indent):
            raise NotEditable(at, "statecfg edits block maps only, and this is not a line such as `key: value`")
        found.append(_YamlEntry(match, at))
        twice = names.setdefault(found[-1].name, found[-1])
        if twice is not found[-1] and twice.name is not UNKNOWN:
            raise NotEditable(at, f"the key `{twice.name}` is also in line {twice.row + 1}")
    return found


def _document(rows: Sequence[str]) -> tuple[int, int]:
    """Return the first line of the document's content, and the line after its last one.

    Lines such as `%YAML 1.2` and `---` are before the content, and `...` is after it.

    :raises NotEditable: if there are several documents
    """
    start, directives = 0, False
    for at, row in enumerate(map(lines.bare, rows)):
        if row.startswith("%"):
            directives = True
        elif row.startswith("---") and not _without_comment(row[3:].strip()):
            start = at + 1
            break
        elif row.strip() and not row.startswith("#"):
            break
    if directives and not start:
        raise NotEditable(0, "after a line that begins with `%`, YAML requires the line `---`")
    for at in range(start, len(rows)):
        row = lines.bare(rows[at])
        if row.startswith("...") and not _without_comment(row[3:].strip()):
            rest = next((after for after in range(at + 1, len(rows)) if _is_content(rows[after])), None)
            if rest is not None:
                raise NotEditable(rest, "the file has several documents, and statecfg edits files with one")
            return start, at
    return start, len(rows)


def _is_content(row: str) -> bool:
    return bool(row.strip()) and not row.startswith(("#", "..."))


def _walk(rows: Sequence[str], key: Sequence[str]) -> tuple[list[_YamlEntry], _YamlEntry | None, int]:
    """Follow a key as far as it exists.

    :returns: the keys of the last map on the way, the key of this map, and how many names of the key were followed
    """
    entries, above = _entries(rows, *_document(rows)), None
    for depth, name in enumerate(key):
        entry = next((entry for entry in entries if entry.name == name), None)
        if entry is None or depth == len(key) - 1:
            return entries, above, depth
        if entry.text not in _NOTHING:
            raise NotEditable(entry.row, f"`{dotted(key[: depth + 1])}` is not a block map")
        above, entries = entry, _entries(rows, entry.row + 1, entry.end)
    raise AssertionError("a key has at least one name")


def _plain(text: str) -> Any:
    """Return the value of a scalar, or of a simple list in one line."""
    if text[:1] in "\"'":
        return _unquoted(text)
    if text[:1] in "[{":
        try:
            return json.loads(text)
        except ValueError:
            simple = text[0] == "[" and text[-1] == "]" and not re.search(r"[\[\]{}\"']", text[1:-1])
            return [_plain(item.strip()) for item in text[1:-1].split(",")] if simple else UNKNOWN
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    word = _WORD.fullmatch(text) is not None or (" " in text and re.fullmatch(r"[A-Za-z][\w ./+@-]*", text))
    return text if word and text.lower() not in _OTHER else UNKNOWN


def _value(rows: Sequence[str], entry: _YamlEntry) -> Any:
    """Return a value; `UNKNOWN` for one that statecfg does not understand."""
    inside = [lines.bare(row) for row in rows[entry.row + 1 : entry.end]]
    inside = [row for row in inside if row.strip() and not row.lstrip().startswith("#")]
    if not inside:
        return _plain(entry.text)
    items = [_ITEM.match(row) for row in inside]
    if entry.text or not all(items) or len({item.group(1) for item in items if item is not None}) > 1:
        return UNKNOWN
    return [_plain(_without_comment(item.group(2))) for item in items if item is not None]


def literal(value: Any, quoted: bool = False) -> str:
    """Return a value as text of the file.

    :param quoted: whether to put every string in quotes
    """
    if isinstance(value, WrittenValue):
        return value
    if isinstance(value, (list, tuple)):
        # Strings with and without quotes in one list would need a reader for lists of YAML.
        quoted = quoted or any(isinstance(item, str) and not _is_word(item) for item in value)
        return f"[{', '.join((literal(item, quoted) for item in value))}]"
    if isinstance(value, str) and not quoted and _is_word(value):
        return str(value)
    return quoted_text(value) if isinstance(value, str) else json.dumps(value)


def _is_word(text: str) -> bool:
    """Tell whether all readers of YAML read a string without quotes in the same way."""
    return _WORD.fullmatch(text) is not None and text.lower() not in _OTHER


def get(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key: `MISSING` if it is not there, `UNKNOWN` if statecfg does not understand it."""
    rows = lines.split(text)
    entries, _, depth = _walk(rows, key)
    entry = next((entry for entry in entries if entry.name == key[-1]), None)
    return MISSING if entry is None or depth < len(key) - 1 else _value(rows, entry)


def written(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key as it is written, with all its lines; `MISSING` if it is not there."""
    rows = lines.split(text)
    entries, _, depth = _walk(rows, key)
    entry = next((entry for entry in entries if entry.name == key[-1]), None)
    if entry is None or depth < len(key) - 1:
        return MISSING
    if entry.end == entry.row + 1:
        return WrittenValue(entry.text)
    return WrittenValue(lines.bare("".join([rows[entry.row][entry.start :], *rows[entry.row + 1 : entry.end]])))


def _require_unused(rows: Sequence[str], entry: _YamlEntry) -> None:
    """Check that nothing refers to a value that is replaced or removed.

    :raises NotEditable: if an alias does
    """
    value = "".join([rows[entry.row][entry.start :], *rows[entry.row + 1 : entry.end]])
    rest = "".join([*rows[: entry.row], *rows[entry.end :]])
    for name in _ANCHOR.findall(value):
        if "*" + name in rest:
            raise NotEditable(entry.row, f"the value has the anchor &{name}, which other lines use")


def put(text: str, key: Sequence[str], value: Any, quoted: bool = False) -> str:
    """Return the text in which the key has this value."""
    rows = lines.split(text)
    entries, above, depth = _walk(rows, key)
    end = lines.line_ends(rows)
    entry = next((entry for entry in entries if entry.name == key[depth]), None)
    if entry is not None:
        _require_unused(rows, entry)
        row = rows[entry.row]
        before = row[: entry.start] if row[entry.start - 1] in " \t" else row[: entry.start] + " "
        before = lines.bare(before).rstrip(" \t") + " " if not entry.text else before
        rest = row[entry.start + len(entry.text) :]
        rest = " " + rest if not entry.text and rest.startswith("#") else rest
        if isinstance(value, WrittenValue) and value[:1] in ("\n", "\r"):  # its lines are below the key
            before = before.rstrip(" \t")
        head, *below = literal(value, quoted).split("\n", 1)  # only a written value has more lines
        end = lines.line_end(rest)  # a comment of the present line stays in the first one
        new = [head.rstrip("\r") + lines.bare(rest), *below] if below else [head + lines.bare(rest)]
        rows[entry.row : entry.end] = [before + (lines.line_ends(rows)).join(new) + end]
        return "".join(rows)
    step = _step(rows)
    at, indent = _document(rows)[1], 0
    if entries:
        at, indent = entries[-1].end, entries[-1].indent
    elif above is not None:
        at, indent = above.row + 1, above.indent + step
        row = rows[above.row]
        rows[above.row] = row[: above.start].rstrip(" \t") + row[above.start + len(above.text) :] if above.text else row
    new = [" " * (indent + step * level) + _name(name) + ":" for level, name in enumerate(key[depth:])]
    wrapped = isinstance(value, WrittenValue) and value[:1] in ("", "\r", "\n")  # the value begins in the next line
    new[-1] += ("" if wrapped else " ") + literal(value, quoted)
    if at == len(rows) and rows and not lines.line_end(rows[-1]):
        rows[-1] += end
    rows[at:at] = [row + end for row in new]
    return "".join(rows)


def _step(rows: Sequence[str]) -> int:
    """Return the number of spaces of one level: that of the first line with any."""
    found = (re.match(r"( +)[^ #-]", row) for row in rows)
    return next((len(match.group(1)) for match in found if match is not None), 2)


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) and name.lower() not in _OTHER else quoted_text(name)


def remove(text: str, key: Sequence[str]) -> str:
    """Return the text without the key. A map that becomes empty is written as `{}`."""
    rows = lines.split(text)
    entries, above, depth = _walk(rows, key)
    entry = next((entry for entry in entries if entry.name == key[depth]), None)
    if entry is None or depth < len(key) - 1:
        return text
    _require_unused(rows, entry)
    del rows[entry.row : entry.end]
    if len(entries) == 1 and above is not None:
        row = rows[above.row]
        comment = row[above.start :].strip()
        head = row[: above.start].rstrip() + " {}" + (" " + comment if comment else "")
        rows[above.row] = head + lines.line_end(row)
    return "".join(rows)
