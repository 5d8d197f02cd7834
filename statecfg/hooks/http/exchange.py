"""One POST of JSON over HTTP, with limits on time and memory. Only this module imports `httpx` for hooks."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from statecfg.remote.graph.errors import StatecfgError

if TYPE_CHECKING:
    import httpx

CONNECT = 3.0  # seconds
MAX_REDIRECTS = 10  # as in Go's client, and only within one host
LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
_AS_GET = (301, 302, 303)  # these turn a POST into a GET without a body
_AGAIN = (307, 308)


class Unanswered(StatecfgError):
    """There was no usable response; the message gives the reason, in the words of Go's client."""


@dataclass(frozen=True)
class Answer:
    """A response: status, body, why the body is incomplete ("" if it is complete), content type."""

    status: int
    body: bytes
    cut: str = ""
    content_type: str = ""


@dataclass
class _Line:
    """The connection of a running exchange, which another thread may close, and the progress of the exchange."""

    socket: socket.socket | None = None
    dead: bool = False
    status: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket of a new connection; httpx calls this at each step."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self.lock:
                self.socket = info["return_value"].get_extra_info("socket")
            if self.dead:
                self.end()

    def end(self) -> None:
        """Close the connection, also while another thread waits for it."""
        with self.lock:
            self.dead = True
            if self.socket is not None:
                try:
                    # Shut down the plain socket. The TLS socket would first send a closing message, and wait.
                    socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
                except OSError:
                    pass  # it has already ended


def ready() -> None:
    """Import what exchanges need before a deadline starts: imports must not use the service's time."""
    import httpx  # noqa: F401  # used in the threads of exchanges


def exchange(
    url: str,
    body: bytes,
    headers: dict[str, str],
    seconds: float,
    limits: tuple[int, int],
    follow: bool = True,
    listen: Callable[[str, bytes], bool] | None = None,
) -> Answer:
    """POST a body and return the response.

    Proxies of the environment are not used. Servers must have a certificate that this machine trusts (`SSL_CERT_FILE`
    changes the trusted ones). The exchange runs in a thread, because a name lookup or a slow answer can take
    arbitrarily long. After the time limit, the connection is closed and the thread ends.

    :param seconds: time limit for everything, including name lookup and redirects
    :param limits: number of bytes to read of the body: for status 200 to 299, and for others
    :param follow: whether to follow redirects within one host; otherwise they are returned like other answers
    :param listen: called in another thread with the content type and each piece of the body of an answer 200 to 299;
        if it returns True, the exchange ends
    :raises Unanswered: there was no answer in time, or it redirects to another host
    """
    # Load libraries and certificates before the service's time starts.
    ready()
    trust = ssl.create_default_context()
    line = _Line()
    done: Future[Answer] = Future()
    work = threading.Thread(
        target=_work,
        args=(done, line, url, body, headers, seconds, limits, follow, listen, trust),
        name="statecfg-http-hook",
        daemon=True,
    )
    work.start()
    try:
        return done.result(seconds)
    except TimeoutError:
        line.end()
        if line.status is None:
            raise Unanswered(f'Post "{url}": {LATE}') from None
        return Answer(line.status, b"", LATE_BODY)
    except BaseException:
        line.end()
        raise


def _work(done: Future[Answer], line: _Line, url: str, *arguments: Any) -> None:
    try:
        done.set_result(_exchange(line, url, *arguments))
    except BaseException as error:
        done.set_exception(error)  # the waiting caller raises it again


def _exchange(
    line: _Line,
    url: str,
    body: bytes,
    headers: dict[str, str],
    seconds: float,
    limits: tuple[int, int],
    follow: bool,
    listen: Callable[[str, bytes], bool] | None,
    trust: ssl.SSLContext,
) -> Answer:
    import httpx

    # Don't accept compressed answers: they can become far larger than their length.
    headers = {**headers, "Accept-Encoding": "identity"}
    times = httpx.Timeout(seconds, connect=min(CONNECT, seconds))
    extensions = {"trace": line.trace}
    method, sent, here = "POST", body, url
    try:
        with httpx.Client(verify=trust, trust_env=False, timeout=times) as client:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream(method, here, content=sent, headers=headers, extensions=extensions) as answer:
                    there = _redirect(answer, here) if follow else None
                    if there is None:
                        line.status = answer.status_code
                        content_type = answer.headers.get("Content-Type", "")
                        return replace(_read(answer, limits, listen), content_type=content_type)
                if answer.status_code in _AS_GET:
                    method, sent = "GET", b""
                    headers.pop("Content-Type", None)
                here = there
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # UnicodeError: the host name is invalid
        raise Unanswered(f'{method.title()} "{here}": {_words(error, here)}') from None
    raise Unanswered(f'{method.title()} "{here}": stopped after {MAX_REDIRECTS} redirects')


def _redirect(answer: httpx.Response, here: str) -> str | None:
    """Return the target of a redirect, or None if there is none.

    :raises Unanswered: the target is another host
    """
    there: str | None = answer.headers.get("Location")
    if answer.status_code not in (*_AS_GET, *_AGAIN) or not there:
        return None
    try:
        target = urljoin(here, there)
        if _origin(target) == _origin(here):
            return target
    except ValueError:
        target = there  # not a URL
    raise Unanswered(f'Post "{here}": redirected to {target[:200]}, another host or scheme, which is not followed')


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return the parts of a URL that a redirect must keep.

    :raises ValueError: the port is invalid
    """
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _read(
    answer: httpx.Response, limits: tuple[int, int], listen: Callable[[str, bytes], bool] | None = None
) -> Answer:
    import httpx

    most = limits[0] if answer.is_success else limits[1]
    body = bytearray()
    try:
        for piece in answer.iter_raw(None if listen is not None else 1 << 16):
            body += piece
            if len(body) > most:
                return Answer(answer.status_code, bytes(body[:most]), f"its body is larger than {most:,} bytes")
            if listen is not None and answer.is_success and listen(answer.headers.get("Content-Type", ""), piece):
                break
    except httpx.TimeoutException:
        return Answer(answer.status_code, bytes(body), LATE_BODY)
    except httpx.HTTPError as error:
        return Answer(answer.status_code, bytes(body), str(error) or "unexpected EOF")
    return Answer(answer.status_code, bytes(body))


def _words(error: Exception, url: str) -> str:
    """Return why there was no response, in the words of Go's client."""
    import httpx

    parts = urlsplit(url)
    address = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: {cause.verify_message}"
        if isinstance(cause, socket.gaierror):
            return f"dial tcp: lookup {parts.hostname}: {cause.strerror or cause}"
        if isinstance(cause, ConnectionRefusedError):
            return f"dial tcp {address}: connect: connection refused"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectTimeout):
        return f"dial tcp {address}: i/o timeout"
    if isinstance(error, httpx.TimeoutException):
        return LATE
    return str(error) or "EOF"
