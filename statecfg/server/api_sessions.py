"""Login and logout of API clients and browsers."""

from __future__ import annotations

from starlette.responses import JSONResponse, RedirectResponse, Response

from statecfg.entities.calls import part
from statecfg.entities.document import Shape
from statecfg.entities.model import Principal
from statecfg.entities.problems import ApiError, forbidden
from statecfg.problems.frozen import dataclass
from statecfg.server import auth, pages, sessions
from statecfg.server.auth import ANYONE, VIEWER
from statecfg.server.media import Body
from statecfg.server.parameters import PAGED, listing
from statecfg.server.request import ApiRequest
from statecfg.server.responses import nothing, page
from statecfg.server.routing import Routes

routes = Routes()
ACCESS_TOKEN = "X-VMWARE-VCLOUD-ACCESS-TOKEN"  # noqa: S105  # a header's name
TOKEN_TYPE = "X-VMWARE-VCLOUD-TOKEN-TYPE"  # noqa: S105  # a header's name
_SESSIONS = "/cloudapi/1.0.0/sessions"


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The user who has logged in, and the token that proves it."""

    caller: Principal
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers in which clients expect the token."""
        return {ACCESS_TOKEN: self.token, TOKEN_TYPE: "Bearer"}


def logged_in(request: ApiRequest) -> LoggedIn:
    """Log in with the scheme Basic. The user is a name or name@organization; the password is a token of that user.

    :raises ApiError: 401 if the user or the token is wrong
    """
    user, token = auth.basic(request.headers) or ("", "")
    caller = request.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None
    if caller is None or not _is(caller, user):
        headers = {"WWW-Authenticate": 'Basic realm="statecfg"'}
        raise ApiError(401, "UNAUTHORIZED", "The user or the token is wrong.", headers)
    return LoggedIn(caller, token)


def _is(caller: Principal, user: str) -> bool:
    """Return whether a token belongs to the user. A name may contain @, and the organization is optional."""
    return user == caller.name or user.lower() == f"{caller.name}@{caller.org}".lower()


@routes("POST", _SESSIONS, ANYONE, "Log in by user and token (Basic).", {200: "Session"})
def _log_in(request: ApiRequest) -> Response:
    user = logged_in(request)
    return JSONResponse(_session(user.caller), headers=user.headers)


@routes("POST", f"{_SESSIONS}/provider", ANYONE, "Log in as an administrator (Basic).", {200: "Session"})
def _log_in_provider(request: ApiRequest) -> Response:
    user = logged_in(request)
    if not user.caller.is_administrator:
        raise forbidden("the provider's organization")
    return JSONResponse(_session(user.caller), headers=user.headers)


@routes("GET", _SESSIONS, VIEWER, "List your sessions. There is always one.", {200: "Sessions"}, query=PAGED)
def _list(request: ApiRequest) -> Response:
    return page(request, part([_session(request.principal)], listing(request)), lambda session, _: session)


@routes("GET", f"{_SESSIONS}/current", VIEWER, "Show your session.", {200: "Session"})
def _current(request: ApiRequest) -> Response:
    return JSONResponse(_session(request.principal))


@routes("GET", f"{_SESSIONS}/{{session}}", VIEWER, "Show your session, by its id.", {200: "Session"})
def _get(request: ApiRequest) -> Response:
    session = _session(request.principal)
    if request.path_params["session"] != session["id"]:
        raise forbidden(request.path_params["session"][:200])
    return JSONResponse(session)


def _session(caller: Principal) -> Shape:
    return {
        "id": caller.id.replace(":user:", ":session:"),
        "user": {"name": caller.name, "id": caller.id},
        "org": {"name": caller.org, "id": caller.org_id},
        "roles": [caller.role],
    }


@routes(
    "POST",
    "/login",
    ANYONE,
    "Log in a browser by a token.",
    {303: None},
    request=Body("Login", form=True),
    documented=False,
)
def _browser_log_in(request: ApiRequest) -> Response:
    """Open a session for a browser, and send it to the page."""
    token = request.content.get("token", "").strip()
    if not 0 < len(token) <= auth.LONGEST or request.operations.principal_of(token) is None:
        return pages.sign_in("This token is not valid.", 401)
    response = RedirectResponse("/", 303)
    auth.set_cookie(response, request.app.state.sessions.open(token), request.base.startswith("https:"))
    return response


@routes("POST", "/logout", VIEWER, "Log out a browser.", {204: None}, documented=False)
def _browser_log_out(request: ApiRequest) -> Response:
    request.app.state.sessions.close(request.browser_session)
    response = nothing()
    auth.set_cookie(response, "", request.base.startswith("https:"))
    return response


@routes("GET", "/statecfg/1.0/session", VIEWER, "Show who you are.", {200: "OwnSession"})
def _own_session(request: ApiRequest) -> Response:
    """Answer with the caller and, in a browser session, the value of X-Statecfg-Csrf."""
    caller = request.principal
    csrf = sessions.csrf(request.browser_session) if request.browser_session else ""
    return JSONResponse({"user": caller.name, "org": caller.org, "role": caller.role, "csrf": csrf})
