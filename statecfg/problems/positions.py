"""Source locations: file, line and column."""

from __future__ import annotations

import os
from types import CodeType, FrameType
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Packages whose frames can be between the user's code and ours.
MACHINERY = tuple(f"{os.sep}site-packages{os.sep}{name}{os.sep}" for name in ("hy", "jinja2", "yaml", "pyrsistent"))


class SourceLocation(NamedTuple):
    """A position in a file.

    :param file: the path as it was opened
    :param line: the line, starting at 1; 0 if unknown
    :param column: the column, starting at 1; None if the dialect does not provide it
    """

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.column is None else f"{self.file}:{self.line}:{self.column}"

    def short(self) -> SourceLocation:
        """Return the location with only the name of the file."""
        return self._replace(file=self.file.rpartition("/")[2])


class Written(str):
    """A string with its source location."""

    __slots__ = ("location",)

    location: SourceLocation

    def __new__(cls, text: str, location: SourceLocation) -> Written:
        """Attach a source location to a string."""
        written = super().__new__(cls, text)
        written.location = location
        return written


NOWHERE = SourceLocation("<unknown>", 0)


class _CodeLocations:
    """The source locations in one code object. It keeps the object alive, so that its id is not used again."""

    __slots__ = ("by_instruction", "code", "is_machinery", "positions")

    def __init__(self, code: CodeType) -> None:
        self.code, self.is_machinery = code, is_machinery(code.co_filename)
        self.by_instruction: dict[int, SourceLocation] = {}
        self.positions: list[tuple[int | None, int | None]] = []  # line, and column starting at 0

    def at(self, instruction: int, line: int) -> SourceLocation:
        """Return the source location of an instruction.

        :param instruction: its byte offset
        :param line: the line to return if Python does not know a better position
        """
        location = self.by_instruction.get(instruction)
        if location is None:
            location = self.by_instruction[instruction] = self._compute(instruction, line)
        return location

    def _compute(self, instruction: int, line: int) -> SourceLocation:
        if not self.positions:
            self.positions = [(start, column) for start, _, column, _ in self.code.co_positions()]
        index = instruction // 2
        start, column = self.positions[index] if 0 <= index < len(self.positions) else (None, None)
        return SourceLocation(self.code.co_filename, start or line, None if column is None else column + 1)


_LOCATIONS: dict[int, _CodeLocations] = {}  # by id, because hashing a code object visits all its constants


def is_machinery(filename: str) -> bool:
    """Return whether a file is part of statecfg or of a dialect's library, so it contains no user code."""
    return filename.startswith((PACKAGE, "<")) or any(part in filename for part in MACHINERY)


def of_frame(frame: FrameType | None) -> SourceLocation:
    """Return the current source location of the innermost frame of user code.

    :param frame: the frame at which the search starts
    :returns: the location; `NOWHERE` if no frame runs user code
    """
    while frame is not None:
        code = frame.f_code
        locations = _LOCATIONS.get(id(code))
        if locations is None:
            locations = _LOCATIONS[id(code)] = _CodeLocations(code)
        if not locations.is_machinery:
            return locations.at(frame.f_lasti, frame.f_lineno or 0)
        frame = frame.f_back
    return NOWHERE


def relative(location: SourceLocation, base: str) -> SourceLocation:
    """Return the location with a file relative to the directory `base` if the file is below it."""
    inside = location.file.startswith(base.rstrip(os.sep) + os.sep)
    return location._replace(file=os.path.relpath(location.file, base)) if inside else location
