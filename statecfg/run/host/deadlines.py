"""The deadlines of a session: statecfg never waits for a host without a time limit."""

from __future__ import annotations

from collections.abc import Callable

from statecfg.run.host.broken import Broken

DEAD = 15.0  # seconds of silence after which a host is considered lost
START = 60.0  # seconds from the start of the executor to its first frame
SLOWEST = 1024  # minimum speed of a connection, in bytes per second


class Deadlines:
    """Measures how long the session has waited, and for what.

    :param clock: returns seconds, such as `time.monotonic`
    :param patience: maximum number of seconds without progress; heartbeats don't count as progress
    :param started: whether the executor has started already
    """

    def __init__(self, clock: Callable[[], float], patience: float, started: bool = False) -> None:
        self.clock, self.patience = clock, patience
        self.heard = self.news = self.framed = clock()
        self.start = self.heard + START
        self.started = started

    def bytes_came(self) -> None:
        """Note that bytes arrived, or that the session has processed them."""
        self.heard = self.clock()

    def frame_came(self) -> None:
        """Note that a frame is complete, or that none is incomplete."""
        self.framed = self.clock()

    def progressed(self) -> None:
        """Note that the host made progress, or that it waits for the controller."""
        self.news = self.clock()

    def sent(self, size: int) -> None:
        """Give the executor more time to start, because the session sent something to it.

        :param size: number of bytes that the host may still have to receive
        """
        self.start = self.clock() + START + size / SLOWEST

    def check(self, incomplete: int, doing: str, now: float | None = None) -> None:
        """Check every deadline.

        :param incomplete: number of bytes received of an incomplete frame
        :param doing: what the host does, for the message
        :param now: the time to check; None for the current time
        :raises Broken: if a deadline has passed
        """
        now = self.clock() if now is None else now
        if self.started and now - self.heard > DEAD:
            raise Broken(
                f"the host sent nothing for {DEAD:.0f} s", "Check that the host is up and that the network works."
            )
        if not self.started and now > self.start:
            raise Broken(
                f"the executor did not start within {START:.0f} s",
                "The host may be too busy, or a start-up file of the login shell there may wait for something.",
            )
        slow = START + incomplete / SLOWEST
        if incomplete and now - self.framed > slow:
            raise Broken(f"a message did not arrive within {slow:.0f} s", "The connection may be too slow.")
        if now - self.news > self.patience:
            text = f"it is alive, but {doing} made no progress for {self.patience:.0f} s"
            raise Broken(text, "Check what the host is doing.")
