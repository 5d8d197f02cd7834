"""Login and logout for clients of the older API, and tokens by OAuth."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from statecfg.entities.model import Principal, org_id
from statecfg.entities.problems import ApiError, forbidden
from statecfg.server import api_sessions, auth, writing
from statecfg.server.auth import ANYONE, VIEWER
from statecfg.server.media import Body, Xml
from statecfg.server.request import ApiRequest
from statecfg.server.responses import json_or_xml, nothing
from statecfg.server.routing import Routes

routes = Routes()
_SESSIONS = "/cloudapi/1.0.0/sessions"
_LIFE = 3600  # seconds after which clients request a token again; ours may be valid for longer


@routes(
    "GET",
    "/api/session",
    VIEWER,
    "Show your session as older clients expect it.",
    {200: "ApiSession"},
    xml=Xml(writing.SESSION_XML, default=True),
)
def _get_session(request: ApiRequest) -> Response:
    return _session(request, request.principal)


@routes(
    "POST",
    "/api/sessions",
    ANYONE,
    "Log in as older clients do.",
    {200: "ApiSession"},
    xml=Xml(writing.SESSION_XML, default=True),
)
def _log_in(request: ApiRequest) -> Response:
    user = api_sessions.logged_in(request)
    response = _session(request, user.caller)
    response.headers.update({**user.headers, "x-vcloud-authorization": user.token})
    return response


def _session(request: ApiRequest, caller: Principal) -> Response:
    return json_or_xml(request, writing.session(request, caller), writing.session_xml, writing.SESSION_XML)


@routes(
    "GET",
    "/api/org",
    VIEWER,
    "List the organizations that you may see.",
    {200: "Orgs"},
    xml=Xml(writing.ORGS_XML, default=True),
)
def _list_orgs(request: ApiRequest) -> Response:
    value = writing.orgs(request, request.operations.orgs(request.principal))
    return json_or_xml(request, value, writing.orgs_xml, writing.ORGS_XML)


@routes(
    "GET",
    "/api/org/{org}",
    VIEWER,
    "Show an organization.",
    {200: "Org"},
    xml=Xml(writing.ORG_XML, default=True),
)
def _get_org(request: ApiRequest) -> Response:
    given = request.path_params["org"]
    for name in request.operations.orgs(request.principal):
        if given == org_id(name).rpartition(":")[2]:
            return json_or_xml(request, writing.org(request, name), writing.org_xml, writing.ORG_XML)
    raise forbidden(given[:200])


def _log_out(request: ApiRequest) -> Response:
    """Confirm the logout. The server has no session to end, and the client's token stays valid."""
    own = request.principal.id.replace(":user:", ":session:")
    if request.path_params.get("session", own) != own:
        raise forbidden(request.path_params["session"][:200])
    return nothing()


for _path in (
    "/api/session",
    _SESSIONS,
    f"{_SESSIONS}/provider",
    f"{_SESSIONS}/current",
    f"{_SESSIONS}/{{session}}",
):
    routes("DELETE", _path, VIEWER, "Log out. The token stays valid.", {204: None})(_log_out)


@routes(
    "POST",
    "/oauth/provider/token",
    ANYONE,
    "Get an access token for an administrator, by a refresh token.",
    {200: "GivenToken"},
    request=Body("AskedToken", form=True),
)
@routes(
    "POST",
    "/oauth/tenant/{org}/token",
    ANYONE,
    "Get an access token for a user of an organization, by a refresh token.",
    {200: "GivenToken"},
    request=Body("AskedToken", form=True),
)
def _token(request: ApiRequest) -> Response:
    """Answer with the token that was given: tokens of statecfg are both refresh tokens and access tokens."""
    if request.content.get("grant_type") != "refresh_token":
        raise ApiError(400, "unsupported_grant_type", "grant_type must be refresh_token.")
    token = request.content.get("refresh_token", "")
    caller = request.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None
    org = request.path_params.get("org")
    if caller is None or not (caller.is_administrator if org is None else caller.org.lower() == org.lower()):
        raise ApiError(401, "invalid_grant", "The token is not valid.")
    return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": _LIFE, "refresh_token": token})
