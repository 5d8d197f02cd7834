"""Writes lines to a stream: coloured and wrapped on a terminal, plain elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO, cast

from statecfg.views.lines import Line, plain

# For streams whose encoding has none of the signs that we draw with.
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


def coloured(stream: TextIO, no_color: bool = False, environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether colours go to `stream`.

    Parameters: `no_color` the flag; `environ` where NO_COLOR, FORCE_COLOR and TERM are looked up. Source: no-color.org,
    force-color.org.
    """
    if no_color or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"


def write(lines: Iterable[Line], stream: TextIO, color: bool) -> None:
    """Write `lines` to `stream`, through the terminal renderer when `color` is set or the stream is a terminal."""
    if color or stream.isatty():
        from statecfg.views.terminal import render

        stream.write(render(lines, stream, color))
    else:
        text = plain(lines)
        stream.write(text if (stream.encoding or "utf-8").lower().startswith("utf") else text.translate(_ASCII))
    stream.flush()


def forgiving(stream: TextIO) -> TextIO:
    """Return the stream, made one that nothing which goes wrong with it can be felt of."""
    return cast(TextIO, Forgiving(stream))


class Forgiving:
    """A stream for progress: when whoever reads it is gone, it falls silent, and the run goes on.

    Parameters: `stream` the real one.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._gone = stream, False

    def write(self, text: str) -> int:
        """Write, as long as there is anybody."""
        return self._try(lambda: self._stream.write(text)) or len(text)

    def flush(self) -> None:
        """Send what was written."""
        self._try(self._stream.flush)

    def _try(self, act: Callable[[], int | None]) -> int | None:
        try:
            return None if self._gone else act()
        except (OSError, ValueError):
            self._gone = True
            return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
