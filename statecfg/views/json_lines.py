"""The report as JSON lines, for programs that read it during the run: one for each host when it has finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TextIO

from statecfg.run.report_model import HostData, Report
from statecfg.views.as_json import plain
from statecfg.views.json_stream import JsonStream


def text(value: Any) -> str:
    """Return `value` as one line of JSON, in pure ASCII so that it can't control a terminal."""
    return json.dumps(value, ensure_ascii=True, default=plain).replace("\x7f", "\\u007f") + "\n"


class JsonLines(JsonStream):
    """Writes one line for each host. A host whose report changes afterwards gets another line."""

    at_once = True

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._digests: dict[str, bytes] = {}  # host → digest of its newest line

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the first line of a run."""
        if not self.begun:
            self._start()
        self._put(partial(text, {"type": "begin", **head}))

    def host(self, name: str, report: Callable[[], HostData], final: bool) -> None:
        """Write the line of a host, unless its newest line says the same."""
        self._put(partial(self._line, {"type": "host", "host": name, "report": report()}))

    def end(self, report: Report) -> None:
        """Write the hosts that have no line yet or have changed since, and the last line."""
        for name in report["hosts"]:
            self.host(name, partial(report["hosts"].__getitem__, name), True)
        self._put(partial(text, {"type": "end", **{key: value for key, value in report.items() if key != "hosts"}}))
        self._finish()

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write the line of an error."""
        self._put(partial(text, {"type": "error", **error}))
        self._finish()

    def _line(self, entry: Mapping[str, Any]) -> str:
        """Return the line of a host, "" if it has such a line."""
        line = text(entry)
        digest = hashlib.sha256(line.encode()).digest()
        if self._digests.get(entry["host"]) == digest:
            return ""
        self._digests[entry["host"]] = digest
        return line
