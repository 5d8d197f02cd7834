"""Authentication: tokens, the browser's cookie, and which hosts and origins a request may name."""

from __future__ import annotations

import ipaddress
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from starlette.responses import Response

from statecfg.entities.problems import ApiError
from statecfg.problems.frozen import dataclass
from statecfg.server.sessions import LIFE

# Who may call a route, with increasing rights. A role has its own permission and those before it.
ANYONE, VIEWER, AUTHOR, ADMINISTRATOR = PERMISSIONS = ("anyone", "viewer", "author", "administrator")
COOKIE = "statecfg_session"
CSRF = "x-statecfg-csrf"
MOST = 1000  # maximum number of addresses whose failed logins are counted
LONGEST = 512  # maximum number of characters of a token
SAFE = ("GET", "HEAD")
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  # addresses to listen on; clients can't use them as names
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Headers besides Authorization in which clients of the original API send their token.
HEADERS = ("x-vcloud-authorization", "x-vmware-vcloud-access-token")


def allows(permission: str, role: str) -> bool:
    """Return whether a role has a permission. Return False for an unknown role or permission."""
    are_valid = permission in PERMISSIONS and role in PERMISSIONS[1:]
    return are_valid and PERMISSIONS.index(role) >= PERMISSIONS.index(permission)


def token(headers: Mapping[str, str]) -> str | None:
    """Return the token in the headers of a request; "" if it can't be valid, None if there is none."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme and scheme.lower() != "basic":
        return value.strip()[: LONGEST + 1] if scheme.lower() == "bearer" else ""
    for name in HEADERS:
        if name in headers:
            return headers[name].strip()[: LONGEST + 1]
    return None


def basic(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the user and the password of an Authorization header with the scheme Basic, or None."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if colon else None


@dataclass(frozen=True, slots=True)
class OriginGuard:
    """Refuses requests that a foreign web page may have sent: to another host name, or from another origin.

    :param hosts: names and addresses by which clients call the server, in lower case, without ports
    """

    hosts: frozenset[str]

    @classmethod
    def for_address(cls, bind: str, allowed: Iterable[str]) -> OriginGuard:
        """Return a guard for a server.

        :param bind: the address that the server listens on
        :param allowed: more names that clients may use for the server
        """
        names = {*LOOPBACK, bind.lower().strip("[]"), *(name.lower().strip("[]") for name in allowed)}
        return cls(frozenset(names.difference(EVERYWHERE)))

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Return why the request is refused, or "" if it is allowed.

        `Host` reveals a foreign page whose host name resolves to our address. `Origin` and `Sec-Fetch-Site`, which only
        browsers send, reveal a foreign page that submits a form or sends a request from a script.
        """
        host = headers.get("host", "")
        if _name(host) not in self.hosts:
            return "This server does not accept this host name. `statecfg serve --allow-host NAME` adds a name."
        if headers.get("sec-fetch-site", "same-origin").lower() not in ("same-origin", "none"):
            return "The request comes from another site."
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return "The request comes from another origin."
        return ""


def _name(host: str) -> str:
    """Return the name or address of a Host header without the port; "" if the header is invalid."""
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
        parts.port  # noqa: B018  # raises ValueError for an invalid port
    except ValueError:
        return ""
    return name if parts.username is None and not (parts.path or parts.query or parts.fragment) else ""


def _same(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()


def is_loopback(bind: str) -> bool:
    """Return whether only this machine can reach an address or name to listen on."""
    if bind.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return False


def unauthorized() -> ApiError:
    """Return the error 401 for a request without a valid token."""
    return ApiError(401, "UNAUTHORIZED", "A valid token is required.", {"WWW-Authenticate": 'Bearer realm="statecfg"'})


def set_cookie(response: Response, value: str, tls: bool) -> None:
    """Set the session cookie, which scripts and other sites can't read.

    :param value: "" deletes the cookie
    :param tls: send it only over TLS
    """
    life = int(LIFE) if value else 0
    response.set_cookie(COOKIE, value, life, path="/", secure=tls, httponly=True, samesite="strict")


class Delays:
    """The delays after wrong credentials. They grow with each attempt from the same address.

    :param clock: a monotonic clock, in seconds
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[int, float]] = {}

    def failed(self, address: str) -> float:
        """Count a failed attempt and return the delay: 0.1 to 3 seconds. After a minute, an address is forgotten."""
        with self._lock:
            now = self._clock()
            self._failed = {name: failed for name, failed in self._failed.items() if now - failed[1] < 60}
            count = self._failed.get(address, (0, 0.0))[0] + 1
            if len(self._failed) < MOST or address in self._failed:
                self._failed[address] = (count, now)
        return float(min(0.1 * 1.5 ** (min(count, 20) - 1), 3.0))
