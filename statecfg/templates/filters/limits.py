"""The limits of one rendering: time, output, and what templates may not do."""

from __future__ import annotations

import time
from contextvars import ContextVar

from statecfg.remote.graph.errors import StatecfgError

SECONDS = 5.0
SIZE = 16 * 1024 * 1024


class TooMuch(StatecfgError):
    """The template exceeds a limit."""


class Refused(StatecfgError):
    """The template does something that its author surely did not intend."""

    def __init__(self, detail: str, help: str = "") -> None:
        super().__init__(detail)
        self.detail, self.help = detail, help


class Budget:
    """The time and output that one rendering has used."""

    __slots__ = ("deadline", "size")

    def __init__(self) -> None:
        self.deadline, self.size = time.monotonic() + SECONDS, 0

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - time.monotonic()

    def tick(self) -> None:
        """Check the time.

        :raises TooMuch: the rendering took too long
        """
        if self.left < 0:
            raise TooMuch(f"the template runs longer than {SECONDS:g} seconds")

    def add(self, size: int) -> None:
        """Count output.

        :raises TooMuch: the output is too large, or the rendering took too long
        """
        self.size += size
        if self.size > SIZE:
            raise TooMuch(f"the output is larger than {SIZE >> 20} MB")
        self.tick()


BUDGET: ContextVar[Budget] = ContextVar("budget of a rendering")
