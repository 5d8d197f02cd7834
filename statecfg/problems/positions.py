"""Where a thing was written: file, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Packages whose frames stand between a user's text and us.
MACHINERY = tuple(f"{os.sep}site-packages{os.sep}{name}{os.sep}" for name in ("hy", "jinja2", "yaml", "pyrsistent"))


class SourceLocation(NamedTuple):
    """A place in a file.

    :param file: path as it was opened
    :param line: 1 for the first; 0 where it is not known
    :param column: 1 for the first; None where the dialect doesn't know it
    """

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.column is None else f"{self.file}:{self.line}:{self.column}"


class Written(str):
    """A text that remembers where it is written."""

    __slots__ = ("place",)

    def __new__(cls, text: str, place: SourceLocation) -> Written:
        """Make one of a plain text."""
        made = super().__new__(cls, text)
        made.place = place
        return made

    place: SourceLocation


NOWHERE = SourceLocation("<unknown>", 0)


class _Code:
    """What is remembered of a code object; holding it keeps its id from being given to another."""

    __slots__ = ("code", "inside", "lines", "places")

    def __init__(self, code: CodeType) -> None:
        self.code, self.inside = code, is_machinery(code.co_filename)
        self.places: dict[int, SourceLocation] = {}
        self.lines: list[tuple[int | None, int | None]] = []  # by instruction: line and column from 0

    def place(self, instruction: int, line: int) -> SourceLocation:
        """Return the place of the instruction at a byte offset, in `line` where nothing else is known."""
        if not self.lines:
            self.lines = [(start, column) for start, _, column, _ in self.code.co_positions()]
        start, column = self.lines[instruction // 2] if 0 <= instruction // 2 < len(self.lines) else (None, None)
        return SourceLocation(self.code.co_filename, start or line, None if column is None else column + 1)


_CODES: dict[int, _Code] = {}  # by id: hashing a code object walks all its constants


def is_machinery(filename: str) -> bool:
    """Return whether a file is ours or a dialect's, so that nobody wrote their definition there."""
    return filename.startswith((PACKAGE, "<")) or any(part in filename for part in MACHINERY)


def of_frame(frame: FrameType | None) -> SourceLocation:
    """Return the place that the nearest frame outside our own code has reached; NOWHERE where there is none."""
    while frame is not None:
        code = frame.f_code
        known = _CODES.get(id(code))
        if known is None:
            known = _CODES[id(code)] = _Code(code)
        if not known.inside:
            place = known.places.get(frame.f_lasti)
            if place is None:
                place = known.places[frame.f_lasti] = known.place(frame.f_lasti, frame.f_lineno or 0)
            return place
        frame = frame.f_back
    return NOWHERE


def relative(place: SourceLocation, base: str) -> SourceLocation:
    """Return the place with its file relative to the directory `base`, where it lies below it."""
    inside = place.file.startswith(base.rstrip(os.sep) + os.sep)
    return place._replace(file=os.path.relpath(place.file, base)) if inside else place


def distinct(
    places: Iterator[SourceLocation] | list[SourceLocation] | tuple[SourceLocation, ...],
) -> tuple[SourceLocation, ...]:
    """Return the places without repetitions, in order."""
    return tuple(dict.fromkeys(places))
