"""The report as one JSON document (format 1), whose hosts are written as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TextIO

from statecfg.run.report_model import HostData, Report
from statecfg.views import as_json
from statecfg.views.json_stream import JsonStream


class JsonDocument(JsonStream):
    """Writes each host once, when its part of the report is final. Without `begin`, it writes all at the end."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._head: Mapping[str, Any] = {}
        self._hosts = as_json.HostsText()
        self._written: set[str] = set()  # names of hosts
        self._later: dict[str, Callable[[], HostData]] = {}  # hosts whose part may still change

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the fields before the hosts. Repeated calls change nothing: a second run belongs to the same report."""
        if self.begun:
            return
        self._head = {key: value for key, value in head.items() if key != "hosts"}
        self._start()
        self._put(lambda: "".join(as_json.fields(self._head, "{")) + ',\n  "hosts": ')

    def host(self, name: str, report: Callable[[], HostData], final: bool) -> None:
        """Write a host if its part is final; otherwise, `end` writes it."""
        if final:
            self._written.add(name)
            self._put(lambda: self._hosts.text(name, report()))
        else:
            self._later[name] = report

    def end(self, report: Report) -> None:
        """Write the hosts that are not written yet, and the other fields."""
        if self.begun:
            rest = {name: partial(report["hosts"].__getitem__, name) for name in report["hosts"]}
            self._close(rest, report)
        else:
            self._all(as_json.pieces(report))

    def fail(self, error: Mapping[str, Any]) -> None:
        """Write the error after the hosts that have finished, or alone if there is nothing else yet."""
        if self.begun:
            self._close(self._later, error)
        else:
            self._all([as_json.text(error)])

    def _close(self, hosts: Mapping[str, Callable[[], HostData]], last: Mapping[str, Any]) -> None:
        for name, report in hosts.items():
            if name not in self._written:
                self.host(name, report, True)
        fields = {key: value for key, value in last.items() if key != "hosts" and key not in self._head}
        self._put(lambda: self._hosts.end() + "".join(as_json.fields(fields, ",")) + "\n}\n")
        self._finish()

    def _all(self, pieces: Iterable[str]) -> None:
        self.ended = True
        for piece in pieces:
            self._stream.write(piece)
        self._stream.flush()
