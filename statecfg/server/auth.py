"""Who asks: tokens, the browser's cookie, and which hosts and origins a request may name."""

from __future__ import annotations

import ipaddress
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from statecfg.server.exchange import PERMISSIONS
from statecfg.server.sessions import LIFE

COOKIE = "statecfg_session"
CSRF = "x-statecfg-csrf"
MOST = 1000  # addresses whose failed logins are remembered
LONGEST = 512  # characters of a token
SAFE = ("GET", "HEAD")
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - addresses to listen at, and never a name that a client calls
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What a client may name its token by; the second and third are those of the API's own clients.
HEADERS = ("x-vcloud-authorization", "x-vmware-vcloud-access-token")


def allows(permission: str, role: str) -> bool:
    """Say whether a role has a permission. What is no role has none, and what is no permission nobody has."""
    known = permission in PERMISSIONS and role in PERMISSIONS[1:]
    return known and PERMISSIONS.index(role) >= PERMISSIONS.index(permission)


def token(headers: Mapping[str, str]) -> str | None:
    """Return the token that a request's headers hold: "" for one that can't be right, None where there is none."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind and kind.lower() != "basic":
        return value.strip()[: LONGEST + 1] if kind.lower() == "bearer" else ""
    for name in HEADERS:
        if name in headers:
            return headers[name].strip()[: LONGEST + 1]
    return None


def basic(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password of an Authorization header of the scheme Basic, or None."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, colon, password = b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return (user, password) if colon else None


@dataclass(frozen=True, slots=True)
class Guard:
    """Which requests a web page elsewhere could have made: those that name another host, or come from elsewhere.

    :param hosts: names and addresses by which clients call the server, in lower case, without ports
    """

    hosts: frozenset[str]

    @classmethod
    def made(cls, bind: str, allowed: Iterable[str]) -> Guard:
        """Return a guard for a server that listens at an address, and may be called by other names, too."""
        names = {*LOOPBACK, bind.lower().strip("[]"), *(name.lower().strip("[]") for name in allowed)}
        return cls(frozenset(names.difference(EVERYWHERE)))

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Return why a request is refused, "" where it is not.

        A page that resolves its own name to our address gives itself away by Host, one that sends a form or a script's
        request by Origin or Sec-Fetch-Site. Clients that are no browsers send neither of the last two.
        """
        host = headers.get("host", "")
        if _name(host) not in self.hosts:
            return "This server does not answer to that Host. statecfg serve --allow-host NAME adds one."
        if headers.get("sec-fetch-site", "same-origin").lower() not in ("same-origin", "none"):
            return "The request comes from another site."
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            return "The request comes from another origin."
        return ""


def _name(host: str) -> str:
    """Return the name or address of a Host header without the port; "" where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        found = parts.hostname or ""
        parts.port  # noqa: B018 (raises where it is no number)
    except ValueError:
        return ""
    return found if parts.username is None and not (parts.path or parts.query or parts.fragment) else ""


def _same(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()


def is_loopback(bind: str) -> bool:
    """Say whether an address or name to listen at is reached from this machine only."""
    if bind.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return False


def cookie(headers: Mapping[str, str]) -> str:
    """Return what our cookie holds, "" where there is none."""
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def set_cookie(value: str, tls: bool) -> str:
    """Return the header that sets our cookie, which no script and no other site sees; with "", takes it back."""
    life = int(LIFE) if value else 0
    return f"{COOKIE}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict" + ("; Secure" if tls else "")


class Slowed:
    """How long who fails to log in waits for the answer: longer with each time, from each address.

    :param clock: seconds that only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[int, float]] = {}

    def failed(self, address: str) -> float:
        """Note a failed attempt; return how many seconds it has to wait: 0.1 to 3, forgotten after a minute."""
        with self._lock:
            now = self._clock()
            self._failed = {name: each for name, each in self._failed.items() if now - each[1] < 60}
            count = self._failed.get(address, (0, 0.0))[0] + 1
            if len(self._failed) < MOST or address in self._failed:
                self._failed[address] = (count, now)
        return float(min(0.1 * 1.5 ** (min(count, 20) - 1), 3.0))
