"""A download ends at its deadline and when the run is stopped, at whatever point the server stops answering."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from statecfg.remote.machine.process import CHILDREN
from statecfg.resources.files.downloads.downloads import Download

CHECKSUM = "sha256:" + "0" * 64
TIMEOUT = 1.0
FAR = 10.0  # seconds: much less than a server needs for its answer, and enough for a busy machine


def silent(connection: socket.socket) -> Iterator[bytes]:
    """Accept the connection, and never answer."""
    while True:
        yield b""


def headers(connection: socket.socket) -> Iterator[bytes]:
    """Send one byte of a header at a time."""
    yield b"HTTP/1.1 200 OK\r\nX-Long: "
    while True:
        yield b"a"


def content(connection: socket.socket) -> Iterator[bytes]:
    """Send one byte of the content at a time."""
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    while True:
        yield b"a"


def chunks(connection: socket.socket) -> Iterator[bytes]:
    """Send one byte in each chunk."""
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"1\r\na\r\n"


def handshake(connection: socket.socket) -> Iterator[bytes]:
    """Send one byte of a TLS record at a time."""
    yield b"\x16\x03\x03\x40\x00"
    while True:
        yield b"\x02"


def redirects(connection: socket.socket) -> Iterator[bytes]:
    """Redirect to the same server, slowly."""
    for byte in b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n":
        yield bytes([byte])


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], Iterator[bytes]]], int]]:
    """Return a function that starts a server whose answers are dripped, and returns its port."""
    listening, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip(connection: socket.socket, answer: Callable[[socket.socket], Iterator[bytes]]) -> None:
        with connection:
            try:
                for piece in answer(connection):
                    connection.sendall(piece)
                    if ended.wait(0.05):
                        return
            except OSError:  # the client has gone
                return

    def accept(answer: Callable[[socket.socket], Iterator[bytes]]) -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:  # the test has ended
                return
            threading.Thread(target=drip, args=(connection, answer), daemon=True).start()

    def start(answer: Callable[[socket.socket], Iterator[bytes]]) -> int:
        threading.Thread(target=accept, args=(answer,), daemon=True).start()
        port: int = listening.getsockname()[1]
        return port

    yield start
    ended.set()
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def fetched(port: int, scheme: str = "http", timeout: float = TIMEOUT) -> tuple[str, float]:
    """Return the error of a download, and the seconds until then."""
    how: dict[str, Any] = {"headers": None, "proxy": None, "ca": None, "timeout": timeout}
    began = time.monotonic()
    with pytest.raises(LookupError) as caught:
        list(Download(f"{scheme}://127.0.0.1:{port}/f", CHECKSUM, how, "/").chunks())
    return str(caught.value), time.monotonic() - began


@pytest.mark.parametrize("answer", [silent, headers, content, chunks, handshake, redirects], ids=lambda a: a.__name__)
def test_a_download_has_one_deadline(serve: Any, answer: Any) -> None:
    port = serve(answer)
    said, seconds = fetched(port, "https" if answer is handshake else "http")
    assert "not complete after 1 seconds" in said and seconds < FAR
    assert not lasting()


def lasting() -> list[threading.Thread]:
    """Return the threads of downloads that do not end."""
    return [thread for thread in threading.enumerate() if "(fill)" in thread.name and stays(thread)]


def stays(thread: threading.Thread) -> bool:
    thread.join(FAR)
    return thread.is_alive()


@pytest.mark.parametrize("answer", [silent, headers, content], ids=lambda a: a.__name__)
def test_a_stopped_run_ends_a_download(serve: Any, answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    port = serve(answer)
    timer = threading.Timer(0.5, lambda: monkeypatch.setattr(CHILDREN, "cancelled", True))
    timer.start()
    said, seconds = fetched(port, timeout=600.0)
    assert "the run was interrupted" in said and seconds < FAR
    assert not lasting()
