"""What a server may cost us before it has proved anything: limits on what is read from it, and time for what is sent.

A mixin in front of paramiko's Packetizer, which knows no limits of its own (RFC 4253: 35,000 bytes must be accepted).
"""

from __future__ import annotations

import time
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

MAX_PACKET = 256 * 1024
MAX_LINE = 255
MAX_LINES = 64
MAX_BEFORE_LOGIN = 1024 * 1024


class TooMuch(StatecfgError):
    """The server has sent more than a limit allows."""


class LimitedPackets:
    """Read packets and banner lines within limits; give up writing when the peer takes nothing for `stall` seconds."""

    stall = 60.0
    # These come from paramiko's Packetizer.
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
        """Lift the limit on what is read before we are let in."""
        self.before_login = None

    def start_handshake(self, timeout: float) -> None:
        """Do nothing: paramiko would start a thread that keeps the process alive; we wait with a deadline anyway."""

    def readline(self, timeout: float) -> str:
        """Return the next line of the banner; raises TooMuch, EOFError and TimeoutError."""
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
        """Return exactly `n` bytes; raises TooMuch, EOFError, and the rekey signal of paramiko's Packetizer."""
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
        """Raise paramiko's NeedRekeyException; the class that mixes this in knows it."""
        raise NotImplementedError

    def _too_much(self, problem: str) -> TooMuch:
        # Kept here too, since paramiko wraps what is raised while the banner is read.
        self.problem = problem
        return TooMuch(problem)

    def _receive(self, n: int) -> bytes | None:
        """Return some bytes, or None when the socket's short timeout passed; raises EOFError at the end."""
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
        """Send all of `out`; raises EOFError when the connection ended or stalled."""
        # Bytes and not a view of them: behind a jump host the socket is a channel, which takes bytes only.
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
