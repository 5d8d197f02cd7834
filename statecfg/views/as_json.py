"""The report as JSON, for programs: format 1, one document, every control character escaped."""

from __future__ import annotations

import json
from typing import Any


def text(value: Any) -> str:
    """Return `value` as indented JSON in pure ASCII (so nothing in it can act on a terminal), with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=str).replace("\x7f", "\\u007f") + "\n"
