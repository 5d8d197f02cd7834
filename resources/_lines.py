"""Editing one line of a text, its line ends and all other lines left as they are."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional


def with_line(
    text: str, line: str, match: Optional[str] = None, after: Optional[str] = None, before: Optional[str] = None
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


def without_line(text: str, line: Optional[str] = None, match: Optional[str] = None) -> str:
    """Return the text without the lines that are `line`, or that `match` is found in."""
    lines = _split(text)
    gone = set(_found(lines, match))
    return "".join(each for at, each in enumerate(lines) if at not in gone and _bare(each) != line)


def _split(text: str) -> List[str]:
    """Return the lines with their ends; only a line feed ends one, whatever Python takes for a line end beside it."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _found(lines: List[str], pattern: Optional[str]) -> List[int]:
    if pattern is None:
        return []
    search = re.compile(pattern).search
    return [at for at, each in enumerate(lines) if search(_bare(each))]


def _end(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _bare(line: str) -> str:
    return line[: len(line) - len(_end(line))] if _end(line) else line
