"""Lines of styled text: the result of a view, which a terminal or a plain stream writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from statecfg.views import safe

Style = Literal["", "add", "change", "remove", "skip", "unknown", "dim", "bold", "hunk"]
Span = tuple[str, Style]


class Line(NamedTuple):
    """One line to show.

    :param spans: text with its style, without control characters
    :param hang: number of columns by which wrapped continuations are indented
    :param right: text that a terminal shows at the right edge
    :param rule: whether the rest of the line is drawn as a rule
    :param whole: whether only the terminal wraps the line, so that text copied from it contains no line breaks
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
    """Return a line of `spans` (text, or text and style) with control characters escaped. See `Line`."""
    pairs: Iterable[Span] = ((span, "") if isinstance(span, str) else span for span in spans)
    return Line(tuple((safe.line(text), style) for text, style in pairs), hang, safe.line(right), rule)


BLANK = Line()


def plain(lines: Iterable[Line]) -> str:
    """Return the lines as text without colors, each with its newline."""
    return "".join(_plain(line) + "\n" for line in lines)


def _plain(line: Line) -> str:
    return (line.text + (f"  ({line.right})" if line.right else "")).rstrip()
