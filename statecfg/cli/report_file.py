"""The file of `--json-into`, which receives each host as soon as it has finished."""

from __future__ import annotations

import contextlib
import os
import tempfile
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
        self._name, self._part = name, ""
        self._stream: TextIO | None = None
        self._document: JsonDocument | None = None

    def begin(self, head: Mapping[str, Any]) -> None:
        """Create the temporary file, and begin the document. If the file can't be created, `end` writes all."""
        path = replaced(self._name)
        if self._document is None and path is not None:
            folder, name = os.path.split(path)
            with contextlib.suppress(OSError):  # `end` reports it
                handle, self._part = tempfile.mkstemp(".part", f"{name}.", folder)
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
        path = os.path.realpath(self._name)
        try:
            with self._stream:
                self._document.end(report)
                os.fsync(self._stream.fileno())
            os.chmod(self._part, 0o666 & ~_umask())
            os.replace(self._part, path)
            self._part = ""
            durable.sync(os.path.dirname(path))
        except OSError as problem:
            raise Unwritten(f"{self._name}: {problem.strerror}") from problem

    def discard(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._part:
            with contextlib.suppress(OSError):
                os.unlink(self._part)


def _umask() -> int:
    """Return the umask of this process. Only setting it shows it; no other thread creates files at the end of a run."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
