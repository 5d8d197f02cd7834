"""What commands without a run print: lines, or JSON with --json."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from statecfg.views.lines import Line


def line(text: str) -> Line:
    """Return a string as a line."""
    from statecfg.views.lines import make

    return make(text)


def write(lines: Iterable[Line], data: Any, as_json: bool, no_color: bool, target: TextIO | None = None) -> None:
    """Write the data as JSON to stdout if `as_json`, otherwise the lines.

    :param target: where the lines go; None: stdout
    """
    from statecfg.views import as_json as json_view
    from statecfg.views import stream

    if as_json:
        sys.stdout.write(json_view.text(data))
    else:
        sink = target or sys.stdout
        stream.write(lines, sink, stream.coloured(sink, no_color))


def say(text: str) -> None:
    """Write a line to stdout."""
    write([line(text)], None, False, False)
