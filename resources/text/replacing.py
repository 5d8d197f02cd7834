"""Replacements in a file's text: find the matches, replace them, and put the former text back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.machine import hidden
from statecfg.remote.machine.changes import STAND_INS
from statecfg.resources.shared import lines

if TYPE_CHECKING:
    from typing import TypedDict

    Parts = list[tuple[list[str], list[str]]]  # of a string: the lines before and after an edit

    class Replacement(TypedDict):
        """The attributes of a `replace` that define what it replaces."""

        pattern: str
        replacement: str
        after: str | None
        before: str | None


# A reference to a group, or another escape, in a replacement.
_ESCAPE = re.compile(r"\\(?:g<\w+>|[1-9]\d?|[0-7]{1,3}|.)", re.S)
_EMPTY: Any = re.search("", "")
_REFERENCE = re.compile(r"\\(?:g<\w+>|[1-9])")


def own_text(replacement: str) -> list[str]:
    """Return the text of a replacement before, between and after its references to groups."""
    parts, done = [""], 0
    for escape in _ESCAPE.finditer(replacement):
        parts[-1] += replacement[done : escape.start()]
        if _REFERENCE.match(escape.group()):
            parts.append("")
        else:
            parts[-1] += str(_EMPTY.expand(escape.group()))
        done = escape.end()
    parts[-1] += replacement[done:]
    return parts


def section(text: str, after: str | None, before: str | None) -> tuple[int, int]:
    """Return the range of a string in which to replace. It is empty if `after` or `before` is not found.

    :param after: a regular expression; the range begins after its first match
    :param before: a regular expression; the range ends before its first match after that
    """
    start, end = 0, len(text)
    if after is not None:
        found = re.compile(after, re.M).search(text)
        if found is None:
            return -1, -1
        start = found.end()
    if before is not None:
        found = re.compile(before, re.M).search(text, start)
        if found is None:
            return -1, -1
        end = found.start()
    return start, end


def matches(text: str, how: Replacement) -> list[tuple[int, int, str]]:
    """Return what to replace: start, end and the new text of each match."""
    start, end = section(text, how["after"], how["before"])
    if start < 0:
        return []
    found = re.compile(how["pattern"], re.M).finditer(text, start, end)
    return [(match.start(), match.end(), match.expand(how["replacement"])) for match in found]


def replaced(text: str, how: Replacement) -> str:
    """Return the text with all matches replaced. Windows line ends stay as they are."""
    text, windows = unix(text)
    new, done = [], 0
    for start, end, replacement in matches(text, how):
        new += [text[done:start], replacement]
        done = end
    return like("".join([*new, text[done:]]), windows)


def unix(text: str) -> tuple[str, bool]:
    """Return the text with `\\n` as line end, so that `$` works, and whether all its lines have Windows line ends."""
    windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
    return (text.replace("\r\n", "\n") if windows else text), windows


def like(text: str, windows: bool) -> str:
    """Return the text with Windows line ends if `windows` is set (see `unix`)."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if windows else text


def count(text: str, how: Replacement) -> int:
    """Return how often a string contains the replacement. Its groups match any text in a line."""
    text, _ = unix(text)
    start, end = section(text, how["after"], how["before"])
    if start < 0:
        return 0
    own = own_text(how["replacement"])
    return len(list(re.compile(".*?".join(map(re.escape, own))).finditer(text, start, end)))


# Undo


def changed_lines(text: str, how: Replacement) -> list[str]:
    """Return the lines that a replacement changes."""
    return [line for old_lines, new_lines in _parts(unix(text)[0], how) if old_lines != new_lines for line in old_lines]


def undone(text: str, former: str, how: Replacement) -> tuple[str, int]:
    """Return the text with the former lines back where matches were replaced, and how many others have changed.

    :param former: the text before the replacement
    """
    return _certainly_undone(text, former, _parts(unix(former)[0], how))


def reverted(text: str, former: str, edited: str) -> tuple[str, int]:
    """Return the text with the former lines back, and the number of positions that others have changed: 0 or 1.

    :param former: the text before an edit at one position
    :param edited: the text after this edit
    """
    last = lines.open_end(former)
    if last is not None and lines.open_end(edited) is None:
        new, changed = reverted(text, former + lines.line_ends(lines.split(former)), edited)
        return lines.closed(lines.split(new), "", last), changed
    old_lines, new_lines = lines.split(unix(former)[0]), lines.split(unix(edited)[0])
    head, tail = _same(old_lines, new_lines)
    # If lines were only removed, the line before them, or else the line after them, shows where they were.
    anchors = [(head, tail)]
    if head + tail == len(new_lines):
        anchors = [(head - 1, tail)] * bool(head) + [(head, tail - 1)] * bool(tail) or anchors
    for head, tail in anchors:
        middle = old_lines[head : len(old_lines) - tail], new_lines[head : len(new_lines) - tail]
        above, below = old_lines[:head], old_lines[len(old_lines) - tail :]
        new, changed = _certainly_undone(text, former, [(above, above), middle, (below, below)])
        if not changed:
            break
    return new, changed


