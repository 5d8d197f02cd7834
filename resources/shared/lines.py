"""Edit one line of a file's text. Line ends and all other lines stay as they are."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.machine import hidden

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class RemovedLine(TypedDict):
        """A former line of a file, with its position among the lines that stay.

        :ivar end: its line end
        :ivar at: the number of other lines before it
        :ivar above: the nearest other line before it: its text, and how many lines up to it have this text
        :ivar below: the next other line, in the same form
        :ivar secret: the text is a secret, and not recorded
        """

        text: str
        end: str
        at: int
        above: Sequence[Any] | None
        below: Sequence[Any] | None
        secret: NotRequired[bool]


def with_line(
    text: str,
    line: str,
    match: str | None = None,
    after: str | None = None,
    before: str | None = None,
    backrefs: bool | None = None,
) -> str:
    """Return the text with `line` in it: unchanged if it has the line, otherwise with the line replaced or added.

    :param match: a regular expression; `line` replaces the last line in which it is found
    :param after: a regular expression; a new line is added after the last line in which it is found, or at the end
    :param before: a regular expression; a new line is added before the first line in which it is found, or at the end
    :param backrefs: whether `line` refers to groups of `match`; then no line is added
    """
    lines = split(text)
    if not backrefs and any(bare(existing) == line for existing in lines):
        return text
    matching = _matching(lines, match)
    if matching:
        at = matching[-1]
        new = expanded(line, str(match), bare(lines[at])) if backrefs else line
        if new == bare(lines[at]):
            return text
        # `backrefs` keeps a missing line end, because it changes nothing but the matching line.
        lines[at] = new + (line_end(lines[at]) or ("" if backrefs else line_ends(lines)))
    elif not backrefs:
        insert(lines, [line], after, before)
    return "".join(lines)


def expanded(line: str, match: str, existing: str) -> str:
    """Return `line` with the groups of `match` in an existing line; the existing line if `match` does not match it."""
    found = re.search(match, existing)
    return existing if found is None else found.expand(line)


def insert(lines: list[str], new: Sequence[str], after: str | None, before: str | None) -> None:
    """Insert new lines, given without line ends.

    :param after: a regular expression; the lines go after the last line in which it is found, or to the end
    :param before: a regular expression; the lines go before the first line in which it is found, or to the end
    """
    end, at = line_ends(lines), len(lines)
    for anchor in (_matching(lines, after)[-1:], _matching(lines, before)[:1]):
        if anchor:
            at = anchor[0] + (1 if after is not None else 0)
    if at == len(lines) and lines and not line_end(lines[-1]):
        lines[-1] += end
    lines[at:at] = [line + end for line in new]


def without_line(text: str, line: str | None = None, match: str | None = None) -> str:
    """Return the text without the lines that equal `line` and those in which `match` is found."""
    lines = split(text)
    matching = set(_matching(lines, match))
    return "".join(existing for at, existing in enumerate(lines) if at not in matching and bare(existing) != line)


def removed_lines(text: str, line: str | None = None, match: str | None = None) -> list[RemovedLine]:
    """Return the lines that equal `line` or in which `match` is found, each with its position among the other lines."""
    lines = split(text)
    removed = {at for at, text in enumerate(lines) if line is not None and hidden.same(bare(text), line)}
    removed = removed.union(_matching(lines, match))
    return taken_out(lines, removed)


def taken_out(lines: Sequence[str], removed: Collection[int]) -> list[RemovedLine]:
    """Return the lines at some positions, each with its position among the other lines."""
    others = [at for at in range(len(lines)) if at not in removed]
    counted: dict[str, int] = {}
    marks = {}
    for at in others:
        other = bare(lines[at])
        counted[other] = counted.get(other, 0) + 1
        marks[at] = [other, counted[other]]
    taken: list[RemovedLine] = []
    for at in sorted(removed):
        count = bisect(others, at)
        entry: RemovedLine = {
            "text": bare(lines[at]),
            "end": line_end(lines[at]),
            "at": count,
            "above": marks[others[count - 1]] if count else None,
            "below": marks[others[count]] if count < len(others) else None,
        }
        taken.append(entry)
    return taken


def open_end(text: str) -> str | None:
    """Return the last line of a string if it has no line end, otherwise None."""
    lines = split(text)
    return lines[-1] if lines and not line_end(lines[-1]) else None


def line_undone(text: str, line: str, was: Sequence[RemovedLine], last: str | None, one: bool | None = None) -> str:
    """Return the text with the effect of `with_line` undone. Other lines stay as they are.

    :param was: the lines that `line` replaced (see `removed_lines`)
    :param last: the last line of the former text, if it had no line end
    :param one: `line` replaced only the last line of `was`, and other lines may equal it (`backrefs`)
    """
    if not one and any(hidden.same(entry["text"], line) for entry in was):
        return text
    lines, inserted = split(text), put_in(text, line)
    missing = _missing(lines, was)
    if not inserted or (one and not missing):
        return text
    if missing:
        at = inserted.pop()
        lines[at] = missing[-1]["text"] + (missing[-1]["end"] or line_end(lines[at]))
    lines = [text for at, text in enumerate(lines) if one or at not in inserted]
    return closed(lines, text, last)


def put_in(text: str, line: str) -> list[int]:
    """Return the positions of the inserted line."""
    return [at for at, existing in enumerate(split(text)) if hidden.same(bare(existing), line)]


def lines_undone(text: str, was: Sequence[RemovedLine], last: str | None) -> str:
    """Return the text with the effect of `without_line` undone: the missing lines of `was` are back at their positions.

    :param was: the removed lines (see `removed_lines`)
    :param last: the last line of the former text, if it had no line end
    """
    lines = split(text)
    missing = _missing(lines, was)
    if not missing:
        return text
    end, positions = line_ends(lines), _Positions(lines, was)
    back: list[list[str]] = [[] for _ in range(len(lines) + 1)]  # what to insert before each line, and at the end
    for entry in missing:
        back[positions.of(entry)].append(entry["text"] + (entry["end"] or end))
    if back[-1] and lines and not line_end(lines[-1]):
        lines[-1] += end
    new = [row for at, line in enumerate(lines) for row in (*back[at], line)] + back[-1]
    return closed(new, "".join(new), last)


def _missing(lines: Sequence[str], was: Sequence[RemovedLine]) -> list[RemovedLine]:
    """Return the former lines that are missing, each as often as it is missing."""
    there = Counter(map(bare, lines))
    missing = []
    for entry in was:
        if there[entry["text"]]:
            there[entry["text"]] -= 1
        else:
            missing.append(entry)
    return missing


class _Positions:
    """Finds where former lines belong.

    :param lines: the present lines
    :param was: the former lines
    """

    def __init__(self, lines: Sequence[str], was: Sequence[RemovedLine]) -> None:
        self.lines, self.former = lines, {removed["text"] for removed in was}
        self.by_text: dict[str, list[int]] = {}
        for at, line in enumerate(lines):
            self.by_text.setdefault(bare(line), []).append(at)

    def of(self, entry: RemovedLine) -> int:
        """Return where to insert a former line: after the line above it, else before the line below it."""
        above, below = self._marked(entry["above"]), self._marked(entry["below"])
        if entry["above"] is None or above is not None:
            at = 0 if above is None else above + 1
            # Insert it after the former lines that are there, so that they keep their order.
            while at < len(self.lines) and at != below and bare(self.lines[at]) in self.former:
                at += 1
            return at
        return below if below is not None else min(entry["at"], len(self.lines))

    def _marked(self, mark: Sequence[Any] | None) -> int | None:
        same = self.by_text.get(mark[0]) if mark is not None else None
        return same[min(mark[1], len(same)) - 1] if mark is not None and same else None


def position(lines: Sequence[str], entry: RemovedLine) -> int:
    """Return where to insert a former line: after the line that was above it, else before the one that was below it."""
    return _Positions(lines, ()).of(entry)


def closed(lines: list[str], before: str, last: str | None) -> str:
    """Join the lines. The last line loses its line end if it is `last`, or if `before` does not end with a line end."""
    if last is not None and lines and lines[-1] in (last + "\n", last + "\r\n"):
        lines[-1] = last
    elif lines and before and not line_end(before[-2:]):
        lines[-1] = bare(lines[-1])
    return "".join(lines)


def split(text: str) -> list[str]:
    """Return the lines with their line ends. Only a line feed ends a line, unlike in `str.splitlines`."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def matching(text: str, pattern: str) -> list[int]:
    """Return the positions of the lines in which a pattern is found."""
    return _matching(split(text), pattern)


def only_line(text: str, line: str, match: str) -> str:
    """Return the text with `line` in place of the first line in which `match` is found, and without the others."""
    all_lines = split(text)
    found = _matching(all_lines, match)
    all_lines[found[0]] = line + (line_end(all_lines[found[0]]) or line_ends(all_lines))
    return "".join(each for at, each in enumerate(all_lines) if at not in found[1:])


def _matching(lines: list[str], pattern: str | None) -> list[int]:
    if pattern is None:
        return []
    search = re.compile(pattern).search
    return [at for at, existing in enumerate(lines) if search(bare(existing))]


def line_ends(lines: Sequence[str]) -> str:
    """Return the line end for new lines: that of the first line."""
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


def line_end(line: str) -> str:
    """Return the line end of a line; "" if it has none."""
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def bare(line: str) -> str:
    """Return a line without its line end."""
    return line[: len(line) - len(line_end(line))] if line_end(line) else line
