"""Links to workers are encrypted, and each side accepts only the certificate that it knows."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from statecfg.engines import tls

CONTROLLER, WORKER, STRANGER = tls.certificate(), tls.certificate(), tls.certificate()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        yield opened


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def _accepting(threads: ThreadPoolExecutor, listener: socket.socket, timeout: float = 30) -> Future[socket.socket]:
    return threads.submit(tls.accept, listener, WORKER, CONTROLLER.public, timeout)


def _read(sock: socket.socket) -> bytes:
    """Return all bytes until the end."""
    return b"".join(iter(lambda: sock.recv(1 << 20), b""))


@pytest.mark.parametrize("own, peer", [(STRANGER, WORKER), (CONTROLLER, STRANGER)], ids=["controller", "worker"])
def test_a_side_with_another_certificate_gets_nothing(
    threads: ThreadPoolExecutor, listener: socket.socket, own: tls.Certificate, peer: tls.Certificate
) -> None:
    accepted = _accepting(threads, listener)
    received, refused_by_controller = b"", False
    try:
        with tls.connect(listener.getsockname(), own, peer.public, 30) as refused:
            refused.sendall(b"secret")
            received = _read(refused)
    except ssl.SSLCertVerificationError:
        refused_by_controller = True
    except OSError:
        assert own is STRANGER, "the worker has closed the connection"
    assert (received, refused_by_controller) == (b"", peer is STRANGER)
    # The worker still waits for the right controller.
    with tls.connect(listener.getsockname(), CONTROLLER, WORKER.public, 30) as near, accepted.result(30) as far:
        near.sendall(b"hello")
        assert far.recv(5) == b"hello"


def test_a_worker_waits_only_for_a_while(threads: ThreadPoolExecutor, listener: socket.socket) -> None:
    with pytest.raises(TimeoutError):
        _accepting(threads, listener, timeout=0.2).result(30)


def test_silent_strangers_keep_no_controller_out(threads: ThreadPoolExecutor, listener: socket.socket) -> None:
    accepted = _accepting(threads, listener)
    with contextlib.ExitStack() as held:
        address = listener.getsockname()
        strangers = [held.enter_context(socket.create_connection(address)) for _ in range(tls.MOST + 1)]
        # The controller waits for less time than one stranger may take.
        near = held.enter_context(tls.connect(address, CONTROLLER, WORKER.public, tls.HANDSHAKE / 2))
        far = held.enter_context(accepted.result(30))
        near.sendall(b"hello")
        assert far.recv(5) == b"hello"
        assert [_read(stranger) for stranger in strangers] == [b""] * len(strangers)


def test_a_stranger_is_not_kept_for_longer_than_a_handshake(
    threads: ThreadPoolExecutor, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE", 0.2)
    accepted = _accepting(threads, listener)
    with socket.create_connection(listener.getsockname(), 20) as stranger:
        stranger.sendall(b"\x16")  # the beginning of a handshake
        assert _read(stranger) == b""
    assert not accepted.done()
    monkeypatch.undo()
    with tls.connect(listener.getsockname(), CONTROLLER, WORKER.public, 30), accepted.result(30):
        pass
