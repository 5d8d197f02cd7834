"""Lines on a terminal: colors, and wrapping that keeps the indentation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len

from statecfg.views.lines import Line, Span

# Select Graphic Rendition: the 16 colors that every terminal has and every theme redefines. Source: ECMA-48.
_CODES = {
    "add": "32",
    "change": "33",
    "remove": "31",
    "skip": "36",
    "unknown": "35",
    "dim": "2",
    "bold": "1",
    "hunk": "36",
}
# The maximum number of rows for one line: a text line of a diff may be megabytes long.
_ROWS = 6
_NARROWEST = 20
# Right-aligned text ends at this column in a wider window, so that it stays near its line.
_EDGE = 110


def render(lines: Iterable[Line], stream: TextIO, color: bool) -> str:
    """Return the text that shows `lines` on the terminal `stream`."""
    width = max(columns(stream), _NARROWEST)
    return "".join(painted(row, color) + "\n" for line in lines for row in wrap(line, width))


def columns(stream: TextIO) -> int:
    """Return the width of the terminal `stream`: COLUMNS if it is set, 80 if the width is unknown."""
    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def painted(row: Iterable[Span], color: bool) -> str:
    """Return a row's text, with colors if `color` is set."""
    if not color:
        return "".join(text for text, _ in row)
    return "".join(f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style and text else text for text, style in row)


def wrap(line: Line, width: int) -> Iterator[list[Span]]:
    """Yield the rows that show `line` in `width` columns; `line.hang` indents continuations."""
    edge = min(width, _EDGE)
    used = cell_len(line.text)
    if line.rule:
        yield from _ruled(line, used, edge, width)
    elif not line.right and (used <= width or line.whole):
        yield list(line.spans)
    elif line.right and used + 2 + cell_len(line.right) <= width:
        yield [*line.spans, (" " * max(2, edge - used - cell_len(line.right)), ""), (line.right, "dim")]
    else:
        yield from _broken(line, width)
        if line.right:
            yield from _at_edge(line.right, edge)


def _at_edge(text: str, edge: int) -> Iterator[list[Span]]:
    yield from _broken(Line(((" " * max(0, edge - cell_len(text)), ""), (text, "dim"))), edge)


def _ruled(line: Line, used: int, edge: int, width: int) -> Iterator[list[Span]]:
    tail = f" {line.right} ──" if line.right else ""
    room = edge - used - cell_len(tail) - 1
    if room < 2:
        yield from _broken(line, width)
    else:
        yield [*line.spans, (" " + "─" * room + tail, "dim")]


def _broken(line: Line, width: int) -> Iterator[list[Span]]:
    text, start, indent = line.text, 0, 0
    for row in range(1, _ROWS + 1):
        room = width - indent
        end = _cut(text, start, room)
        if row == _ROWS and end < len(text):
            # The length of the note depends on its number; ten digits are always enough.
            end = max(start + 1, end - len(" … 0,000,000,000 more characters"))
            yield [(" " * indent, ""), *_slice(line, start, end), (f" … {len(text) - end:,} more characters", "dim")]
            return
        yield [(" " * indent, ""), *_slice(line, start, end)]
        start = end
        while start < len(text) and text[start] == " ":
            start += 1
        if start >= len(text):
            return
        indent = min(line.hang, width // 2)


def _slice(line: Line, start: int, end: int) -> Iterator[Span]:
    at = 0
    for text, style in line.spans:
        piece = text[max(0, start - at) : max(0, end - at)]
        if piece:
            yield piece, style
        at += len(text)


def _cut(text: str, start: int, room: int) -> int:
    """Return where to cut the text from `start` on to fill `room` columns: at a space if the last third has one."""
    end, used = start, 0
    while end < len(text):
        used += cell_len(text[end])
        if used > room:
            break
        end += 1
    if end == len(text):
        return end
    space = text.rfind(" ", start + room * 2 // 3, end)
    return space if space > start else max(end, start + 1)