def lines_between(former: str, edited: str) -> tuple[list[str], list[str]]:
    """Return the lines that an edit at one position changes: before and after it."""
    old_lines, new_lines = lines.split(former), lines.split(edited)
    head, tail = _same(old_lines, new_lines)
    return old_lines[head : len(old_lines) - tail], new_lines[head : len(new_lines) - tail]


def _same(old_lines: Sequence[str], new_lines: Sequence[str]) -> tuple[int, int]:
    """Return how many lines at the beginning, and how many other lines at the end, are the same."""
    short = min(len(old_lines), len(new_lines))
    head = next((at for at in range(short) if old_lines[at] != new_lines[at]), short)
    tails = range(short - head)
    return head, next((at for at in tails if old_lines[-1 - at] != new_lines[-1 - at]), short - head)


def _certainly_undone(text: str, former: str, parts: Parts) -> tuple[str, int]:
    new, changed = _undone(text, former, parts)
    if _undone(new, former, parts)[0] == new:
        return new, changed
    # Others have added the same lines, so it is not certain which of them were replaced.
    return text, changed + 1


def _undone(text: str, former: str, parts: Parts) -> tuple[str, int]:
    was_windows = unix(former)[1]
    text, windows = unix(text)
    windows = windows or (was_windows and "\n" not in text)
    now = lines.split(text)
    after = _aligned([line for part in parts for line in part[1]], now)
    before = _aligned([line for part in parts for line in part[0]], now)
    changed, new, done = 0, [], 0
    for old_lines, new_lines in parts:
        at, rows = _taken(after, len(new_lines))
        restored, _ = _taken(before, len(old_lines))
        if old_lines == new_lines or restored is not None:
            continue
        if at is None and (new_lines or now):
            changed += 1
            continue
        at, end = at or 0, (at or 0) + rows
        back = list(old_lines)
        if rows and back and lines.line_end(new_lines[-1]) != lines.line_end(now[end - 1]):
            back[-1] = lines.bare(back[-1]) + lines.line_end(now[end - 1])
        new += [*now[done:at], *back]
        done = end
    return like("".join([*new, *now[done:]]), windows), changed


def _taken(found: list[int | None], size: int) -> tuple[int | None, int]:
    """Take the first positions of a list; return the first one, or None if they are not consecutive, and the size."""
    rows = [found.pop(0) for _ in range(size)]
    start = rows[0] if rows else None
    return (start if start is not None and rows == list(range(start, start + size)) else None), size


def _parts(former: str, how: Replacement) -> Parts:
    """Divide a string into parts of whole lines: pairs of the lines before and after the replacement."""
    parts: Parts = []
    done = 0  # where the last part ends
    waiting = list(matches(former, how))
    while waiting:
        start = former.rfind("\n", 0, waiting[0][0]) + 1
        stop, new, copied = start, "", start
        while waiting and (waiting[0][0] < stop or stop == start):
            begin, end, replacement = waiting.pop(0)
            new, copied = new + former[copied:begin] + replacement, end
            stop = former.find("\n", end) + 1 or len(former)
        new += former[copied:stop]
        same = lines.split(former[done:start])
        if not new and same:
            # The rest of the file was deleted: the line before it shows where it was.
            new = same.pop()
            start -= len(new)
        parts.append((same, same))
        if not new and len(parts) > 1:
            parts.pop()
            old_lines, new_lines = parts.pop()
            parts.append((old_lines + lines.split(former[start:stop]), new_lines))
        else:
            parts.append((lines.split(former[start:stop]), lines.split(new)))
        done = stop
    rest = lines.split(former[done:])
    return [*parts, (rest, rest)]


def _aligned(wanted: Sequence[str], present: Sequence[str]) -> list[int | None]:
    """Return the position of each expected line among the present lines; None for one that is not there.

    A line with a stand-in for a secret matches the line with this secret.
    """
    expected, same = [lines.bare(line) for line in wanted], [lines.bare(line) for line in present]
    if STAND_INS:
        known = set(expected)
        for line in sorted(known):
            same = [line if each not in known and hidden.same(each, line) else each for each in same]
    found: list[int | None] = [None] * len(expected)
    short = min(len(expected), len(same))
    head = next((at for at in range(short) if expected[at] != same[at]), short)
    tail = next((at for at in range(short - head) if expected[-1 - at] != same[-1 - at]), short - head)
    found[:head] = range(head)
    found[len(expected) - tail :] = range(len(same) - tail, len(same))
    left, right = expected[head : len(expected) - tail], same[head : len(same) - tail]
    if left and right:
        from difflib import SequenceMatcher

        for start, at, size in SequenceMatcher(None, left, right).get_matching_blocks():
            found[head + start : head + start + size] = range(head + at, head + at + size)
    return found
