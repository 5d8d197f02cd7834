"""A relay between a client and a PostgreSQL server. It can cut the connection before or after a COMMIT."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

Cut = Literal["", "before", "after"]


class Relay:
    """Forwards bytes in both directions, and can cut the connection of the next client that commits.

    It cuts `before` the server receives the COMMIT, or `after` the server has executed it.

    :param port: the port of the server
    """

    def __init__(self, port: int) -> None:
        self.server, self.cut = port, ""
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept)
        self.talks: list[threading.Thread] = []

    def cut_at_commit(self, when: Cut) -> None:
        """Cut the connection at the next commit."""
        self.cut = when

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # the listener is closed
                return
            self.talks.append(threading.Thread(target=self._talk, args=(client,)))
            self.talks[-1].start()

    def _talk(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self.server))
        back = threading.Thread(target=_pass_on, args=(server, client))
        with client, server:
            back.start()
            while data := _received(client):
                when = self.cut if b"COMMIT\0" in data else ""
                if when:
                    self.cut = ""
                    self.cuts += 1
                if when != "before":
                    if when == "after":
                        # The client never gets the answer. The server has answered when its connection ends.
                        _close(client)
                    server.sendall(data)
                if when:
                    break
            _close(client)
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := _received(source):
        with contextlib.suppress(OSError):
            target.sendall(data)
    _close(target)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def relay(port: int) -> Iterator[Relay]:
    """Run a relay to a port of the server."""
    made = Relay(port)
    made.thread.start()
    try:
        yield made
    finally:
        made.listener.shutdown(socket.SHUT_RDWR)
        made.listener.close()
        made.thread.join()
        for talk in made.talks:
            talk.join()
