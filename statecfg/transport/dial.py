"""TCP to a host: name to addresses, IPv6 and IPv4 side by side, and not too many newcomers at one door."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .errors import Unreachable

# RFC 8305, "Connection Attempt Delay": how long one address may be silent before the next is tried beside it.
NEXT_ADDRESS_AFTER = 0.25
DEAD_AFTER = 15
HANDSHAKES_PER_ADDRESS = 8

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
T = TypeVar("T")


def dial(host: str, name: str, port: int, seconds: float) -> socket.socket:
    """Open a TCP connection.

    Parameters: `host` what the user calls it; `name` host name or address; `port`; `seconds` for everything. Returns
    a blocking socket with TCP_NODELAY and a limit of 15 s for unacknowledged data. Raises Unreachable.
    """
    deadline = time.monotonic() + seconds
    addresses = resolve(host, name, port, seconds)
    return _tune(_race(host, port, addresses, deadline, seconds))


def resolve(host: str, name: str, port: int, seconds: float) -> list[Address]:
    """Return the addresses of `name`, IPv6 and IPv4 in turn as RFC 8305 has it. Raises Unreachable."""
    try:
        found = _lookup(name, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        try:
            found = within(seconds, lambda: _lookup(name, port, 0))
        except TimeoutError as error:
            raise Unreachable(host, f"looking up {name} took more than {seconds:g} s") from error
        except OSError as error:
            raise Unreachable(host, f"cannot look up {name}: {error.strerror or error}") from error
        except UnicodeError as error:
            raise Unreachable(host, f"{name!r} is no host name") from error
    first = [a for a in found if a[0] == found[0][0]]
    second = [a for a in found if a[0] != found[0][0]]
    return [a for pair in itertools.zip_longest(first, second) for a in pair if a is not None]


def within(seconds: float, work: Callable[[], T]) -> T:
    """Do `work` (something that knows no deadline) in a daemon thread; raises TimeoutError, or what it raised."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]


class Gate:
    """Let a few newcomers in at a time; fewer when the host turns them away, more again when it doesn't."""

    def __init__(self, limit: int) -> None:
        self.most = self.limit = limit
        self.inside = 0
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def enter(self, host: str, seconds: float) -> Iterator[None]:
        """Wait for a place, and hold it; raises Unreachable when there was none for `seconds`."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.inside < self.limit, seconds):
                raise Unreachable(host, f"no place for a new connection within {seconds:g} s")
            self.inside += 1
        try:
            yield
        finally:
            with self.changed:
                self.inside -= 1
                self.changed.notify_all()

    def turned_away(self) -> None:
        """Note that the host has dropped a newcomer."""
        with self.changed:
            self.limit = max(1, self.limit // 2)

    def let_in(self) -> None:
        """Note that a newcomer got in."""
        with self.changed:
            self.limit = min(self.most, self.limit + 1)
            self.changed.notify_all()


def gate(key: str) -> Gate:
    """Return the process's one gate for a destination address."""
    with _gates_lock:
        return _gates.setdefault(key, Gate(HANDSHAKES_PER_ADDRESS))


_gates: dict[str, Gate] = {}
_gates_lock = threading.Lock()


def _lookup(name: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(name, port, socket.AF_UNSPEC, socket.SOCK_STREAM, 0, flags)
    return [(family, address) for family, _, _, _, address in found]


def _race(host: str, port: int, addresses: list[Address], deadline: float, seconds: float) -> socket.socket:
    waiting = list(addresses)
    running: dict[int, tuple[socket.socket, str]] = {}
    failures: list[str] = []
    poll = select.poll()
    try:
        while waiting or running:
            left = deadline - time.monotonic()
            if left <= 0:
                tried = ", ".join(a[0] for _, a in addresses)
                raise Unreachable(host, f"no answer from {tried} port {port} within {seconds:g} s")
            if waiting:
                _start(waiting.pop(0), running, failures, poll)
            pause = min(left, NEXT_ADDRESS_AFTER) if waiting else left
            for fd, _ in poll.poll(pause * 1000) if running else ():
                poll.unregister(fd)
                sock, address = running.pop(fd)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return sock
                sock.close()
                failures.append(f"{address} port {port}: {os.strerror(code)}")
    finally:
        for sock, _ in running.values():
            sock.close()
    raise Unreachable(host, "cannot connect: " + "; ".join(failures))


def _start(
    address: Address, running: dict[int, tuple[socket.socket, str]], failures: list[str], poll: select.poll
) -> None:
    family, place = address
    sock = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect(place)
    except BlockingIOError:
        pass  # the usual answer of a connect that doesn't wait
    except OSError as error:
        if sock is not None:
            sock.close()
        failures.append(f"{place[0]} port {place[1]}: {error.strerror}")
        return
    assert sock is not None
    running[sock.fileno()] = (sock, place[0])
    poll.register(sock, select.POLLOUT)


def _tune(sock: socket.socket) -> socket.socket:
    try:
        sock.setblocking(True)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Linux has all of these; others get what they have.
        for option, value in (
            ("TCP_USER_TIMEOUT", DEAD_AFTER * 1000),
            ("TCP_KEEPIDLE", DEAD_AFTER // 3),
            ("TCP_KEEPINTVL", DEAD_AFTER // 3),
            ("TCP_KEEPCNT", 3),
        ):
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    except OSError:
        sock.close()
        raise
    return sock
