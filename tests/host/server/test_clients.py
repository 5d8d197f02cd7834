"""What clients in Go and Python ask beyond the API's own calls, and the answers that they look for."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import pytest

from tests.host.server import scenes
from tests.host.server.scenes import API, NOOP
from tests.host.server.serving import Served

XML = "{http://www.vmware.com/vcloud/v1.5}"
LEVEL = "urn:vcloud:accessLevel:"
FORBIDDEN = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


@pytest.fixture
def define(served: Served, request: pytest.FixtureRequest) -> tuple[httpx.Client, dict[str, Any], dict[str, Any]]:
    """Give a client, a behavior `ask` of an interface, and a type of that interface, all named after the test."""
    client = served.client(version="37.0")
    request.addfinalizer(client.close)
    nss = re.sub(r"\W", "", request.node.name.removeprefix("test_"))[:60]
    of = scenes.made(client, "interfaces", scenes.interface(nss))
    ask = scenes.made(client, f"interfaces/{of['id']}/behaviors", {"name": "ask", "execution": NOOP})
    return client, ask, scenes.made(client, "entityTypes", scenes.entity_type(nss, (of["id"],)))


def read(client: httpx.Client, address: str) -> ElementTree.Element:
    answer = client.get(address, headers={"Accept": "application/*+xml;version=36.0"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].endswith("+xml;version=36.0")
    return ElementTree.fromstring(answer.content)


@pytest.mark.parametrize(("role", "org"), [("administrator", "System"), ("author", "acme"), ("viewer", "acme")])
def test_a_session_links_to_the_users_organizations(served: Served, role: str, org: str) -> None:
    with served.client(role) as client:
        session = read(client, "/api/session")
        assert (session.tag, session.get("org"), session.get("user")) == (f"{XML}Session", org, f"a-{role}")
        links = {link.get("type"): str(link.get("href")) for link in session if link.get("rel") == "down"}
        found = {
            str(each.get("name")): each for each in read(client, links["application/vnd.vmware.vcloud.orgList+xml"])
        }
        assert list(found) == (["System", "acme"] if role == "administrator" else [org])
        assert {each.tag for each in found.values()} == {f"{XML}Org"}
        assert found[org].get("href") == links["application/vnd.vmware.vcloud.org+xml"]
        for name, each in found.items():
            assert read(client, str(each.get("href"))).get("name") == name
        other = client.get("/api/org/00000000-0000-0000-0000-000000000000", headers={"Accept": "application/*+xml"})
        assert (other.status_code, ElementTree.fromstring(other.content).get("minorErrorCode")) == (403, FORBIDDEN)


def test_the_older_api_also_answers_in_json(served: Served) -> None:
    """The SDK for UI plug-ins asks for the versions without naming one, then for the session."""
    accept = "application/*+json;version={0};multisite=local,application/json;version={0}"
    with served.client("", **{"Content-Type": "application/*+json"}) as client:
        versions = client.get("/api/versions", headers={"Accept": accept.format("")}).json()["versionInfo"]
        headers = {"Accept": accept.format(versions[-1]["version"])}
        login = client.post("/api/sessions", auth=("a-author@acme", served.tokens["author"]), headers=headers)
        assert (login.status_code, login.json()["org"], login.json()["user"]) == (200, "acme", "a-author")
        given = [login.headers[f"x-vmware-vcloud-{name}"] for name in ("token-type", "access-token")]
        assert given == ["Bearer", served.tokens["author"]]
        headers["Authorization"] = " ".join(given)
        session = client.get("/api/session", headers=headers)
        assert session.json() == login.json() and session.headers["content-type"] == "application/json;version=39.1"
        listed = client.get("/api/org", headers=headers).json()["org"]
        assert [each["name"] for each in listed] == ["acme"]
        assert client.get(listed[0]["href"], headers=headers).json() == {**listed[0], "fullName": "acme"}
        for user in ("a-author@other", "a-viewer@acme"):
            assert client.post("/api/sessions", auth=(user, served.tokens["author"])).status_code == 401


def test_logging_out_keeps_the_token_valid(served: Served) -> None:
    with served.client("author") as client:
        own = client.get(f"{API}/sessions/current").json()["id"]
        paths = ("/api/session", *(f"{API}/sessions{end}" for end in ("", "/provider", "/current", f"/{own}")))
        assert [client.delete(path).status_code for path in paths] == [204] * 5
        assert client.delete(f"{API}/sessions/urn:vcloud:session:other").status_code == 403
        assert client.get("/api/session").status_code == 200


@pytest.mark.parametrize(
    ("path", "role", "kind", "status"),
    [
        ("provider", "administrator", "refresh_token", 200),
        ("tenant/acme", "author", "refresh_token", 200),
        ("tenant/ACME", "viewer", "refresh_token", 200),
        ("provider", "author", "refresh_token", 401),
        ("tenant/other", "author", "refresh_token", 401),
        ("tenant/acme", "nobody", "refresh_token", 401),
        ("provider", "administrator", "password", 400),
    ],
)
def test_oauth_exchanges_a_valid_token_for_itself(served: Served, path: str, role: str, kind: str, status: int) -> None:
    token = served.tokens.get(role, role)
    with served.client("") as client:
        answer = client.post(f"/oauth/{path}/token", data={"grant_type": kind, "refresh_token": token})
    assert answer.status_code == status, answer.text
    if status == 200:
        given = answer.json()
        assert (given["access_token"], given["token_type"]) == (token, "Bearer") and given["expires_in"] > 0
    else:
        assert token not in answer.text


def test_sessions_and_access_levels_are_listed(served: Served) -> None:
    with served.client("viewer") as client:
        (own,) = client.get(f"{API}/sessions?page=1&pageSize=25").json()["values"]
        assert own == client.get(f"{API}/sessions/current").json() == client.get(f"{API}/sessions/{own['id']}").json()
        assert client.get(f"{API}/sessions/urn:vcloud:session:other").status_code == 403
        levels = client.get(f"{API}/accessLevels").json()["values"]
        assert [each["id"] for each in levels] == [LEVEL + name for name in ("ReadOnly", "ReadWrite", "FullControl")]
        assert client.get(f"{API}/accessLevels/{LEVEL}ReadWrite").json() == levels[1]
        assert client.get(f"{API}/accessLevels/{LEVEL}Other").status_code == 403


def test_all_behaviors_are_replaced_at_once(served: Served) -> None:
    with served.client() as client:
        of = scenes.made(client, "interfaces", scenes.interface("replaced"))
        path = f"{API}/interfaces/{of['id']}/behaviors"
        first, _ = (scenes.made(client, path.removeprefix(f"{API}/"), {"name": n, "execution": NOOP}) for n in "ab")
        values = [{**first, "description": "mine"}, {"name": "c", "execution": NOOP}]
        replaced = client.put(path, json={"resultTotal": 2, "values": values})
        assert replaced.status_code == 200, replaced.text
        assert replaced.json()["values"] == client.get(path).json()["values"]
        assert [(each["name"], each["description"]) for each in replaced.json()["values"]] == [
            ("a", "mine"),
            ("c", None),
        ]
        scenes.made(client, "entityTypes", scenes.entity_type("replaced", (of["id"],)))
        refused = client.put(path, json={"values": values[:1]})
        assert (refused.status_code, refused.json()["minorErrorCode"]) == (409, "RDE_IN_USE")
        names = [{"name": each["name"], "execution": NOOP} for each in replaced.json()["values"]]
        assert [each["description"] for each in client.put(path, json={"values": names}).json()["values"]] == [None] * 2


def test_entities_of_all_type_versions_are_listed(define: Any) -> None:
    client, _, kind = define
    newer = scenes.made(client, "entityTypes", {**scenes.entity_type(kind["nss"]), "version": "2.0.0"})
    ids = [scenes.created(client, id, "one", {"foo": "x"}) for id in (kind["id"], newer["id"])]
    found = client.get(f"{API}/entities/types/acme/{kind['nss']}?filter=name==one").json()["values"]
    assert [each["id"] for each in found] == ids


def test_the_provider_creates_entities_for_an_organization(served: Served, define: Any) -> None:
    client, _, kind = define
    with served.client("author") as author:
        acme = author.get(f"{API}/sessions/current").json()["org"]
        body = {"name": "theirs", "entity": {"foo": "x"}}
        for context in (acme["id"], acme["id"].rpartition(":")[2], "unknown", "-"):
            headers = {"X-VMWARE-VCLOUD-TENANT-CONTEXT": context}
            made = client.post(f"{API}/entityTypes/{kind['id']}", json=body, headers=headers)
            entity = client.get(f"{API}/entities/{client.get(made.headers['location']).json()['owner']['id']}").json()
            assert entity["org"]["name"] == ("acme" if context.endswith(acme["id"][-8:]) else "System")
            assert entity["owner"]["name"] == "a-administrator"
            assert author.get(f"{API}/entities/{entity['id']}").status_code == 403
        listed = client.get(f"{API}/entities/types/acme/{kind['nss']}/1?filter=org.name==acme").json()
        assert listed["resultTotal"] == 2


def test_an_unknown_behavior_of_an_interface_is_refused(define: Any) -> None:
    client, ask, _ = define
    path = f"{API}/interfaces/{ask['id'].replace('behavior-interface:ask', 'interface')}/behaviors"
    for call in (client.get, client.delete):
        answer = call(f"{path}/urn:vcloud:behavior-interface:none:none:none:9.9.9")
        assert (answer.status_code, answer.json()["minorErrorCode"]) == (403, FORBIDDEN)
    other = client.put(f"{path}/{ask['id']}", json={"id": ask["id"], "name": "x", "ref": "x", "execution": NOOP})
    assert (other.status_code, other.json()["name"], other.json()["ref"]) == (200, "ask", ask["id"])


def test_a_partial_type_change_keeps_omitted_values(define: Any) -> None:
    client, ask, kind = define
    path = f"{API}/entityTypes/{kind['id']}"
    whole = client.put(path, json={**kind, "hooks": {"PostUpdate": ask["id"]}, "externalId": "e"}).json()
    names = ("name", "schema", "vendor", "nss", "version")
    changed = client.put(path, json={**{key: kind[key] for key in names}, "description": "other"})
    assert (changed.status_code, changed.json()) == (200, {**whole, "description": "other"})
    nothing = client.put(path, json={**whole, "hooks": None, "interfaces": [], "externalId": None}).json()
    assert (nothing["hooks"], nothing["interfaces"], nothing["externalId"]) == (None, [], None)


def test_behavior_access_controls_keep_the_given_id(define: Any) -> None:
    client, ask, kind = define
    path = f"{API}/entityTypes/{kind['id']}"
    entity = scenes.created(client, kind["id"], "one", {"foo": "x"}, resolveEntity="true")
    override = client.put(f"{path}/behaviors/{ask['id']}", json={"name": "other", "execution": NOOP}).json()
    assert (override["name"], override["ref"]) == ("ask", ask["id"]) and override["id"] != ask["id"]
    for id in (ask["id"], override["id"]):
        wanted = [{"behaviorId": id, "accessLevelId": LEVEL + "ReadOnly"}]
        # Clients send the values inside a page, as they received them.
        page = {"resultTotal": 0, "pageCount": 0, "page": 0, "pageSize": 0, "values": wanted}
        assert client.put(f"{path}/behaviorAccessControls", json=page).status_code == 200
        assert client.get(f"{path}/behaviorAccessControls").json()["values"] == wanted
        for invoked in (ask["id"], override["id"]):
            invocation = client.post(f"{API}/entities/{entity}/behaviors/{invoked}/invocations", json={})
            assert invocation.status_code == 202, invocation.text
            task = scenes.finished(client, invocation.headers["location"])
            assert json.loads(task["result"]["resultContent"])["entityId"] == entity
    several = [{**wanted[0], "accessLevelId": LEVEL + level} for level in ("ReadWrite", "FullControl")]
    assert client.put(f"{path}/behaviorAccessControls", json={"values": several}).json()["values"] == several
    again = {"behaviorId": ask["id"], "accessLevelId": LEVEL + "FullControl"}
    assert client.post(f"{path}/behaviorAccessControls", json=again).status_code == 201
    assert client.get(f"{path}/behaviorAccessControls").json()["values"] == [again]
    client.put(f"{path}/behaviorAccessControls", json={"values": wanted})
    assert client.delete(f"{path}/behaviors/{ask['id']}").status_code == 204
    assert client.get(f"{path}/behaviorAccessControls").json()["values"] == [{**wanted[0], "behaviorId": ask["id"]}]


def test_filters_may_be_encoded_once_or_twice(define: Any) -> None:
    client, _, kind = define
    for name in ("a b&c", "50% off", "plain"):
        scenes.created(client, kind["id"], name, {"foo": "x"})
    path = f"{API}/entities/types/acme/{kind['nss']}/1.0.0"
    for wanted in ("name==a b&c", "name==plain", "(name==50% off)", "name==plain;state==PRE_CREATED"):
        once = quote(wanted, safe="")
        for query in (once, f"{once}&filterEncoded=true", f"{quote(once)}&filterEncoded=true&links=true"):
            answer = client.get(f"{path}?filter={query}")
            assert (answer.status_code, answer.json().get("resultTotal")) == (200, 1), answer.text
    assert client.get(f"{path}?filter={quote(quote('name==plain'))}").status_code == 400


def test_ids_in_paths_may_be_encoded(define: Any) -> None:
    client, _, kind = define
    assert client.get(f"{API}/entityTypes/{quote(kind['id'], safe='')}").json() == kind
    body = {"name": "one", "entity": {"foo": "x"}}
    answer = client.post(f"{API}/entityTypes/{quote(kind['id'], safe='')}/", json=body)
    assert answer.status_code == 202, answer.text
