"""Edit one key in the text of a JSON file. Order, spaces and all other values stay as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from statecfg.remote.wire.strict_json import distinct
from statecfg.resources.shared import lines
from statecfg.resources.text.key_texts import MISSING, UNKNOWN, NotEditable, WrittenValue, dotted, row_of

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\]}]+")
_SKIPPED = re.compile(r'[^"{}\[\]]+')


class _Member:
    """A member of an object: its name, and where the name and the value begin and end."""

    def __init__(self, text: str, start: int) -> None:
        quoted = _STRING.match(text, start)
        assert quoted is not None
        self.name, self.start, self.named = json.loads(quoted.group()), start, quoted.end()
        colon = _after(text, quoted.end())
        self.value = _after(text, colon + 1)
        self.end = _end(text, self.value)


def _after(text: str, at: int) -> int:
    """Return the position of the next character that is not a space."""
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _end(text: str, at: int) -> int:
    """Return where the value that begins at `at` ends."""
    depth = 0
    while True:
        if text[at] == '"':
            found = _STRING.match(text, at)
        elif text[at] in "{[]}":
            depth += 1 if text[at] in "{[" else -1
            found = None
        else:
            found = (_SKIPPED if depth else _PLAIN).match(text, at)
        at = found.end() if found is not None else at + 1
        if not depth:
            return at


def _members(text: str, at: int) -> list[_Member]:
    """Return the members of the object that begins at `at`."""
    members: list[_Member] = []
    at = _after(text, at + 1)
    while text[at] != "}":
        members.append(_Member(text, at))
        at = _after(text, members[-1].end)
        at = _after(text, at + 1) if text[at] == "," else at
    return members


def _check(text: str) -> None:
    # Not `strict_json.loads`: NaN and large numbers are fine, because all other values stay as they are written.
    try:
        json.loads(text, parse_int=float, object_pairs_hook=distinct)
    except json.JSONDecodeError as problem:
        raise NotEditable(problem.lineno - 1, f"this is not JSON: {problem.msg}") from None
    except ValueError as problem:
        raise NotEditable(None, str(problem)) from None
    except RecursionError:
        raise NotEditable(None, "the values are nested too deeply") from None


def _walk(text: str, key: Sequence[str]) -> tuple[int, list[_Member], int]:
    """Follow a key as far as it exists.

    :returns: where the last object on the way begins, its members, and how many names of the key were followed
    """
    _check(text)
    at = _after(text, 0)
    for depth, name in enumerate(key):
        if text[at] != "{":
            where = f"`{dotted(key[:depth])}`" if depth else "the text"
            raise NotEditable(row_of(text, at), f"{where} is not an object")
        members = _members(text, at)
        member = next((member for member in members if member.name == name), None)
        if member is None or depth == len(key) - 1:
            return at, members, depth
        at = member.value
    raise AssertionError("a key has at least one name")


def get(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key: `MISSING` if it is not there, `UNKNOWN` if statecfg does not understand it."""
    if not text.strip():
        return MISSING
    _, members, depth = _walk(text, key)
    found = next((member for member in members if member.name == key[depth]), None)
    if found is None:
        return MISSING
    try:
        return json.loads(text[found.value : found.end])
    except ValueError:  # an integer with thousands of digits
        return UNKNOWN


def written(text: str, key: Sequence[str]) -> Any:
    """Return the value of the key as it is written; `MISSING` if it is not there."""
    if not text.strip():
        return MISSING
    _, members, depth = _walk(text, key)
    found = next((member for member in members if member.name == key[depth]), None)
    return MISSING if found is None or depth < len(key) - 1 else WrittenValue(text[found.value : found.end])


def put(text: str, key: Sequence[str], value: Any, quoted: bool = False) -> str:
    """Return the text in which the key has this value. New lines end like the first line of the text."""
    text = text if text.strip() else "{}\n"
    at, members, depth = _walk(text, key)
    member = next((member for member in members if member.name == key[depth]), None)
    for name in reversed(key[depth + 1 :]):
        value = WrittenValue(f"{{{json.dumps(name)}: {value}}}") if isinstance(value, WrittenValue) else {name: value}
    if member is not None:
        return text[: member.value] + _written(text, value, member.start) + text[member.end :]
    if not members:
        end = _after(text, at + 1)
        above = _indent(text, at)
        inside, line_end = above + _unit(text), _line_end(text)
        name = json.dumps(key[depth], ensure_ascii=False)
        new = f"{line_end}{inside}{name}: {_dumped(text, value, inside)}{line_end}{above}"
        return text[: at + 1] + new + text[end:]
    last = members[-1]
    lead = text[at + 1 : members[0].start]
    colon = ":" if text[last.named : last.value] == ":" else ": "
    name = json.dumps(key[depth], ensure_ascii=False)
    space = lead if "\n" in lead else ("" if colon == ":" else " ")
    return text[: last.end] + "," + space + name + colon + _written(text, value, last.start) + text[last.end :]


def remove(text: str, key: Sequence[str]) -> str:
    """Return the text without the key."""
    if not text.strip():
        return text
    at, members, depth = _walk(text, key)
    names = [member.name for member in members]
    if depth < len(key) - 1 or key[depth] not in names:
        return text
    index = names.index(key[depth])
    if index:
        return text[: members[index - 1].end] + text[members[index].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    return text[: at + 1] + text[_end(text, at) - 1 :]


def _written(text: str, value: Any, at: int) -> str:
    """Return a value for a member whose name begins at `at`: on several lines if the member begins a line."""
    if isinstance(value, WrittenValue):
        return value
    start = text.rfind("\n", 0, at) + 1
    own_line = start and not text[start:at].strip()
    return _dumped(text, value, _indent(text, at)) if own_line else json.dumps(value, ensure_ascii=False)


def _dumped(text: str, value: Any, indent: str) -> str:
    """Return a value on several lines, in the style of the text.

    :param indent: the indentation of the line that the value begins in
    """
    if isinstance(value, WrittenValue):
        return value
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", _line_end(text) + indent)


def _line_end(text: str) -> str:
    """Return the line end of the text's first line."""
    return lines.line_ends([text[: text.find("\n") + 1]])


def _unit(text: str) -> str:
    """Return the indentation of one level."""
    found = re.search(r"\n([ \t]+)", text)
    return found.group(1) if found is not None else "  "


def _indent(text: str, at: int) -> str:
    """Return the indentation of the line of a position."""
    found = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, at) + 1)
    return found.group() if found is not None else ""
