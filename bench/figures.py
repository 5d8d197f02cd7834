"""How benchmarks judge their figures: one unit of memory, a fixed loop to compare machines, and bars.

`script/bench` ends with all rows that miss a bar. It finds them by the words `OVER` and `UNDER`.
"""

from __future__ import annotations

import time

MB = 1_000_000  # bytes


def megabytes(peak: float) -> float:
    """Return a peak of memory in MB.

    :param peak: `ru_maxrss`, which Linux counts in KiB
    """
    return peak * 1024 / MB


def loop() -> float:
    """Return the CPU time of a fixed loop, in seconds."""
    start = time.process_time()
    found: dict[int, tuple[int, str]] = {}
    for number in range(1_000_000):
        found[number % 1_000] = (number, "text")
    return time.process_time() - start


def fixed() -> float:
    """Return the CPU time of the loop on this machine now: the best of five, in seconds."""
    return min(loop() for _ in range(5))


def loops(seconds: float, before: float) -> float:
    """Return a time as a multiple of that of the loop, which makes figures of different machines comparable.

    :param before: `fixed` before the measurement; the loop also runs now, and the better time counts
    """
    return seconds / min(before, fixed())


class Bars:
    """Compares the figures of a benchmark with their bars.

    :ivar missed: whether a figure missed its bar
    """

    def __init__(self) -> None:
        self.missed = False

    def at_most(self, figure: float, bar: float, unit: str) -> str:
        """Return a bar and whether the figure is within it, as text for a row."""
        return self._judged(figure <= bar, bar, unit, "OVER")

    def at_least(self, figure: float, bar: float, unit: str) -> str:
        """Return a bar and whether the figure reaches it, as text for a row."""
        return self._judged(figure >= bar, bar, unit, "UNDER")

    @property
    def status(self) -> int:
        """The exit status of the benchmark: 1 if a figure missed its bar."""
        return int(self.missed)

    def _judged(self, within: bool, bar: float, unit: str, otherwise: str) -> str:
        self.missed = self.missed or not within
        return f"bar {bar:g} {unit}: {'within' if within else otherwise}"
