"""Downloads: fetch the content of a URL in pieces, verify it, and write it to a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.files.downloads import arrivals
from statecfg.resources.shared import files, paths, records

PIECE = 1 << 18  # bytes
SILENCE = 60.0  # seconds without any data
SPARE = 1 << 24  # bytes that a download of unknown size leaves free
# The attributes that say how to fetch a URL.
HOW = ("headers", "proxy", "ca", "timeout", "max_size")


class Download(Blob):
    """The content of a URL. A plan does not fetch it.

    :param checksum: algorithm and digest, such as `sha256:…`; None accepts any content
    :param how: `headers`, `proxy`, `ca`, `timeout` and `max_size` (see the node type)
    :param place: a directory on the file system that gets the content
    """

    __slots__ = ("checksum", "how", "origin", "place", "url")

    def __init__(self, url: str, checksum: str | None, how: Mapping[str, Any], place: str) -> None:
        algorithm, _, digest = (checksum or "").partition(":")
        digest = digest.lower()
        Blob.__init__(self, digest if algorithm == "sha256" else "", 0)
        self.url, self.checksum, self.how, self.place = url, checksum, how, place
        self.origin = "%sfrom %s" % ("sha256:%s " % self.sha256 if self.sha256 else "", url)

    def chunks(self, size: int = PIECE) -> Iterator[bytes]:
        """Fetch the content, and yield it in pieces. Their number and the time have limits before anything arrives.

        :raises LookupError: if it can't be fetched completely in time, or has another checksum
        """
        algorithm, _, wanted = (self.checksum or "sha256:").partition(":")
        digest = hashlib.new(algorithm)
        self._check_url()
        for piece in arrivals.arriving(lambda line: self._pieces_of(line, size), self.how["timeout"], self.url):
            digest.update(piece)
            yield piece
        if wanted and digest.hexdigest() != wanted.lower():
            raise LookupError(f"{self.url} has the checksum {algorithm}:{digest.hexdigest()}")

    def _pieces_of(self, line: arrivals.Arrival, size: int) -> Iterator[bytes]:
        """Yield the content as it arrives.

        :raises LookupError: if it can't be fetched completely
        """
        from http.client import HTTPException, InvalidURL

        count = 0
        try:
            with self._open(line) as response:
                expected = response.headers.get("Content-Length")
                self._check_size(response.length or 0, response.length or 0)
                while True:
                    piece = response.read1(size)
                    if not piece:
                        break
                    count += len(piece)
                    self._check_size(count, SPARE if expected is None and count > SPARE else 0)
                    yield piece
        except OSError as problem:
            getattr(problem, "close", str)()  # the answer of an HTTPError is still open
            raise LookupError(f"{self.url}: {_reason(problem)}") from None
        except InvalidURL:  # its text quotes a part of the URL, which may be a part of a secret
            raise LookupError("the URL is not valid") from None
        except (HTTPException, ValueError) as problem:  # an invalid answer, or a header that http.client refuses
            raise LookupError(f"{self.url}: {type(problem).__name__}: {problem}") from None
        if expected is not None and str(count) != expected.strip():
            raise LookupError(f"{self.url}: the server sent {count} of {expected} bytes")

    def _check_size(self, size: int, needed: int) -> None:
        """Check the size of the content, before it is written.

        :param size: the bytes that it has at least
        :param needed: the bytes that must be free
        :raises LookupError: if it is larger than `max_size`, or the file system has not enough space
        """
        most, status = self.how.get("max_size"), os.statvfs(self.place)
        if most is not None and size > most:
            raise LookupError(f"{self.url} has more than {most} bytes: max_size does not allow it")
        free = status.f_bavail * status.f_frsize
        if needed > free:
            text = "%s has %d bytes or more, and %s has only %d free bytes"
            raise LookupError(text % (self.url, size, self.place, free))

    def _check_url(self) -> None:
        """Check the URL once more, because it may have contained a secret. Messages must not show a part of it.

        :raises LookupError: if it is not one that `download_rules` allows
        """
        from urllib.parse import urlsplit

        parts = urlsplit(self.url)
        if parts.scheme not in ("https", "http") or "@" in parts.netloc:
            text = "the URL must begin with https:// or http://, without a user or a password"
            raise LookupError(text + "; write a password as a header, such as Authorization")
        if parts.scheme == "http" and not self.checksum:
            raise LookupError("content over http can be changed on the network; use https, or write the checksum")

    def _open(self, line: arrivals.Arrival) -> Any:
        # Most hosts have no downloads and should not wait for these imports.
        import urllib.request as web

        try:
            import ssl
        except ImportError:
            raise LookupError("Python has no module ssl here; via: controller fetches it elsewhere") from None

        class Redirects(web.HTTPRedirectHandler):
            def redirect_request(self, request: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
                if request.full_url.startswith("https:") and not newurl.startswith("https:"):
                    raise LookupError(f"{request.full_url} redirects to {newurl}, which is not secure")
                return super().redirect_request(request, fp, code, msg, headers, newurl)

        import functools
        import http.client

        def watched(kind: Any, *arguments: Any, **options: Any) -> Any:
            """Return a connection that the line learns of before its TLS handshake."""
            connection = kind(*arguments, **options)
            create = connection._create_connection

            def connect(*address: Any, **more: Any) -> Any:
                opened = create(*address, **more)
                line.connected(opened)
                return opened

            connection._create_connection = connect
            return connection

        class Plain(web.HTTPHandler):
            def http_open(self, request: Any) -> Any:
                make: Any = functools.partial(watched, http.client.HTTPConnection)
                return self.do_open(make, request)

        class Secure(web.HTTPSHandler):
            def https_open(self, request: Any) -> Any:
                make: Any = functools.partial(watched, http.client.HTTPSConnection)
                return self.do_open(make, request, context=context)

        how, opener = self.how, web.OpenerDirector()
        proxies = {"http": how["proxy"], "https": how["proxy"]} if how.get("proxy") else {}
        context = ssl.create_default_context(cafile=how.get("ca"))
        handlers = (Plain(), Secure(context=context), Redirects(), web.UnknownHandler())
        for handler in (web.ProxyHandler(proxies), *handlers):
            opener.add_handler(handler)
        for more in (web.HTTPDefaultErrorHandler, web.HTTPErrorProcessor):
            opener.add_handler(more())
        request = web.Request(self.url, headers={"User-Agent": "statecfg"})  # noqa: S310  # no handler for other schemes
        for name, value in (how.get("headers") or {}).items():
            # Another server, to which this one redirects, must not receive them: they may contain a password.
            request.add_unredirected_header(name, value)
        return opener.open(request, timeout=min(SILENCE, how["timeout"]))


def _reason(problem: OSError) -> str:
    """Return why a server could not be read, in words."""
    code, reason = getattr(problem, "code", None), getattr(problem, "reason", None)
    if code is not None:
        return f"the server answers {code} {reason}"
    text = str(getattr(reason, "strerror", None) or reason or problem.strerror or problem)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        text += "; ca names a file with the certificates of your own authority"
    return text


@op
def download(
    machine: Machine,
    path: str,
    url: str,
    checksum: str | None = None,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    ca: str | None = None,
    timeout: float = 600.0,
    max_size: int | None = None,
) -> Result:
    """Fetch a URL and write its content to a file."""
    how = {"headers": headers, "proxy": proxy, "ca": ca, "timeout": timeout, "max_size": max_size}
    content = Download(url, checksum, how, os.path.dirname(path))
    written = machine.write(path, content, mode, owner, group, backup, validate)
    return files.with_digest(machine, path, written)


def matches(world: World, path: str, checksum: str | None) -> bool:
    """Return whether an existing file has a checksum; None matches every file."""
    algorithm, _, wanted = (checksum or "").lower().partition(":")
    if algorithm in ("", "sha256"):
        return not wanted or world.digest(path) == wanted
    digest = hashlib.new(algorithm)
    with world.open(path) as stream:
        for piece in iter(lambda: stream.read(PIECE), b""):
            digest.update(piece)
    return digest.hexdigest() == wanted


def check(
    node: HostNode,
    nodes: Mapping[str, HostNode],
    world: World,
    act: Callable[[Stat | None, int | None, str | None, str | None], Action] | None = None,
) -> list[Action]:
    """Compare checksum, mode and owner of a file that must exist.

    :param act: returns what writes the content, from the file's Stat, its mode, owner and group; default: `action`
    """
    attrs, path, checksum = node.attrs, node.attrs["path"], node.attrs.get("checksum")
    stat = paths.look(world, path, determined=checksum is not None)
    files.check_type(path, stat, False)
    mode = paths.mode_bits(attrs.get("mode"))
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    else:
        actions = paths.attribute_actions(world, path, stat, mode, node, nodes)
        hands = actions and paths.changes_hands(stat, attrs.get("owner"))
        if not hands and matches(world, path, checksum):
            return actions
    owner, group = paths.owners(world, node, nodes)
    return [act(stat, mode, owner, group) if act is not None else action(path, stat, attrs, mode, owner, group)]


def action(
    path: str, stat: Stat | None, attrs: records.Attrs, mode: int | None, owner: str | None, group: str | None
) -> Action:
    """Return what writes the content of a node's URL.

    :param stat: the file; None if it does not exist
    """
    content = sent(attrs, stat)
    if content is not None:
        return files.write(path, content, mode, owner, group, attrs.get("backup"), attrs.get("validate"))
    names = ("checksum", "backup", "validate", *HOW)
    options = {name: attrs.get(name) for name in names}
    return download(path, attrs["url"], mode=mode, owner=owner, group=group, **options)


def sent(attrs: records.Attrs, stat: Stat | None) -> Blob | None:
    """Return the content that the controller has sent, None if the host fetches it.

    :param stat: the file; None if it does not exist
    """
    content = attrs.get("content")
    if content is None:
        return None
    # The controller sends nothing if the file has this content already.
    size = os.path.getsize(content.path) if content.path else stat.size if stat is not None else content.size
    return Blob(content.sha256, size, content.data, content.path)
