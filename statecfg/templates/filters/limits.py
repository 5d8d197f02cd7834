"""The limits of one rendering: time, memory, output, and what templates may not do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

SECONDS = 4.0
SIZE = 16 * 1024 * 1024  # characters of one value, and of the output
ITEMS = 500_000  # items of one value, those of inner lists and maps included
MEMORY = 128 * 1024 * 1024  # bytes of everything that one rendering makes


class TooMuch(StatecfgError):
    """The template exceeds a limit."""


class Refused(StatecfgError):
    """The template does something that its author surely did not intend."""

    def __init__(self, detail: str, help: str = "") -> None:
        super().__init__(detail)
        self.detail, self.help = detail, help


class Budget:
    """The time, memory and output that one rendering has used."""

    __slots__ = ("deadline", "earliest", "made", "size")

    def __init__(self) -> None:
        self.deadline, self.size, self.made = time.thread_time() + SECONDS, 0, 0
        self.earliest = time.monotonic() + SECONDS  # a first, fast check: the work never takes longer

    @property
    def left(self) -> float:
        """The seconds of work until the deadline. Waiting for other processes does not count."""
        return self.deadline - time.thread_time()

    def tick(self, seconds: float = 0) -> None:
        """Check the time.

        :param seconds: the time that the next step takes at least
        :raises TooMuch: the rendering took too long, or would take too long
        """
        if time.monotonic() + seconds > self.earliest and self.left < seconds:
            raise TooMuch(f"the template runs longer than {SECONDS:g} seconds")

    def add(self, size: int) -> None:
        """Count output.

        :raises TooMuch: the output is too large, or the rendering took too long
        """
        self.size += size
        if self.size > SIZE:
            raise TooMuch(f"the output is larger than {SIZE >> 20} MB")
        self.tick()

    def make(self, size: int) -> None:
        """Count memory.

        :raises TooMuch: the rendering has used too much
        """
        self.made += size
        if self.made > MEMORY:
            raise TooMuch(f"the template needs more than {MEMORY >> 20} MB of memory")

    def items(self, number: int) -> None:
        """Check the number of items of one value.

        :raises TooMuch: there are too many
        """
        if number > ITEMS:
            raise TooMuch(f"a value gets more than {ITEMS:,} items")

    def text(self, size: int) -> None:
        """Check the number of characters of one value.

        :raises TooMuch: there are too many
        """
        if size > SIZE:
            raise TooMuch(f"a string becomes larger than {SIZE >> 20} MB")

    def counted(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield items, up to the limits of one value."""
        text = 0
        for number, item in enumerate(items):
            if number & 255 == 0:
                self.tick()
                self.make(256 * 64)
                self.items(number)
            if isinstance(item, str):
                text += len(item)
                self.text(text)
            yield item


BUDGET: ContextVar[Budget] = ContextVar("budget of a rendering")
