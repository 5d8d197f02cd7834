"""What clients ask on logging in and out, besides `api_sessions`: the older API's session, and tokens by OAuth."""

from __future__ import annotations

from dataclasses import replace

from statecfg.entities.model import org_id
from statecfg.entities.problems import ApiError, forbidden
from statecfg.server import api_sessions, auth, writing
from statecfg.server.exchange import ANYONE, VIEWER, Answer, Asked, Handler, Route

_SESSIONS = "/cloudapi/1.0.0/sessions"
_LASTS = 3600  # seconds after which clients ask for a token again; ours may last longer


def _session(asked: Asked) -> Answer:
    value = writing.session(asked)
    return Answer(200, writing.session_xml(value), media_type=writing.SESSION_XML) if asked.xml else Answer(200, value)


def _log_in(asked: Asked) -> Answer:
    """Log in as to the API's own sessions, and answer as the older API does."""
    logged_in = api_sessions.logged_in(asked)
    answer = _session(replace(asked, caller=logged_in.caller))
    return replace(answer, headers={**logged_in.headers, "x-vcloud-authorization": logged_in.token})


def _orgs(asked: Asked) -> Answer:
    value = writing.orgs(asked, asked.operations.orgs(asked.principal))
    return Answer(200, writing.orgs_xml(value), media_type=writing.ORGS_XML) if asked.xml else Answer(200, value)


def _org(asked: Asked) -> Answer:
    for name in asked.operations.orgs(asked.principal):
        if asked.path["org"] == org_id(name).rpartition(":")[2]:
            value = writing.org(asked, name)
            return Answer(200, writing.org_xml(value), media_type=writing.ORG_XML) if asked.xml else Answer(200, value)
    raise forbidden(asked.path["org"][:200])


def _log_out(asked: Asked) -> Answer:
    """Say that a session has ended: there is none, the token that the client was given is the user's own."""
    own = asked.principal.id.replace(":user:", ":session:")
    if asked.path.get("session", own) != own:
        raise forbidden(asked.path["session"][:200])
    return Answer(204)


def _token(asked: Asked) -> Answer:
    """Give a token for a token, which is the same: what is a refresh token to clients needs no refreshing here."""
    if asked.body.get("grant_type") != "refresh_token":
        raise ApiError(400, "unsupported_grant_type", "grant_type has to be refresh_token.")
    token = asked.body.get("refresh_token", "")
    caller = asked.operations.principal_of(token) if 0 < len(token) <= auth.LONGEST else None
    wanted = asked.path.get("org")
    right = caller is not None and (caller.is_administrator if wanted is None else caller.org.lower() == wanted.lower())
    if not right:
        raise ApiError(401, "invalid_grant", "The token is not valid.")
    return Answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": _LASTS, "refresh_token": token})


def _tokens(path: str, whose: str) -> Route:
    summary = f"Get a token for {whose}, by a token."
    return Route("POST", path, ANYONE, _token, summary, {200: "GivenToken"}, (), "AskedToken", form=True)


def _older(
    method: str, path: str, permission: str, handler: Handler, summary: str, document: str, xml_type: str
) -> Route:
    """Return a route of the older API, which answers in XML unless it is asked for JSON."""
    return Route(method, path, permission, handler, summary, {200: document}, xml="default", xml_type=xml_type)


ROUTES = (
    _older("GET", "/api/session", VIEWER, _session, "Show who is logged in.", "ApiSession", writing.SESSION_XML),
    _older("POST", "/api/sessions", ANYONE, _log_in, "Log in as older clients do.", "ApiSession", writing.SESSION_XML),
    _older("GET", "/api/org", VIEWER, _orgs, "List the organizations one may see.", "Orgs", writing.ORGS_XML),
    _older("GET", "/api/org/{org}", VIEWER, _org, "Show an organization.", "Org", writing.ORG_XML),
    *(
        Route("DELETE", path, VIEWER, _log_out, "Log out. The token stays valid.", {204: None})
        for path in (
            "/api/session",
            _SESSIONS,
            f"{_SESSIONS}/provider",
            f"{_SESSIONS}/current",
            f"{_SESSIONS}/{{session}}",
        )
    ),
    _tokens("/oauth/provider/token", "an administrator"),
    _tokens("/oauth/tenant/{org}/token", "a user of an organization"),
)
