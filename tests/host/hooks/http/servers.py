"""HTTP services on loopback that send the exact bytes that a test chooses, valid or invalid."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """A received request."""

    line: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Server:
    """A running service. `asked` contains the requests that it received."""

    url: str
    asked: list[Asked] = field(default_factory=list)


Talk = Callable[[socket.socket, Asked], None]


def answer(status: int, body: str | bytes = b"", **headers: str) -> Talk:
    """Return a function that gives every request the same answer. A `_` in a header name stands for `-`."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body

    def talk(line: socket.socket, _: Asked) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
        if status != 204:
            lines.append(f"Content-Length: {len(data)}")
        line.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + data)

    return talk


@contextmanager
def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """Serve one connection at a time. A client that disconnects early causes no error."""
    listener = socket.create_server(("127.0.0.1", 0))
    scheme = "http" if tls is None else "https"
    server = Server(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1")
    over = threading.Event()
    thread = threading.Thread(target=_serve, args=(listener, talk, tls, server, over), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)
        assert not thread.is_alive()


def _serve(listener: socket.socket, talk: Talk, tls: Any, server: Server, over: threading.Event) -> None:
    while not over.is_set():
        try:
            line, _ = listener.accept()
        except OSError:
            return
        with line:
            line.settimeout(30)
            try:
                with tls.wrap_socket(line, server_side=True) if tls is not None else line as wrapped:
                    asked = _request(wrapped)
                    server.asked.append(asked)
                    talk(wrapped, asked)
            except OSError:
                continue


def _request(line: socket.socket) -> Asked:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = line.recv(65536)
        if not piece:
            raise ConnectionError("the client disconnected")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += line.recv(65536)
    return Asked(first, headers, body)
