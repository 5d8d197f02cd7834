"""The report as JSON lines, for programs that read it during the run: one for each host when it has finished."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections.abc import Mapping
from typing import Any, TextIO

from statecfg.run.report_model import Host, Report
from statecfg.views.as_json import plain


def text(value: Any) -> str:
    """Return `value` as one line of JSON, in pure ASCII so that it can't control a terminal."""
    return json.dumps(value, ensure_ascii=True, default=plain).replace("\x7f", "\\u007f") + "\n"


class JsonLines:
    """Writes the lines in a separate thread, so that no host waits for a slow reader.

    :param stream: receives the lines. After a failed write it receives nothing more, and `end` raises the error
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._waiting: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._digests: dict[str, bytes] = {}  # host → digest of its newest line
        self._failed: OSError | None = None
        self._thread: threading.Thread | None = None

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write the first line of a run.

        :param head: what is known before the run
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, daemon=True)
            self._thread.start()
        self._waiting.put({"type": "begin", **head})

    def host(self, name: str, report: Host) -> None:
        """Write the line of a host, unless its newest line says the same.

        :param report: the host's part of the report, redacted; it must no longer change
        """
        self._waiting.put({"type": "host", "host": name, "report": report})

    def end(self, report: Report) -> None:
        """Write the hosts that have no line yet or have changed since, and the last line. Wait until all is written.

        :param report: redacted
        :raises OSError: a line could not be written
        """
        for name, host in report["hosts"].items():
            self.host(name, host)
        self._waiting.put({"type": "end", **{key: value for key, value in report.items() if key != "hosts"}})
        self._waiting.put(None)
        if self._thread is None:
            self._write()
        else:
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _write(self) -> None:
        while (entry := self._waiting.get()) is not None:
            if self._failed is not None:
                continue
            line = text(entry)
            if entry["type"] == "host":
                digest = hashlib.sha256(line.encode()).digest()
                if self._digests.get(entry["host"]) == digest:
                    continue
                self._digests[entry["host"]] = digest
            try:
                self._stream.write(line)
                self._stream.flush()
            except OSError as problem:
                self._failed = problem
