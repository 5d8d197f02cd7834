"""Writes lines to a stream: coloured and wrapped on a terminal, plain elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from statecfg.views.lines import Line, plain

# For streams whose encoding has none of the signs that we draw with.
_ASCII = str.maketrans(
    {"→": "->", "✗": "x", "✓": "ok", "…": "...", "·": "-", "↳": ">", "─": "-", "│": "|", "—": "-", "⏳": "*"}
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
