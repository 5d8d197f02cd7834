"""The stream of one program over one SSH channel."""

from __future__ import annotations

import contextlib
import threading
import time

from . import CHUNK, STDERR_KEPT, WRITE_DEADLINE
from .dial import within
from .errors import ConnectionLost
from .ssh import FAILURES, paramiko, shut
from .ssh_jumps import JumpChain
from .tail import Tail

CLOSE_TIME = 2.0
WRITE_PIECE = 32 * 1024
SLICE = 0.5


class SshStream:
    """One channel of a connection. `read` also reads stderr, so that it can't block stdout."""

    def __init__(self, host: str, channel: paramiko.Channel, way: JumpChain) -> None:
        self.host = host
        self.channel = channel
        self.way = way
        self.tail = Tail(STDERR_KEPT)
        self.arrived = threading.Event()
        self.closed = False
        # paramiko would wait by the wall clock. We wait for this event instead.
        channel.settimeout(0.0)
        channel.in_buffer.set_event(self.arrived)
        channel.in_stderr_buffer.set_event(self.arrived)

    def write(self, data: bytes) -> None:
        """Send all of `data`.

        :raises ConnectionLost: the connection or program ended, or the program has read nothing for 60 s
        """
        rest = memoryview(data)
        deadline = time.monotonic() + WRITE_DEADLINE
        while rest:
            try:
                sent = self.channel.send(bytes(rest[:WRITE_PIECE]))
            except TimeoutError:
                if time.monotonic() > deadline:
                    stuck = f"the program has read nothing for {WRITE_DEADLINE:.0f} s"
                    raise ConnectionLost(self.host, stuck) from None
                self._await_window()
                continue
            except FAILURES as error:
                raise self._lost("while data was sent") from error
            # paramiko silently drops data if the connection has ended.
            if sent == 0 or not self.channel.get_transport().is_active():
                raise self._lost("while data was sent")
            rest = rest[sent:]
            deadline = time.monotonic() + WRITE_DEADLINE

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes; b"" at the end; None after `timeout` seconds without any.

        :raises ConnectionLost: the connection ended before the output
        """
        deadline = time.monotonic() + timeout
        while not self._output_arrived():
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self.arrived.wait(left)
        try:
            data: bytes = self.channel.recv(CHUNK)
        except TimeoutError:
            return None
        except FAILURES as error:
            raise self._lost("while its output was read") from error
        if not data and (self.closed or not self.channel.eof_received):
            raise self._lost("before the program's output ended")
        return data

    def stderr(self) -> bytes:
        """Return the newest 64 KiB of stderr."""
        self._keep_stderr()
        return self.tail.bytes()

    def exit_status(self) -> int | None:
        """Return the exit status; None if the program still runs or a signal ended it."""
        status: int = self.channel.exit_status
        return status if self.channel.exit_status_ready() and status >= 0 else None

    def close(self) -> None:
        """Close the channel. The program then reads the end of its stdin."""
        self.closed = True
        try:
            within(CLOSE_TIME, self.channel.close)
        except FAILURES:
            # The peer no longer reads, so the connection is useless.
            shut(self.channel.get_transport())

    def _await_window(self) -> None:
        with self.channel.lock:
            if self.channel.out_window_size == 0 and not self.channel.closed:
                self.channel.out_buffer_cv.wait(SLICE)

    def _lost(self, when: str) -> ConnectionLost:
        if self.closed:
            return ConnectionLost(self.host, "the stream is closed")
        transport = self.channel.get_transport()
        if transport.is_active() and self.channel.closed:
            if not self.channel.eof_received:
                detail = f"the channel was closed {when}"
                return ConnectionLost(self.host, detail, "Perhaps the host does not allow the program.")
            return ConnectionLost(self.host, "the program ended before it read everything")
        broken = self.way.notice()
        return ConnectionLost(self.host, f"the connection {f'to jump host {broken} ' if broken else ''}was lost {when}")

    def _output_arrived(self) -> bool:
        """Read stderr; return whether output can be read, or has ended."""
        self._keep_stderr()  # paramiko then clears the event, also if output has arrived
        return bool(self.channel.recv_ready() or self.channel.eof_received or self.channel.closed)

    def _keep_stderr(self) -> None:
        with contextlib.suppress(*FAILURES):  # `read` notices a lost connection, too
            while self.channel.recv_stderr_ready():
                self.tail.add(self.channel.recv_stderr(CHUNK))
