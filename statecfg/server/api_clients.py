"""What clients ask on logging in and out, besides `api_sessions`: the older API's session, and tokens by OAuth."""

from __future__ import annotations

from statecfg.entities.model import org_id
from statecfg.entities.problems import ApiError, forbidden
from statecfg.server import auth, writing
from statecfg.server.exchange import ANYONE, VIEWER, Answer, Asked, Route

_SESSIONS = "/cloudapi/1.0.0/sessions"
_LASTS = 3600  # seconds after which clients ask for a token again; ours may last longer


def _session(asked: Asked) -> Answer:
    return Answer(200, writing.session_xml(asked.base, asked.principal), media_type=writing.SESSION_XML)


def _orgs(asked: Asked) -> Answer:
    return Answer(
        200, writing.orgs_xml(asked.base, asked.operations.orgs(asked.principal)), media_type=writing.ORGS_XML
    )


def _org(asked: Asked) -> Answer:
    for org in asked.operations.orgs(asked.principal):
        if asked.path["org"] == org_id(org).rpartition(":")[2]:
            return Answer(200, writing.org_xml(asked.base, org), media_type=writing.ORG_XML)
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


ROUTES = (
    Route(
        "GET",
        "/api/session",
        VIEWER,
        _session,
        "Show who is logged in (XML).",
        {200: "Document"},
        media_type=writing.SESSION_XML,
    ),
    Route(
        "GET",
        "/api/org",
        VIEWER,
        _orgs,
        "List the organizations one may see (XML).",
        {200: "Document"},
        media_type=writing.ORGS_XML,
    ),
    Route(
        "GET",
        "/api/org/{org}",
        VIEWER,
        _org,
        "Show an organization (XML).",
        {200: "Document"},
        media_type=writing.ORG_XML,
    ),
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
