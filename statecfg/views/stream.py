"""Writes lines to a stream: colored and wrapped on a terminal, plain elsewhere."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO, cast

from statecfg.views.lines import Line, plain

# Replacements for streams whose encoding lacks these characters.
_ASCII = str.maketrans(
    {
        "→": "->",
        "✗": "x",
        "✓": "ok",
        "…": "...",
        "·": "-",
        "↳": ">",
        "─": "-",
        "│": "|",
        "—": "-",
        "⏳": "*",
        "⚑": "*",
        "≠": "!=",
    }
)

_AT_ONCE = 1000  # lines of a long report, which may not fit into memory as a whole


def coloured(stream: TextIO, no_color: bool = False, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to write colors to `stream`.

    Source: no-color.org, force-color.org.

    :param no_color: whether the user switched colors off by an option
    :param environ: contains NO_COLOR, FORCE_COLOR and TERM
    """
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def write(lines: Iterable[Line], stream: TextIO, color: bool) -> None:
    """Write `lines` to `stream`, with the terminal renderer if `color` is set or the stream is a terminal."""
    if color or stream.isatty():
        from statecfg.views.terminal import render

        stream.write(render(lines, stream, color))
    else:
        rest = iter(lines)
        while some := list(itertools.islice(rest, _AT_ONCE)):
            text = plain(some)
            stream.write(text if (stream.encoding or "utf-8").lower().startswith("utf") else text.translate(_ASCII))
    stream.flush()


def forgiving(stream: TextIO) -> TextIO:
    """Return a stream that ignores errors when writing to the given stream."""
    return cast(TextIO, Forgiving(stream))


class Forgiving:
    """A stream for progress. After an error, such as a closed pipe, it drops all output, and the run continues.

    :param stream: the real stream
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._closed = stream, False

    def write(self, text: str) -> int:
        """Write text, unless an earlier write failed."""
        return self._try(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        """Flush the real stream, unless an earlier write failed."""
        self._try(self._stream.flush)

    def _try(self, act: Callable[[], int | None]) -> int | None:
        try:
            return None if self._closed else act()
        except (OSError, ValueError):
            self._closed = True
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
