"""The report as JSON, for programs: format 1, one document, with all control characters escaped."""

from __future__ import annotations

import json
from typing import Any

from statecfg.graph.value import Value


def plain(value: object) -> str:
    """Return the JSON text for a value that JSON can't represent: a mask for a secret, otherwise `str(value)`."""
    return repr(value) if isinstance(value, Value) else str(value)


def text(value: Any) -> str:
    """Return `value` as indented JSON with a final newline, in pure ASCII so that it can't control a terminal."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=plain).replace("\x7f", "\\u007f") + "\n"
