"""Open TCP connections: resolve names, try IPv6 and IPv4 in parallel, and limit simultaneous logins per address."""

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

# RFC 8305, "Connection Attempt Delay": how long to wait for one address before also trying the next.
NEXT_ADDRESS_DELAY = 0.25
DEAD_AFTER = 15
HANDSHAKES_PER_ADDRESS = 8

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
T = TypeVar("T")


def dial(host: str, name: str, port: int, seconds: float) -> socket.socket:
    """Open a TCP connection.

    :param host: the host's name in the inventory, for messages
    :param name: the host name or address to connect to
    :param seconds: the time limit for everything
    :returns: a blocking socket with TCP_NODELAY, which fails if data is not acknowledged for 15 s
    :raises Unreachable: no address accepted a connection in time
    """
    deadline = time.monotonic() + seconds
    addresses = resolve(host, name, port, seconds)
    return _tune(_race(host, port, addresses, deadline, seconds))


def resolve(host: str, name: str, port: int, seconds: float) -> list[Address]:
    """Return the addresses of `name`, IPv6 and IPv4 alternating. Source: RFC 8305.

    :raises Unreachable: the name can't be resolved
    """
    try:
        addresses = _lookup(name, port, socket.AI_NUMERICHOST)
    except socket.gaierror:
        try:
            addresses = within(seconds, lambda: _lookup(name, port, 0))
        except TimeoutError as error:
            raise Unreachable(host, f"resolving {name} took more than {seconds:g} s") from error
        except OSError as error:
            raise Unreachable(host, f"cannot look up {name}: {error.strerror or error}") from error
        except UnicodeError as error:
            raise Unreachable(host, f"{name!r} is not a host name") from error
    first = [a for a in addresses if a[0] == addresses[0][0]]
    second = [a for a in addresses if a[0] != addresses[0][0]]
    return [a for pair in itertools.zip_longest(first, second) for a in pair if a is not None]


def within(seconds: float, work: Callable[[], T]) -> T:
    """Call a function without a time limit in a daemon thread.

    :param seconds: the time limit
    :param work: the function; it continues in its thread after the time limit
    :returns: the result of the function
    :raises TimeoutError: the function did not return in time; its own exceptions are raised as well
    """
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


class LoginGate:
    """Limit the simultaneous logins at one address. The limit falls if the host drops connections, and rises again."""

    def __init__(self, limit: int) -> None:
        self.most = self.limit = limit
        self.inside = 0
        self.changed = threading.Condition()

    @contextlib.contextmanager
    def enter(self, host: str, seconds: float) -> Iterator[None]:
        """Hold one of the simultaneous logins during the block.

        :raises Unreachable: the limit was reached for `seconds`
        """
        with self.changed:
            if not self.changed.wait_for(lambda: self.inside < self.limit, seconds):
                raise Unreachable(host, f"other connections to this address did not finish within {seconds:g} s")
            self.inside += 1
        try:
            yield
        finally:
            with self.changed:
                self.inside -= 1
                self.changed.notify_all()

    def turned_away(self) -> None:
        """Lower the limit, because the host dropped a new connection."""
        with self.changed:
            self.limit = max(1, self.limit // 2)

    def let_in(self) -> None:
        """Raise the limit, because the host accepted a login."""
        with self.changed:
            self.limit = min(self.most, self.limit + 1)
            self.changed.notify_all()


def gate(key: str, processes: int, limit: int = HANDSHAKES_PER_ADDRESS) -> LoginGate:
    """Return the gate that all connections of this process to an address share.

    :param processes: how many processes divide the limit among themselves; each may have at least one login
    :param limit: simultaneous logins
    """
    with _gates_lock:
        return _gates.setdefault((key, processes), LoginGate(max(1, limit // processes)))


_gates: dict[tuple[str, int], LoginGate] = {}
_gates_lock = threading.Lock()


def _lookup(name: str, port: int, flags: int) -> list[Address]:
    # Python encodes each `str` with the codec of international names, which takes 5 ms to load. Others need no codec.
    is_plain = name.isascii() and all(0 < len(label) < 64 for label in name.removesuffix(".").split("."))
    plain = name.encode() if is_plain else name
    results = socket.getaddrinfo(plain, port, socket.AF_UNSPEC, socket.SOCK_STREAM, 0, flags)
    return [(family, address) for family, _, _, _, address in results]


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
            pause = min(left, NEXT_ADDRESS_DELAY) if waiting else left
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
    family, socket_address = address
    sock = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect(socket_address)
    except BlockingIOError:
        pass  # the usual result of a connect that doesn't wait
    except OSError as error:
        if sock is not None:
            sock.close()
        failures.append(f"{socket_address[0]} port {socket_address[1]}: {error.strerror}")
        return
    assert sock is not None
    running[sock.fileno()] = (sock, socket_address[0])
    poll.register(sock, select.POLLOUT)


def _tune(sock: socket.socket) -> socket.socket:
    try:
        sock.setblocking(True)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Linux has all of these options, other systems only some.
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
