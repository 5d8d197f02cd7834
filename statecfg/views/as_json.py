"""The report as JSON, for programs: format 1, one document, with all control characters escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
    lead, hosts = "{", HostsText()
    for key, value in report.items():
        if key == "hosts":
            yield f"{lead}\n  {_indented(key, 1)}: "
            for name, host in report["hosts"].items():
                yield hosts.text(name, host)
            yield hosts.end()
        else:
            yield from fields({key: value}, lead)
        lead = ","
    yield "\n}\n"


def fields(values: Mapping[str, Any], lead: str) -> Iterator[str]:
    """Yield the text of fields of the top level.

    :param lead: what comes before the first one: "{" or ","
    """
    for key, value in values.items():
        yield f"{lead}\n  {_indented(key, 1)}: {_indented(value, 1)}"
        lead = ","


class HostsText:
    """The text of the field `hosts`."""

    def __init__(self) -> None:
        self._lead = "{"
        # Hosts with equal results share the values of their reports. A value that is kept also keeps its id.
        self._texts: dict[int, tuple[Any, str]] = {}  # id → value and its text

    def text(self, name: str, host: Any) -> str:
        """Return the text of the next host, and of what separates it from the one before."""
        lead, self._lead = self._lead, ","
        items = [f"\n      {_indented(key, 3)}: {self._shared(value)}" for key, value in host.items()]
        return f"{lead}\n    {_indented(name, 2)}: " + (f"{{{','.join(items)}\n    }}" if items else "{}")

    def end(self) -> str:
        """Return the text after the last host."""
        return "{}" if self._lead == "{" else "\n  }"

    def _shared(self, value: Any) -> str:
        """Return the text of a value of a host. Keep the last texts, because the next host may share the value."""
        if not isinstance(value, dict | list):
            return _indented(value, 3)
        if id(value) not in self._texts:
            if len(self._texts) >= _KEPT:
                self._texts.clear()
            self._texts[id(value)] = value, _indented(value, 3)
        return self._texts[id(value)][1]


_KEPT = 100


def _indented(value: Any, level: int) -> str:
    """Return the text of a value inside of others. Line breaks in strings are escaped, so all others are layout."""
    return text(value).rstrip("\n").replace("\n", "\n" + "  " * level)
