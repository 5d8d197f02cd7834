"""Who may call each route: requests without a token, with too low a role, and from web pages of other sites."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from statecfg.entities.operations import Operations
from statecfg.server import auth, sessions
from statecfg.server.auth import ADMINISTRATOR, ANYONE, AUTHOR, PERMISSIONS, VIEWER
from statecfg.server.routes import ROUTES
from statecfg.server.routing import ApiRoute
from statecfg.store import opened
from statecfg.store.database import Store
from tests import ROOT
from tests.host.server import scenes
from tests.host.server.serving import Served

# Routes that need no token, and why they reveal nothing.
OPEN = {
    "GET /api/versions",  # clients ask before they log in
    "POST /cloudapi/1.0.0/sessions",  # logging in
    "POST /cloudapi/1.0.0/sessions/provider",
    "POST /api/sessions",
    "POST /oauth/provider/token",
    "POST /oauth/tenant/{org}/token",
    "POST /login",
    "GET /static/{file}",  # the page without data
}
SECRET = "canary7f3a"


def name(route: ApiRoute) -> str:
    return f"{route.method} {route.path}"


every = pytest.mark.parametrize("route", ROUTES, ids=name)
guarded = pytest.mark.parametrize("route", [each for each in ROUTES if each.permission != ANYONE], ids=name)


@pytest.fixture(scope="module")
def filled(served: Served) -> dict[str, str]:
    """Give values for the parameters of paths. Their objects exist and have the name SECRET."""
    with served.client() as client:
        return scenes.one_of_each(client, SECRET)


def asked(client: httpx.Client, route: ApiRoute, filled: dict[str, str], **headers: str) -> httpx.Response:
    """Send a request without a body to a route. The server refuses callers before it reads the body."""
    path = re.sub(r"\{(\w+)\}", lambda found: filled.get(found[1], "page.css"), route.path)
    return client.request(route.method, path, headers=headers)


def refused(answer: httpx.Response, status: int) -> None:
    """Check that an answer is a refusal that reveals nothing."""
    assert answer.status_code == status, answer.text
    assert SECRET not in answer.text + str(answer.headers)
    if answer.headers["content-type"].startswith("application/json"):
        assert set(answer.json()) == {"minorErrorCode", "message", "stackTrace"}
        assert len(answer.content) < 300


@every
def test_each_route_says_who_may_call_it(route: ApiRoute) -> None:
    assert route.permission in PERMISSIONS
    assert (route.permission == ANYONE) == (name(route) in OPEN)


def test_the_documentation_lists_every_route() -> None:
    listed = re.findall(r"^\| `(\w+ /\S*)` \| (\w+) \| (.*) \|$", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert listed == [(name(route), route.permission, route.summary) for route in ROUTES]


def test_no_two_routes_share_method_and_path() -> None:
    assert len({name(route) for route in ROUTES}) == len(ROUTES)


@guarded
def test_guarded_routes_refuse_unauthenticated_callers(served: Served, filled: dict[str, str], route: ApiRoute) -> None:
    with served.client("") as client:
        refused(asked(client, route, filled), 401)
        refused(asked(client, route, filled, Authorization="Bearer " + "x" * 43), 401)
        refused(asked(client, route, filled, Cookie=f"{auth.COOKIE}=nobody"), 401)


@guarded
def test_guarded_routes_refuse_lower_roles(served: Served, filled: dict[str, str], route: ApiRoute) -> None:
    for role in (VIEWER, AUTHOR, ADMINISTRATOR):
        if not auth.allows(route.permission, role):
            with served.client(role) as client:
                refused(asked(client, route, filled), 403)


@every
def test_routes_refuse_requests_from_other_sites(served: Served, filled: dict[str, str], route: ApiRoute) -> None:
    with served.client() as client:
        refused(asked(client, route, filled, Host="attacker.example"), 403)
        refused(asked(client, route, filled, Origin="http://attacker.example"), 403)
        refused(asked(client, route, filled, Origin="null"), 403)
        refused(asked(client, route, filled, Origin="http://127.0.0.1:1"), 403)
        for site in ("cross-site", "same-site"):
            refused(asked(client, route, filled, **{"Sec-Fetch-Site": site}), 403)


def test_unknown_roles_and_permissions_allow_nothing() -> None:
    assert not auth.allows("", ADMINISTRATOR)
    assert not auth.allows("reader", ADMINISTRATOR)
    assert not auth.allows(VIEWER, ANYONE)
    assert not auth.allows(VIEWER, "root")
    assert auth.allows(VIEWER, ADMINISTRATOR)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_unauthenticated_callers_cannot_learn_which_paths_exist(served: Served, method: str) -> None:
    with served.client("") as client:
        refused(client.request(method, "/nowhere"), 401)
        refused(client.request(method, "/cloudapi/1.0.0/interfaces"), 401)
    with served.client() as client:
        refused(client.request(method, "/nowhere"), 404)
        if method not in ("GET", "POST"):
            answer = client.request(method, "/cloudapi/1.0.0/interfaces")
            refused(answer, 405)
            assert answer.headers["allow"] == "GET, HEAD, POST"


def test_tokens_are_accepted_in_each_client_header(served: Served) -> None:
    for header, value in (
        ("Authorization", "bearer {}"),
        ("X-Vcloud-Authorization", "{}"),
        ("X-Vmware-Vcloud-Access-Token", "{}"),
    ):
        with served.client("", **{header: value.format(served.tokens["viewer"])}) as client:
            assert client.get("/statecfg/1.0/session").json()["role"] == "viewer"


@pytest.mark.parametrize(
    ("path", "role", "user", "status"),
    [
        ("sessions", "author", "a-author", 200),
        ("sessions", "author", "a-author@acme", 200),
        ("sessions", "author", "a-viewer", 401),
        ("sessions", "author", "a-author@other", 401),
        ("sessions", "nothing", "a-author", 401),
        ("sessions/provider", "administrator", "a-administrator@System", 200),
        ("sessions/provider", "author", "a-author@acme", 403),
    ],
)
def test_client_login_succeeds_only_with_matching_credentials(
    served: Served, path: str, role: str, user: str, status: int
) -> None:
    with served.client("") as client:
        answer = client.post(f"/cloudapi/1.0.0/{path}", auth=(user, served.tokens.get(role, role)))
    if status != 200:
        refused(answer, status)
        return
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-vmware-vcloud-access-token"] == served.tokens[role]
    assert answer.json()["roles"] == [role]


def test_browser_login_sets_a_session_cookie_and_logout_needs_csrf(served: Served) -> None:
    with served.client("") as client:
        wrong = client.post("/login", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers
        answer = client.post("/login", data={"token": served.tokens["author"]})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and served.tokens["author"] not in cookie
        own = client.get("/statecfg/1.0/session").json()
        assert own["user"] == "a-author"
        refused(client.post("/logout"), 403)
        refused(client.post("/logout", headers={"X-Statecfg-Csrf": "0" * 64}), 403)
        kept = client.cookies[auth.COOKIE]
        assert client.post("/logout", headers={"X-Statecfg-Csrf": own["csrf"]}).status_code == 204
        client.cookies.clear()
        refused(client.get("/statecfg/1.0/session", headers={"Cookie": f"{auth.COOKIE}={kept}"}), 401)


def test_a_wrong_token_is_refused_despite_a_valid_session(served: Served) -> None:
    with served.client("") as client:
        client.post("/login", data={"token": served.tokens["author"]})
        refused(client.get("/statecfg/1.0/session", headers={"Authorization": "Bearer x"}), 401)


def test_failed_logins_wait_longer_each_time() -> None:
    now = 0.0
    delays = auth.Delays(lambda: now)
    waits = [delays.failed("192.0.2.1") for _ in range(20)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.1, 3.0)
    assert delays.failed("192.0.2.2") == 0.1
    now = 61.0
    assert delays.failed("192.0.2.1") == 0.1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(url=str(tmp_path / "store.db")) as found:
        yield found


def test_sessions_end_by_limit_logout_or_age(store: Store) -> None:
    now = 1_000_000.0
    open_sessions = sessions.LoginSessions(store, lambda: now)
    tokens = {name: Operations(store, lambda: now).add_token(name, "shop", "author") for name in ("ann", "ben")}

    def user(cookie: str) -> str | None:
        found = open_sessions.principal(cookie)
        return found.name if found is not None else None

    first = open_sessions.open(tokens["ann"])
    assert user(first) == "ann" and user(first[:-1]) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "MOST", 2)
        ended, *others = [open_sessions.open(tokens["ben"]) for _ in range(3)]
    assert user(first) == "ann", "another user's sessions ended it"
    assert user(ended) is None and [user(each) for each in others] == ["ben", "ben"]
    open_sessions.close(others[0])
    assert user(others[0]) is None and user(others[1]) == "ben"
    last = open_sessions.open(tokens["ann"])
    now += sessions.LIFE
    assert user(last) is None


def test_a_session_survives_a_restart_and_ends_with_its_token(store: Store) -> None:
    calls = Operations(store)
    secret = calls.add_token("ann", "shop", "author")
    cookie = sessions.LoginSessions(store).open(secret)
    restarted = sessions.LoginSessions(store)
    found = restarted.principal(cookie)
    assert found is not None and found.name == "ann"
    assert sessions.matches(cookie, sessions.csrf(cookie)) and not sessions.matches(cookie, sessions.csrf("other"))
    calls.revoke(secret)
    assert restarted.principal(cookie) is None
    assert store.address.path is not None
    kept = store.address.path.read_bytes()
    assert cookie.encode() not in kept and secret.encode() not in kept


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("127.0.0.1:8470", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8470", True),
        ("api.example.com", True),
        ("", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost@evil.example", False),
        ("evil@localhost", False),
        ("localhost:x", False),
        ("localhost/evil", False),
        ("[::1", False),
    ],
)
def test_hosts_are_known_by_name(host: str, fine: bool) -> None:
    guard = auth.OriginGuard.for_address("127.0.0.1", ["API.example.com"])
    assert (guard.refusal({"host": host}) == "") is fine


def test_a_wildcard_address_is_not_a_host_name() -> None:
    assert auth.OriginGuard.for_address("0.0.0.0", ["api.example.com"]).hosts == {*auth.LOOPBACK, "api.example.com"}
