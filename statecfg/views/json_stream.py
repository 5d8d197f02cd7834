"""Writes a report during the run, in a separate thread, so that no host waits for a slow reader."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TextIO

from statecfg.run.report_model import HostData, Report


class HostStream(Protocol):
    """Receives the hosts of a run as they finish."""

    at_once: bool

    def begin(self, head: Mapping[str, Any]) -> None:
        """Write what is known at the begin of a run."""

    def host(self, name: str, report: Callable[[], HostData], final: bool) -> None:
        """Write a host that has finished."""


class JsonStream(ABC):
    """A report that is written as its hosts finish.

    :param stream: receives the text. After a failed write it receives nothing more; `end` and `fail` raise the error
    """

    at_once = False  # whether it begins before the definitions of all hosts are known to be valid

    def __init__(self, stream: TextIO) -> None:
        self.ended = False
        self._stream = stream
        self._waiting: queue.SimpleQueue[Callable[[], str] | None] = queue.SimpleQueue()
        self._failed: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def begun(self) -> bool:
        """Whether a part of the report is written, or will be."""
        return self._thread is not None

    @abstractmethod
    def begin(self, head: Mapping[str, Any]) -> None:
        """Write what is known at the begin of a run.

        :param head: `format`, `run`, `mode`, `playbook` and `hosts`, the names of the hosts
        """

    @abstractmethod
    def host(self, name: str, report: Callable[[], HostData], final: bool) -> None:
        """Write a host that has finished.

        :param report: returns the host's part of the report, redacted; may be called in another thread
        :param final: whether this part can no longer change
        """

    @abstractmethod
    def end(self, report: Report) -> None:
        """Write the rest of a report, and wait until all is written.

        :param report: redacted
        :raises OSError: it could not be written
        """

    @abstractmethod
    def fail(self, error: Mapping[str, Any]) -> None:
        """Write an error that ends the command, and wait until all is written.

        :param error: `format`, `error` and `problems`
        :raises OSError: it could not be written
        """

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _put(self, text: Callable[[], str]) -> None:
        self._waiting.put(text)

    def _finish(self) -> None:
        """Wait until all is written."""
        self.ended = True
        self._waiting.put(None)
        if self._thread is None:
            self._write()
        else:
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _write(self) -> None:
        while (text := self._waiting.get()) is not None:
            if self._failed is not None:
                continue
            try:
                self._stream.write(text())
                self._stream.flush()
            except Exception as problem:  # the command raises it at its end
                self._failed = problem
