"""Limit what an unauthenticated server can make us read, and how long it can block our writes.

A mixin for paramiko's Packetizer, which sets no limits (RFC 4253: 35,000 bytes must be accepted).
"""

from __future__ import annotations

import time
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

MAX_PACKET = 256 * 1024
MAX_LINE = 255
MAX_LINES = 64
MAX_BEFORE_LOGIN = 1024 * 1024


class TooMuchSent(StatecfgError):
    """The server sent more than a limit allows."""


class LimitedPackets:
    """Read packets and banner lines within limits. Stop writing if the peer reads nothing for `stall` seconds."""

    stall = 60.0
    # paramiko's Packetizer has these attributes.
    closed: Any
    need_rekey: Any

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)  # type: ignore[call-arg]  # a mixin for paramiko's Packetizer
        self.sock = sock
        self.rest = b""
        self.lines = 0
        self.last_line = ""
        self.problem = ""
        self.before_login: int | None = MAX_BEFORE_LOGIN

    def logged_in(self) -> None:
        """Remove the limit that applies before the login."""
        self.before_login = None

    def start_handshake(self, timeout: float) -> None:
        """Do nothing. paramiko would start a thread that keeps the process alive; we already wait with a deadline."""

    def readline(self, timeout: float) -> str:
        """Return the next line of the banner.

        :raises TooMuchSent: a limit was exceeded
        :raises EOFError: the connection ended
        :raises TimeoutError: the line did not arrive in time
        """
        self.lines += 1
        if self.lines > MAX_LINES:
            raise self._too_much(f"more than {MAX_LINES} lines before the SSH banner")
        deadline = time.monotonic() + timeout
        while b"\n" not in self.rest[: MAX_LINE + 1]:
            if len(self.rest) > MAX_LINE:
                raise self._too_much(f"a banner line longer than {MAX_LINE} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError("no SSH banner in time")
            self.rest += self._receive(MAX_LINE) or b""
        line, _, self.rest = self.rest.partition(b"\n")
        self.last_line = line.removesuffix(b"\r").decode("utf-8", "replace")
        return self.last_line

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        """Return exactly `n` bytes.

        :param check_rekey: call `ask_for_new_keys` if new keys are needed
        :raises TooMuchSent: a limit was exceeded
        :raises EOFError: the connection ended
        """
        if n > MAX_PACKET:
            raise self._too_much(f"a packet of {n} bytes; the limit is {MAX_PACKET}")
        if self.before_login is not None:
            self.before_login -= max(n, 0)
            if self.before_login < 0:
                raise self._too_much(f"more than {MAX_BEFORE_LOGIN} bytes before login")
        out = bytearray(self.rest[:n])
        self.rest = self.rest[n:]
        while len(out) < n:
            data = self._receive(n - len(out))
            if data:
                out += data
            elif check_rekey and not out and self.need_rekey():
                self.ask_for_new_keys()
        return bytes(out)

    def ask_for_new_keys(self) -> None:
        """Raise paramiko's NeedRekeyException. The class that uses this mixin implements it."""
        raise NotImplementedError

    def _too_much(self, problem: str) -> TooMuchSent:
        # Also stored, because paramiko wraps exceptions that are raised while it reads the banner.
        self.problem = problem
        return TooMuchSent(problem)

    def _receive(self, n: int) -> bytes | None:
        """Return some bytes, or None after the socket's short timeout. Raise EOFError at the end."""
        try:
            data: bytes = self.sock.recv(n)
        except TimeoutError:
            if self.closed:
                raise EOFError from None
            return None
        except OSError:
            if self.closed:
                raise EOFError from None
            raise
        if not data:
            raise EOFError
        return data

    def write_all(self, out: Any) -> None:
        """Send all of `out`.

        :raises EOFError: the connection ended or stalled
        """
        # Not a memoryview: behind a jump host the socket is a channel, which accepts only bytes.
        rest: bytes = out
        deadline = time.monotonic() + self.stall
        while rest:
            if self.closed:
                raise EOFError
            try:
                sent = self.sock.send(rest)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise EOFError from None
                continue
            except OSError as error:
                raise EOFError from error
            if sent <= 0:
                raise EOFError
            rest = rest[sent:]
            deadline = time.monotonic() + self.stall
