"""A TCP relay between a client and a host that counts, delays, cuts and stalls the traffic."""

from __future__ import annotations

import contextlib
import dataclasses
import select
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Any

from tests.lab import Host, PlainSshd


class Relay:
    """Listens on loopback and forwards every connection to a host.

    :param cut_after: close the connection after this number of bytes from the host; None: never
    :param cut_sent: close the connection after this number of bytes to the host; None: never
    :param reset: close with RST
    :param delay: delay in seconds, in each direction
    """

    def __init__(
        self,
        host: Host | PlainSshd,
        *,
        cut_after: int | None = None,
        cut_sent: int | None = None,
        reset: bool = False,
        delay: float = 0.0,
    ) -> None:
        self.target = (host.address, host.port)
        self.cut_after, self.cut_sent, self.reset, self.delay = cut_after, cut_sent, reset, delay
        self.stalled = threading.Event()  # set: no more data passes, and the connections stay open
        self.cut = threading.Event()  # set: the connections are closed at once
        self.times: list[tuple[float, bool, int]] = []  # time, whether from the host, number of bytes
        self.connections = 0
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.host = host
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def seen(self, known_hosts: Any) -> Host | PlainSshd:
        """Return the host with the relay's address, and write its host key to the file `known_hosts`."""
        text = self.host.known_hosts.read_text().split(None, 1)[1]
        known_hosts.write_text(f"[127.0.0.1]:{self.port} {text}")
        return dataclasses.replace(self.host, address="127.0.0.1", port=self.port, known_hosts=known_hosts)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.over.set()
        self.listener.close()
        for thread in self.threads:
            thread.join(5)

    def sent(self, since: float = 0.0) -> int:
        """Return how many bytes went to the host since the given time."""
        return sum(size for when, back, size in self.times if when >= since and not back)

    def received(self, since: float = 0.0) -> int:
        """Return how many bytes came from the host since the given time."""
        return sum(size for when, back, size in self.times if when >= since and back)

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                if not select.select([self.listener], [], [], 0.1)[0]:
                    continue
                near, _ = self.listener.accept()
            except (OSError, ValueError):
                return
            self.connections += 1
            thread = threading.Thread(target=self._pass_on, args=(near,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _pass_on(self, near: socket.socket) -> None:
        far = socket.create_connection(self.target)
        for side in (near, far):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting: list[tuple[float, socket.socket, bytes]] = []
        count = {True: 0, False: 0}
        limits = {True: self.cut_after, False: self.cut_sent}
        ended = False
        try:
            while not self.over.is_set() and not self.cut.is_set() and not (ended and not waiting):
                if self.stalled.is_set():
                    time.sleep(0.02)
                    continue
                pause = 0.02 if not waiting else max(0.0, min(0.02, waiting[0][0] - time.monotonic()))
                ready = [] if ended else select.select([near, far], [], [], pause)[0]
                if ended:
                    time.sleep(pause)
                for side in ready:
                    back = side is far
                    data = side.recv(65536)
                    if not data:
                        ended = True
                        continue
                    limit = limits[back]
                    if limit is not None and count[back] + len(data) >= limit:
                        (near if back else far).sendall(data[: limit - count[back]])
                        return
                    count[back] += len(data)
                    self.times.append((time.monotonic(), back, len(data)))
                    waiting.append((time.monotonic() + self.delay, near if back else far, data))
                while waiting and waiting[0][0] <= time.monotonic():
                    _, side, data = waiting.pop(0)
                    side.sendall(data)
        except OSError:
            return  # one side has closed; `finally` closes both
        finally:
            for side in (near, far):
                if self.reset or self.cut.is_set():
                    with contextlib.suppress(OSError):
                        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.close()
