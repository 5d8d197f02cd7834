"""The file of `--json-into`, which receives each host as soon as it has finished."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from statecfg.cli.output_files import Unwritten, into_file, replaced
from statecfg.remote.machine import durable
from statecfg.run.report_model import HostData, Report
from statecfg.views import as_json
from statecfg.views.json_document import JsonDocument


class ReportFile:
    """Writes the report to a temporary file, NAME.*.part, and gives it its name at the end.

    :param name: the path of the file. If it is not a regular file, such as a pipe, it receives the report at the end
    """

    at_once = False

    def __init__(self, name: str) -> None:
        self._name, self._path, self._part = name, "", ""
        self._stream: TextIO | None = None
        self._document: JsonDocument | None = None

    def begin(self, head: Mapping[str, Any]) -> None:
        """Create the temporary file, and begin the document. If the file can't be created, `end` writes all."""
        path = replaced(self._name)
        if self._document is None and path is not None:
            part = f"{path}.{os.getpid()}.part"
            with contextlib.suppress(OSError):  # `end` reports it
                handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
                self._path, self._part = path, part
                self._stream = os.fdopen(handle, "w", encoding="utf-8")
                self._document = JsonDocument(self._stream)
        if self._document is not None:
            self._document.begin(head)

    def host(self, name: str, report: Callable[[], HostData], final: bool) -> None:
        """Write a host that has finished; see `JsonStream`."""
        if self._document is not None:
            self._document.host(name, report, final)

    def end(self, report: Report) -> None:
        """Write the rest of the report, and give the file its name.

        :param report: redacted
        :raises Unwritten: it could not be written
        """
        if self._document is None or self._stream is None:
            into_file(self._name, as_json.pieces(report))
            return
        try:
            with self._stream:
                self._document.end(report)
                os.fsync(self._stream.fileno())
            os.replace(self._part, self._path)
            self._part = ""
            durable.sync(os.path.dirname(self._path))
        except OSError as problem:
            raise Unwritten(f"{self._name}: {problem.strerror}") from problem

    def discard(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._part:
            with contextlib.suppress(OSError):
                os.unlink(self._part)
