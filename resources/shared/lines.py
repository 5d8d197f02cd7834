"""Edit one line of a text; line ends and all other lines stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

SECRET = re.compile(r"<secret [^<>]*>")  # how the ledger holds what a secret stood in


def with_line(
    text: str, line: str, match: str | None = None, after: str | None = None, before: str | None = None
) -> str:
    """Return the text with `line` in it: as it is where it has it, in place of the last line that matches, or added.

    :param match: a regular expression; the last line that it is found in is replaced
    :param after: a new line goes behind the last line that this is found in; at the end where there is none
    :param before: a new line goes before the first line that this is found in; at the end where there is none
    """
    lines = _split(text)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if any(_bare(each) == line for each in lines):
        return text
    found = _found(lines, match)
    if found:
        at = found[-1]
        lines[at] = line + (_end(lines[at]) or end)
        return "".join(lines)
    at = len(lines)
    for found in (_found(lines, after)[-1:], _found(lines, before)[:1]):
        if found:
            at = found[0] + (1 if after is not None else 0)
    if at == len(lines) and lines and not _end(lines[-1]):
        lines[-1] += end
    lines.insert(at, line + end)
    return "".join(lines)


def without_line(text: str, line: str | None = None, match: str | None = None) -> str:
    """Return the text without the lines that are `line`, or that `match` is found in."""
    lines = _split(text)
    gone = set(_found(lines, match))
    return "".join(each for at, each in enumerate(lines) if at not in gone and _bare(each) != line)


def taken_down(text: str, line: str | None = None, match: str | None = None) -> list[dict[str, Any]]:
    """Return the lines that are `line`, or that `match` is found in, each with where it stands among the others.

    `text`, and `end` where it is not a line feed; `above`: the line before it of those that are none of these, as its
    text and the how manieth of that text it is; `below`: likewise the line after it; `at`: how many are before it.
    """
    lines = _split(text)
    found = {at for at, each in enumerate(lines) if _bare(each) == line}.union(_found(lines, match))
    others = [at for at in range(len(lines)) if at not in found]
    counted: dict[str, int] = {}
    marks = {}
    for at in others:
        bare = _bare(lines[at])
        counted[bare] = counted.get(bare, 0) + 1
        marks[at] = [bare, counted[bare]]
    taken = []
    for at in sorted(found):
        before = [other for other in others if other < at]
        after = others[len(before) : len(before) + 1]
        entry: dict[str, Any] = {"text": _bare(lines[at]), "end": _end(lines[at]), "at": len(before)}
        entry.update(above=marks[before[-1]] if before else None, below=marks[after[0]] if after else None)
        taken.append(entry)
    return taken


def open_end(text: str) -> str | None:
    """Return the last line of a text where it has no end, None where it has."""
    lines = _split(text)
    return lines[-1] if lines and not _end(lines[-1]) else None


def line_undone(text: str, line: str, was: Sequence[Mapping[str, Any]], last: str | None) -> str:
    """Return the text with the effect of `with_line` undone, other lines left as they are.

    :param was: the lines that stood in its place (see `taken_down`)
    :param last: the last line of the former text, where that had no end
    """
    if any(entry["text"] == line for entry in was):
        return text
    lines, found = _split(text), put_in(text, line, was)
    if not found or (len(found) > 1 and SECRET.search(line)):
        return text
    missing = _missing(lines, was)
    if missing:
        at = found.pop()
        lines[at] = missing[-1]["text"] + (missing[-1]["end"] or _end(lines[at]))
    lines = [each for at, each in enumerate(lines) if at not in found]
    return _closed(lines, text, last)


def put_in(text: str, line: str, was: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where the line that was put in stands; of one with a mask for a secret, the lines that may be it."""
    lines = _split(text)
    if not SECRET.search(line):
        return [at for at, each in enumerate(lines) if _bare(each) == line]
    former = {entry["text"] for entry in was}
    known = re.compile(".*".join(map(re.escape, SECRET.split(line))))
    return [at for at, each in enumerate(lines) if known.fullmatch(_bare(each)) and _bare(each) not in former]


def lines_undone(text: str, was: Sequence[Mapping[str, Any]], last: str | None) -> str:
    """Return the text with the effect of `without_line` undone: what is missing of `was` where it was."""
    lines = _split(text)
    missing = _missing(lines, was)
    if not missing:
        return text
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for entry in missing:
        at = _place(lines, entry, was)
        if at == len(lines) and lines and not _end(lines[-1]):
            lines[-1] += end
        lines.insert(at, entry["text"] + (entry["end"] or end))
    return _closed(lines, "".join(lines), last)


def _missing(lines: Sequence[str], was: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return those of the former lines that are not there, each as often as it is not."""
    there = [_bare(each) for each in lines]
    missing = []
    for entry in was:
        if entry["text"] in there:
            there.remove(entry["text"])
        else:
            missing.append(entry)
    return missing


def _place(lines: Sequence[str], entry: Mapping[str, Any], was: Sequence[Mapping[str, Any]]) -> int:
    """Return where a former line goes: behind the line that was above it, else before the one that was below it."""
    former = {each["text"] for each in was}

    def position(mark: Sequence[Any] | None) -> int | None:
        found = [at for at, each in enumerate(lines) if mark is not None and _bare(each) == mark[0]]
        return found[min(mark[1], len(found)) - 1] if mark is not None and found else None

    above, below = position(entry["above"]), position(entry["below"])
    if entry["above"] is None or above is not None:
        at = 0 if above is None else above + 1
        # Behind those of its kind that are back already, which come in their order.
        while at < len(lines) and at != below and _bare(lines[at]) in former:
            at += 1
        return at
    if below is not None:
        return below
    return min(int(entry["at"]), len(lines))


def _closed(lines: list[str], before: str, last: str | None) -> str:
    """Return the text of the lines, which ends as `before` does; with `last` at its end, without a line end."""
    if last is not None and lines and lines[-1] in (last + "\n", last + "\r\n"):
        lines[-1] = last
    elif lines and before and not _end(before[-2:]):
        lines[-1] = _bare(lines[-1])
    return "".join(lines)


def _split(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends one, whatever Python takes for a line end beside it."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _found(lines: list[str], pattern: str | None) -> list[int]:
    if pattern is None:
        return []
    search = re.compile(pattern).search
    return [at for at, each in enumerate(lines) if search(_bare(each))]


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _bare(line: str) -> str:
    return line[: len(line) - len(_end(line))] if _end(line) else line
