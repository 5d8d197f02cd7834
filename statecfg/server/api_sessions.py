"""Logging in and out: by the API's own clients, and by a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statecfg.entities.calls import part
from statecfg.entities.problems import ApiError, forbidden
from statecfg.server import auth, pages, sessions
from statecfg.server.exchange import ANYONE, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import PAGED, listing

if TYPE_CHECKING:
    from statecfg.entities.model import Principal

ACCESS_TOKEN = "X-VMWARE-VCLOUD-ACCESS-TOKEN"  # noqa: S105 (a header's name)
TOKEN_TYPE = "X-VMWARE-VCLOUD-TOKEN-TYPE"  # noqa: S105
_SESSIONS = "/cloudapi/1.0.0/sessions"


def _wrong() -> ApiError:
    return ApiError(401, "UNAUTHORIZED", "User or token is wrong.", {"WWW-Authenticate": 'Basic realm="statecfg"'})


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """Who has logged in, by which token of theirs."""

    caller: Principal
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """Where clients look for the token."""
        return {ACCESS_TOKEN: self.token, TOKEN_TYPE: "Bearer"}


def logged_in(asked: Asked) -> LoggedIn:
    """Log in with the scheme Basic: the user, or user@organization, and a token of that user as the password.

    :raises ApiError: 401
    """
    given = auth.basic(asked.headers)
    if given is None:
        raise _wrong()
    user, token = given
    caller = asked.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None
    if caller is None or not _is(caller, user):
        raise _wrong()
    return LoggedIn(caller, token)


def _log_in(asked: Asked) -> Answer:
    found = logged_in(asked)
    return Answer(200, _session(found.caller), found.headers)


def _log_in_provider(asked: Asked) -> Answer:
    found = logged_in(asked)
    if not found.caller.is_administrator:
        raise forbidden("the provider's organization")
    return Answer(200, _session(found.caller), found.headers)


def _is(caller: Principal, user: str) -> bool:
    """Say whether a token is the user's. A name may hold @, an organization may not be given."""
    return user == caller.name or user.lower() == f"{caller.name}@{caller.org}".lower()


def _session(caller: Principal) -> dict[str, object]:
    return {
        "id": caller.id.replace(":user:", ":session:"),
        "user": {"name": caller.name, "id": caller.id},
        "org": {"name": caller.org, "id": caller.org_id},
        "roles": [caller.role],
    }


def _current(asked: Asked) -> Answer:
    own = _session(asked.principal)
    if asked.path.get("session", own["id"]) != own["id"]:
        raise forbidden(asked.path["session"][:200])
    return Answer(200, own)


def _sessions(asked: Asked) -> Answer:
    return page(asked, part([_session(asked.principal)], listing(asked)), lambda session, _: session)


def _browser_log_in(asked: Asked) -> Answer:
    """Open a session for a browser, and send it to the page."""
    token = asked.body["token"].strip() if "token" in asked.body else ""
    if not 0 < len(token) <= auth.LONGEST or asked.operations.principal_of(token) is None:
        return pages.sign_in("This token is not valid.", 401)
    opened = asked.shared.sessions.open(token)
    return Answer(303, None, {"Location": "/", "Set-Cookie": auth.set_cookie(opened, asked.base.startswith("https:"))})


def _browser_log_out(asked: Asked) -> Answer:
    asked.shared.sessions.close(asked.session)
    return Answer(204, None, {"Set-Cookie": auth.set_cookie("", asked.base.startswith("https:"))})


def _own_session(asked: Asked) -> Answer:
    """Say who one is, and, in a browser's session, what goes into X-Statecfg-Csrf."""
    who = asked.principal
    csrf = sessions.csrf(asked.session) if asked.session else ""
    return Answer(200, {"user": who.name, "org": who.org, "role": who.role, "csrf": csrf})


ROUTES = (
    Route("POST", _SESSIONS, ANYONE, _log_in, "Log in by user and token (Basic).", {200: "Session"}),
    Route(
        "POST",
        f"{_SESSIONS}/provider",
        ANYONE,
        _log_in_provider,
        "Log in as an administrator (Basic).",
        {200: "Session"},
    ),
    Route("GET", _SESSIONS, VIEWER, _sessions, "List one's sessions, which is one.", {200: "Sessions"}, PAGED),
    Route("GET", f"{_SESSIONS}/current", VIEWER, _current, "Show who is logged in.", {200: "Session"}),
    Route("GET", f"{_SESSIONS}/{{session}}", VIEWER, _current, "Show one's session.", {200: "Session"}),
    Route(
        "POST",
        "/login",
        ANYONE,
        _browser_log_in,
        "Log in a browser by a token.",
        {303: None},
        (),
        "Login",
        form=True,
        documented=False,
    ),
    Route("POST", "/logout", VIEWER, _browser_log_out, "End a browser's session.", {204: None}, documented=False),
    Route("GET", "/statecfg/1.0/session", VIEWER, _own_session, "Show who one is.", {200: "OwnSession"}),
)
