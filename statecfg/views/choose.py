"""Chooses how to show progress on a stream."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from statecfg.views.progress import Masking, PlainProgress, Progress
from statecfg.views.stream import forgiving


def progress(
    stream: TextIO, total: int, redactor: Masking, color: bool, verbose: int, environ: Mapping[str, str] = os.environ
) -> Progress:
    """Return live progress for a terminal; plain lines for other streams and in CI."""
    stream = forgiving(stream)
    if stream.isatty() and not environ.get("CI") and environ.get("TERM") != "dumb":
        from statecfg.views.terminal_progress import LiveProgress

        return LiveProgress(stream, total, redactor, color, verbose)
    return PlainProgress(stream, total, redactor, verbose)
