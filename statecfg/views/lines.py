"""Lines of styled text: what a view makes, before a terminal or a plain stream writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from statecfg.views import safe

Style = Literal["", "add", "change", "remove", "skip", "unknown", "dim", "bold", "hunk"]
Span = tuple[str, Style]


class Line(NamedTuple):
    """One line to show.

    `spans` text with its style, free of control characters; `hang` columns that a wrapped continuation is indented by;
    `right` what a terminal sets at the right edge; `rule` whether the rest of the line is drawn as a rule; `whole`
    whether it is left to the terminal to wrap it, as what is copied from there must hold no line break of ours.
    """

    spans: tuple[Span, ...] = ()
    hang: int = 0
    right: str = ""
    rule: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        """Return the text without styles."""
        return "".join(text for text, _ in self.spans)


def make(*spans: str | Span, hang: int = 0, right: str = "", rule: bool = False) -> Line:
    """Return a line of `spans` (text, or text and style), each made harmless on the way in."""
    pairs: Iterable[Span] = ((span, "") if isinstance(span, str) else span for span in spans)
    return Line(tuple((safe.line(text), style) for text, style in pairs), hang, safe.line(right), rule)


BLANK = Line()


def plain(lines: Iterable[Line]) -> str:
    """Return the lines as text without colours, each with its newline."""
    return "".join(_plain(line) + "\n" for line in lines)


def _plain(line: Line) -> str:
    return (line.text + (f"  ({line.right})" if line.right else "")).rstrip()
