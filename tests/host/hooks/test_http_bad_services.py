"""HTTP services that misbehave: each call has a limit for time and memory, and its error names the cause."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from statecfg.hooks.http import answers, exchange
from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.http.calls import Failure
from tests.host.hooks.http.servers import Asked, answer, serving
from tests.lab.processes import wait_until

LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


def ask(url: str, seconds: float = 20.0) -> Failure:
    """Call a hook that must fail in time. Return the failure."""
    started = time.monotonic()
    error = http_hooks.call(url, seconds, "x", "pre-reconcile", {"kind": "K"}, {"a": {"kind": "A"}}).error
    assert time.monotonic() - started < seconds + 15
    assert error is not None
    return error


def stall(line: socket.socket, _: Asked) -> None:
    line.recv(1)


def drip(start: bytes, drop: bytes) -> Callable[[socket.socket, Asked], None]:
    """Return a service that sends `start`, then many small pieces with short pauses."""

    def talk(line: socket.socket, _: Asked) -> None:
        line.sendall(start)
        for _ in range(1200):
            line.sendall(drop)
            time.sleep(0.05)

    return talk


def garbage(line: socket.socket, _: Asked) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n{}\r\n")


def half(line: socket.socket, _: Asked) -> None:
    line.sendall(HEAD + b'{"object":')


def no_http(line: socket.socket, _: Asked) -> None:
    line.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


LATE_ONES = {
    "no answer": (stall, f'executing hook request to URL: Post "URL": {LATE}'),
    "slow headers": (
        drip(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        f'executing hook request to URL: Post "URL": {LATE}',
    ),
    "slow body": (drip(HEAD, b" "), f"hook response from URL could not be parsed: {LATE_BODY}"),
    "slow error body": (
        drip(HEAD.replace(b"200 OK", b"500 X"), b" "),
        f"hook response from URL returning 500 could not be read: {LATE_BODY}",
    ),
}


@pytest.fixture(scope="module")
def late() -> dict[str, Failure]:
    """Call all slow services at the same time. Return their failures. The timeout is long enough to reach the body."""

    def call(name: str) -> Failure:
        with serving(LATE_ONES[name][0]) as server:
            error = ask(server.url, 4)
        return replace(error, message=error.message.replace(server.url, "URL"))

    with ThreadPoolExecutor(len(LATE_ONES)) as pool:
        return dict(zip(LATE_ONES, pool.map(call, LATE_ONES), strict=True))


@pytest.mark.parametrize("name", LATE_ONES)
def test_a_slow_service_fails_at_its_deadline(late: dict[str, Failure], name: str) -> None:
    assert late[name] == Failure(LATE_ONES[name][1], permanent=name != "slow error body")


def test_the_thread_of_a_late_call_ends() -> None:
    with serving(drip(HEAD, b" ")) as server:
        ask(server.url, 0.5)
        wait_until(
            lambda: all(each.name != "statecfg-http-hook" for each in threading.enumerate()), 20, "the thread to end"
        )


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_of_100_megabytes_uses_little_memory(status: int) -> None:
    sent = 0

    def flood(line: socket.socket, _: Asked) -> None:
        nonlocal sent
        line.sendall(HEAD.replace(b"200", str(status).encode()).replace(b"1000000", b"100000000"))
        piece = b'"' + b"x" * 65535
        while sent < 100_000_000:
            line.sendall(piece)
            sent += len(piece)

    tracemalloc.start()
    try:
        with serving(flood) as server:
            error = ask(server.url, 40)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sent < 30_000_000  # the kernel buffers more than we read
    assert peak < 32 << 20
    if status == 200:
        text = f"hook response from {server.url} could not be parsed: its body is larger than 4,194,304 bytes"
        assert error == Failure(text, permanent=True)
    else:
        assert error.message.startswith(f'hook request at {server.url} returned 500: "xxxx')
        assert len(error.message) == answers.MAX_SHOWN


def test_a_body_is_read_up_to_the_size_limit() -> None:
    body = b'{"object":{"kind":"' + b"k" * (http_hooks.MAX_REPLY - 22) + b'"}}'
    with serving(answer(200, body)) as server:
        reply = http_hooks.call(server.url, 40, "x", "finalize", {"kind": "K"})
    assert len(body) == http_hooks.MAX_REPLY and reply.error is None and reply.object is not None
    with serving(answer(200, body + b" ")) as server:
        assert "larger than 4,194,304 bytes" in ask(server.url, 40).message


@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (garbage, "could not be parsed: "),
        (half, "could not be parsed: "),
        (no_http, "executing hook request to "),
        (answer(200, b"[" * 100_000), "could not be parsed: exceeded max depth"),
        (answer(200, b'{"a":' + b"9" * 5000 + b"}"), "could not be parsed: "),
        (answer(200, b"\xff\xfe{}"), "could not be parsed: invalid character"),
    ],
)
def test_an_invalid_answer_is_a_permanent_failure(talk: Callable[[socket.socket, Asked], None], words: str) -> None:
    with serving(talk) as server:
        error = ask(server.url)
    assert words in error.message and error.permanent and not error.proceed


def test_a_redirect_within_the_host_is_followed() -> None:
    def talk(line: socket.socket, asked: Asked) -> None:
        if asked.line.startswith("POST /v1 "):
            answer(307, Location="/v2")(line, asked)
        elif asked.line.startswith("POST /v2 "):
            answer(302, Location=server.url.replace("/v1", "/v3"))(line, asked)
        else:
            answer(200, '{"object":{"kind":"K"}}')(line, asked)

    with serving(talk) as server:
        reply = http_hooks.call(server.url, 20, "x", "finalize", {"kind": "K"})
    assert reply.error is None and reply.object == {"kind": "K"}
    # Like Go's client: 307 repeats the request, and 302 changes it to a GET.
    assert [(each.line.split()[0], bool(each.body)) for each in server.asked] == [
        ("POST", True),
        ("POST", True),
        ("GET", False),
    ]


def test_a_redirect_to_another_host_is_refused() -> None:
    with serving(answer(200, '{"object":{"kind":"Inside"}}')) as other:
        for there in (other.url, "https://127.0.0.1/", "http://169.254.169.254/latest", "//localhost/", "http://["):
            with serving(answer(307, Location=there)) as server:
                error = ask(server.url)
            assert error.permanent and "another host or scheme, which is not followed" in error.message
    assert other.asked == []


def test_circular_redirects_stop_after_the_limit() -> None:
    with serving(answer(308, Location="/v1")) as server:
        error = ask(server.url)
    assert "stopped after 10 redirects" in error.message and len(server.asked) == exchange.MAX_REDIRECTS + 1


def test_connecting_to_a_silent_address_times_out() -> None:
    # A listener with a full queue does not answer, like a firewall that drops packets.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        place = listener.getsockname()
        full = [socket.socket() for _ in range(3)]
        for each in full:
            each.setblocking(False)
            each.connect_ex(place)
        started = time.monotonic()
        error = ask(f"http://127.0.0.1:{place[1]}/v1", 40)
        for each in full:
            each.close()
    assert exchange.CONNECT - 0.5 < time.monotonic() - started < exchange.CONNECT + 20
    assert error.message.endswith(f"dial tcp 127.0.0.1:{place[1]}: i/o timeout")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Return a self-signed certificate for 127.0.0.1 with its key."""
    openssl = shutil.which("openssl")
    assert openssl is not None
    made = tmp_path / "both.pem"
    argv = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", str(made)]
    subprocess.run([*argv, "-out", str(tmp_path / "cert.pem")], check=True, capture_output=True, timeout=60)
    made.write_text(made.read_text() + (tmp_path / "cert.pem").read_text())
    return made


def test_an_unknown_certificate_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(answer(200), context) as server:
        error = ask(server.url)
        assert error.permanent and "tls: failed to verify certificate: self-signed certificate" in error.message
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.parent / "cert.pem"))
        assert http_hooks.call(server.url, 20, "x", "finalize", {"kind": "K"}).error is None
        other = server.url.replace("127.0.0.1", "localhost")
        assert "tls: failed to verify certificate: Hostname mismatch" in ask(other).message


def test_https_to_a_plain_http_service_fails_permanently() -> None:
    with serving(answer(200)) as server:
        error = ask(server.url.replace("http:", "https:"))
    assert error.permanent and "executing hook request to https://" in error.message


def test_proxy_variables_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving(answer(200)) as server:
        assert http_hooks.call(server.url, 20, "x", "finalize", {"kind": "K"}).error is None
