"""The report as JSON, for programs: format 1, one document, every control character escaped."""

from __future__ import annotations

import json
from typing import Any

from statecfg.graph.value import Value


def plain(value: object) -> str:
    """Return what stands in JSON for a value that JSON has not: a mask for a secret, the text of anything else."""
    return repr(value) if isinstance(value, Value) else str(value)


def text(value: Any) -> str:
    """Return `value` as indented JSON in pure ASCII (so nothing in it can act on a terminal), with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=plain).replace("\x7f", "\\u007f") + "\n"
