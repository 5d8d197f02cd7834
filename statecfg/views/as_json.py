"""The report as JSON, for programs: format 1, one document, with all control characters escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from statecfg.graph.value import Value
from statecfg.run.report_model import Report


def plain(value: object) -> str:
    """Return the JSON text for a value that JSON can't represent: a mask for a secret, otherwise `str(value)`."""
    return repr(value) if isinstance(value, Value) else str(value)


def text(value: Any) -> str:
    """Return `value` as indented JSON with a final newline, in pure ASCII so that it can't control a terminal."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=plain).replace("\x7f", "\\u007f") + "\n"


def pieces(report: Report) -> Iterator[str]:
    """Yield the text of a report host by host: the same as `text`, but all hosts together may not fit into memory."""
    texts: dict[int, str] = {}  # hosts with equal results share the values of their reports
    lead = "{"
    for key, value in report.items():
        yield f"{lead}\n  {_indented(key, 1)}: "
        lead = ","
        if key == "hosts" and value:
            yield from _hosts(value, texts)
        else:
            yield _indented(value, 1)
    yield "\n}\n"


def _hosts(hosts: Any, texts: dict[int, str]) -> Iterator[str]:
    lead = "{"
    for name, host in hosts.items():
        yield f"{lead}\n    {_indented(name, 2)}: "
        lead = ","
        items = [f"\n      {_indented(key, 3)}: {_shared(value, texts)}" for key, value in host.items()]
        yield f"{{{','.join(items)}\n    }}" if items else "{}"
    yield "\n  }"


def _shared(value: Any, texts: dict[int, str]) -> str:
    """Return the text of a value of a host. Keep the last texts, because the next host may share the value."""
    if not isinstance(value, dict | list):
        return _indented(value, 3)
    if id(value) not in texts:
        if len(texts) >= _KEPT:
            texts.clear()
        texts[id(value)] = _indented(value, 3)
    return texts[id(value)]


_KEPT = 100


def _indented(value: Any, level: int) -> str:
    """Return the text of a value inside of others. Line breaks in strings are escaped, so all others are layout."""
    return text(value).rstrip("\n").replace("\n", "\n" + "  " * level)
