"""Lines on a terminal: colours, and wrapping that keeps the indentation."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from statecfg.views.lines import Line

STYLES = {
    "": "",
    "add": "green",
    "change": "yellow",
    "remove": "red",
    "skip": "cyan",
    "unknown": "magenta",
    "dim": "dim",
    "bold": "bold",
    "hunk": "cyan",
}
# A text line of a diff may be megabytes long; nobody reads more than this many rows of it.
_ROWS = 6
_NARROWEST = 20
# What stands at the right edge stays near its text, however wide the window is.
_EDGE = 110


def render(lines: Iterable[Line], stream: TextIO, color: bool) -> str:
    """Return what to write to the terminal behind `stream` so that it shows `lines`."""
    buffer = io.StringIO()
    console = console_for(stream, color)
    width = max(console.width, _NARROWEST)
    console.file = buffer
    for line in lines:
        for row in wrap(line, width):
            console.print(row, soft_wrap=True, highlight=False, markup=False, emoji=False)
    return buffer.getvalue()


def console_for(stream: TextIO, color: bool) -> Console:
    """Return rich's console for `stream`; with no colour it still knows the terminal's width."""
    return Console(file=stream, no_color=not color, force_terminal=True, color_system="standard" if color else None)


def wrap(line: Line, width: int) -> Iterator[Text]:
    """Yield the rows that show `line` in `width` columns, continuations indented by its `hang`."""
    edge = min(width, _EDGE)
    text = Text.assemble(*((part, STYLES[style]) for part, style in line.spans), end="")
    if line.rule:
        yield from _ruled(text, line.right, edge)
        return
    used = cell_len(text.plain)
    if line.right and used + 2 + cell_len(line.right) <= width:
        text.append(" " * max(2, edge - used - cell_len(line.right)))
        text.append(line.right, "dim")
        yield text
        return
    yield from _broken(text, min(line.hang, width // 2), width)
    if line.right:
        yield Text(" " * max(0, width - cell_len(line.right)) + line.right, "dim")


def _ruled(text: Text, right: str, width: int) -> Iterator[Text]:
    tail = f" {right} ──" if right else ""
    room = width - cell_len(text.plain) - cell_len(tail) - 1
    if room < 2:
        yield from _broken(text, 3, width)
        return
    text.append(" " + "─" * room + tail, "dim")
    yield text


def _broken(text: Text, hang: int, width: int) -> Iterator[Text]:
    rest, rows, indent = text, 0, 0
    while cell_len(rest.plain) > width - indent:
        rows += 1
        cut = _cut(rest.plain, width - indent, indent)
        if rows == _ROWS:
            left = len(rest.plain) - cut
            note = f" … {left} more characters"
            cut = max(1, cut - len(note))
            yield Text(" " * indent) + rest[:cut] + Text(f" … {len(rest.plain) - cut} more characters", "dim")
            return
        yield Text(" " * indent) + rest[:cut]
        rest = rest[cut:]
        while rest.plain.startswith(" ") and len(rest.plain) > 1:
            rest = rest[1:]
        indent = hang
    yield Text(" " * indent) + rest


def _cut(text: str, room: int, indent: int) -> int:
    """Return how many characters fit into `room` columns, at a space where there is one in the last third."""
    end, columns = 0, 0
    for end, char in enumerate(text):  # noqa: B007  # the index at which the room ends is the result
        columns += cell_len(char)
        if columns > room:
            break
    space = text.rfind(" ", room * 2 // 3, end)
    return max(1, space if space > indent else end)
