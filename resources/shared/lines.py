"""Edit one line of a text. Line ends and all other lines stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from statecfg.resources.shared import records

SECRET = re.compile(r"<secret [^<>]*>")  # the ledger stores this in place of a secret


def with_line(
    text: str, line: str, match: str | None = None, after: str | None = None, before: str | None = None
) -> str:
    """Return the text with `line` in it: unchanged if it has the line, otherwise with the line replaced or added.

    :param match: a regular expression; `line` replaces the last line in which it is found
    :param after: a regular expression; a new line is added after the last line in which it is found, or at the end
    :param before: a regular expression; a new line is added before the first line in which it is found, or at the end
    """
    lines = _split(text)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if any(_bare(existing) == line for existing in lines):
        return text
    matching = _matching(lines, match)
    if matching:
        at = matching[-1]
        lines[at] = line + (_end(lines[at]) or end)
        return "".join(lines)
    at = len(lines)
    for anchor in (_matching(lines, after)[-1:], _matching(lines, before)[:1]):
        if anchor:
            at = anchor[0] + (1 if after is not None else 0)
    if at == len(lines) and lines and not _end(lines[-1]):
        lines[-1] += end
    lines.insert(at, line + end)
    return "".join(lines)


def without_line(text: str, line: str | None = None, match: str | None = None) -> str:
    """Return the text without the lines that equal `line` and those in which `match` is found."""
    lines = _split(text)
    matching = set(_matching(lines, match))
    return "".join(existing for at, existing in enumerate(lines) if at not in matching and _bare(existing) != line)


def removed_lines(text: str, line: str | None = None, match: str | None = None) -> list[records.RemovedLine]:
    """Return the lines that equal `line` or in which `match` is found, each with its position among the other lines."""
    lines = _split(text)
    removed = {at for at, text in enumerate(lines) if _bare(text) == line}.union(_matching(lines, match))
    others = [at for at in range(len(lines)) if at not in removed]
    counted: dict[str, int] = {}
    marks = {}
    for at in others:
        bare = _bare(lines[at])
        counted[bare] = counted.get(bare, 0) + 1
        marks[at] = [bare, counted[bare]]
    taken: list[records.RemovedLine] = []
    for at in sorted(removed):
        before = [other for other in others if other < at]
        after = others[len(before) : len(before) + 1]
        entry: records.RemovedLine = {
            "text": _bare(lines[at]),
            "end": _end(lines[at]),
            "at": len(before),
            "above": marks[before[-1]] if before else None,
            "below": marks[after[0]] if after else None,
        }
        taken.append(entry)
    return taken


def open_end(text: str) -> str | None:
    """Return the last line of a text if it has no line end, otherwise None."""
    lines = _split(text)
    return lines[-1] if lines and not _end(lines[-1]) else None


def line_undone(text: str, line: str, was: Sequence[records.RemovedLine], last: str | None) -> str:
    """Return the text with the effect of `with_line` undone. Other lines stay as they are.

    :param was: the lines that `line` replaced (see `removed_lines`)
    :param last: the last line of the former text, if it had no line end
    """
    if any(entry["text"] == line for entry in was):
        return text
    lines, inserted = _split(text), put_in(text, line, was)
    if not inserted or (len(inserted) > 1 and SECRET.search(line)):
        return text
    missing = _missing(lines, was)
    if missing:
        at = inserted.pop()
        lines[at] = missing[-1]["text"] + (missing[-1]["end"] or _end(lines[at]))
    lines = [text for at, text in enumerate(lines) if at not in inserted]
    return _closed(lines, text, last)


def put_in(text: str, line: str, was: Sequence[records.RemovedLine]) -> list[int]:
    """Return the positions of the inserted line. If a secret in it is masked, return all lines that match the rest."""
    lines = _split(text)
    if not SECRET.search(line):
        return [at for at, existing in enumerate(lines) if _bare(existing) == line]
    former = {entry["text"] for entry in was}
    unmasked = re.compile(".*".join(map(re.escape, SECRET.split(line))))
    return [
        at for at, existing in enumerate(lines) if unmasked.fullmatch(_bare(existing)) and _bare(existing) not in former
    ]


def lines_undone(text: str, was: Sequence[records.RemovedLine], last: str | None) -> str:
    """Return the text with the effect of `without_line` undone: the missing lines of `was` are back in their places.

    :param was: the removed lines (see `removed_lines`)
    :param last: the last line of the former text, if it had no line end
    """
    lines = _split(text)
    missing = _missing(lines, was)
    if not missing:
        return text
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for entry in missing:
        at = _position(lines, entry, was)
        if at == len(lines) and lines and not _end(lines[-1]):
            lines[-1] += end
        lines.insert(at, entry["text"] + (entry["end"] or end))
    return _closed(lines, "".join(lines), last)


def _missing(lines: Sequence[str], was: Sequence[records.RemovedLine]) -> list[records.RemovedLine]:
    """Return the former lines that are missing, each as often as it is missing."""
    there = [_bare(existing) for existing in lines]
    missing = []
    for entry in was:
        if entry["text"] in there:
            there.remove(entry["text"])
        else:
            missing.append(entry)
    return missing


def _position(lines: Sequence[str], entry: records.RemovedLine, was: Sequence[records.RemovedLine]) -> int:
    """Return where to insert a former line: after the line that was above it, else before the one that was below it."""
    former = {removed["text"] for removed in was}

    def marked(mark: Sequence[Any] | None) -> int | None:
        same = [at for at, existing in enumerate(lines) if mark is not None and _bare(existing) == mark[0]]
        return same[min(mark[1], len(same)) - 1] if mark is not None and same else None

    above, below = marked(entry["above"]), marked(entry["below"])
    if entry["above"] is None or above is not None:
        at = 0 if above is None else above + 1
        # Insert it after the former lines that are already back, so that they keep their order.
        while at < len(lines) and at != below and _bare(lines[at]) in former:
            at += 1
        return at
    if below is not None:
        return below
    return min(entry["at"], len(lines))


def _closed(lines: list[str], before: str, last: str | None) -> str:
    """Join the lines. The last line loses its line end if it is `last`, or if `before` does not end with a line end."""
    if last is not None and lines and lines[-1] in (last + "\n", last + "\r\n"):
        lines[-1] = last
    elif lines and before and not _end(before[-2:]):
        lines[-1] = _bare(lines[-1])
    return "".join(lines)


def _split(text: str) -> list[str]:
    """Return the lines with their line ends. Only a line feed ends a line, unlike in `str.splitlines`."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _matching(lines: list[str], pattern: str | None) -> list[int]:
    if pattern is None:
        return []
    search = re.compile(pattern).search
    return [at for at, existing in enumerate(lines) if search(_bare(existing))]


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _bare(line: str) -> str:
    return line[: len(line) - len(_end(line))] if _end(line) else line
