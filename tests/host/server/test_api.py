"""What clients of the original expect of each call: statuses, headers, codes of errors, and forms of answers."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from statecfg.entities.model import user_id
from tests.host.server import scenes
from tests.host.server.scenes import API, NOOP
from tests.host.server.serving import Served

LEVEL = "urn:vcloud:accessLevel:"
XML = "{http://www.vmware.com/vcloud/v1.5}"


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """Check that a request was refused with this status and code. Return the message."""
    body = answer.json()
    assert (answer.status_code, body["minorErrorCode"], body["stackTrace"]) == (status, code, None), answer.text
    return str(body["message"])


@pytest.fixture
def define(served: Served, request: pytest.FixtureRequest) -> tuple[httpx.Client, dict[str, Any], dict[str, Any]]:
    """Give a client, an interface with the behavior `ask`, and a type, all named after the test."""
    client = served.client()
    request.addfinalizer(client.close)
    nss = re.sub(r"\W", "", request.node.name.removeprefix("test_"))[:60]
    of = scenes.made(client, "interfaces", scenes.interface(nss))
    scenes.made(client, f"interfaces/{of['id']}/behaviors", {"name": "ask", "execution": NOOP})
    return client, of, scenes.made(client, "entityTypes", scenes.entity_type(nss, (of["id"],)))


def test_an_entity_is_resolved_only_with_valid_content(define: Any) -> None:
    client, _, kind = define
    answer = client.post(f"{API}/entityTypes/{kind['id']}", json={"name": "one", "entity": {"size": 1}})
    assert (answer.status_code, answer.content) == (202, b"")
    task = client.get(answer.headers["location"]).json()
    assert (task["status"], task["operationName"], task["progress"]) == ("running", "createDefinedEntity", 1)
    path = f"{API}/entities/{task['owner']['id']}"
    refused(client.delete(path), 409, "RDE_ENTITY_NOT_RESOLVED")

    resolved = client.post(f"{path}/resolve")
    first = resolved.headers["etag"]
    assert (resolved.status_code, resolved.json()["entityState"]) == (200, "RESOLUTION_ERROR")
    assert first and "foo" in resolved.json()["message"]

    body = {**client.get(path).json(), "entity": {"foo": "bar"}}
    changed = client.put(path, json=body, headers={"If-Match": first})
    second = changed.headers["etag"]
    assert (changed.status_code, changed.json()["entityState"]) == (200, "RESOLUTION_ERROR")
    assert second not in ("", first)

    resolved = client.post(f"{path}/resolve/")
    assert resolved.json()["entityState"] == "RESOLVED"
    assert resolved.headers["etag"] not in (first, second)
    # The creation's task ended when the first resolution failed.
    assert client.get(answer.headers["location"]).json()["status"] == "error"

    refused(client.put(path, json=body, headers={"If-Match": first}), 412, "PRECONDITION_FAILED")
    deleted = client.delete(path)
    assert (deleted.status_code, deleted.content) == (202, b"")
    assert scenes.finished(client, deleted.headers["location"])["status"] == "success"
    refused(client.get(path), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")


def test_behaviors_of_interfaces_are_read_and_changed(define: Any) -> None:
    client, of, _ = define
    path = f"{API}/interfaces/{of['id']}/behaviors"
    id = f"urn:vcloud:behavior-interface:ask:acme:{of['nss']}:1.0.0"
    found = client.get(f"{path}/{id}").json()
    assert (found["id"], found["ref"], found["name"]) == (id, id, "ask")
    refused(client.post(path, json={"name": "ask", "execution": NOOP}), 409, "RDE_BEHAVIOR_ALREADY_EXISTS")
    execution = {"type": "Activity", "id": "else"}
    changed = client.put(f"{path}/{id}", json={**found, "description": "other", "execution": execution}).json()
    assert (changed["id"], changed["ref"], changed["name"]) == (id, id, "ask")
    assert (changed["description"], changed["execution"]) == ("other", execution)


def test_a_type_overrides_and_restores_a_behavior(define: Any) -> None:
    client, of, kind = define
    path = f"{API}/entityTypes/{kind['id']}/behaviors"
    (known,) = client.get(path).json()["values"]
    assert known == client.get(f"{API}/interfaces/{of['id']}/behaviors").json()["values"][0]
    override = client.put(f"{path}/{known['id']}", json={**known, "description": "mine"}).json()
    assert override["id"] == f"urn:vcloud:behavior-type:ask:acme:{of['nss']}:1.0.0:acme:{of['nss']}:1.0.0"
    assert (override["ref"], override["name"]) == (known["id"], "ask")
    for id in (override["id"], override["ref"]):
        assert client.get(f"{path}/{id}").json() == override
    refused(client.get(f"{path}/{known['id']}x"), 404, "RDE_INVALID_BEHAVIOR_SCOPE")
    assert client.delete(f"{path}/{known['id']}").status_code == 204
    assert client.get(path).json()["values"] == [known]


def test_invoking_a_behavior_needs_an_access_control(define: Any, served: Served) -> None:
    client, of, kind = define
    entity = scenes.created(client, kind["id"], "one", {"foo": "x"}, resolveEntity="true")
    id = f"urn:vcloud:behavior-interface:ask:acme:{of['nss']}:1.0.0"
    path = f"{API}/entities/{entity}/behaviors/{id}/invocations"
    refused(client.post(path), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
    acl = f"{API}/entityTypes/{kind['id']}/behaviorAccessControls"
    wanted = [{"behaviorId": id, "accessLevelId": LEVEL + "ReadOnly"}]
    assert client.put(acl, json={"values": wanted}).json()["values"] == wanted
    assert client.get(f"{acl}/").json()["values"] == wanted
    answer = client.post(path, json={"arguments": {"a": 1}, "metadata": {}})
    assert (answer.status_code, answer.content) == (202, b"")
    task = scenes.finished(client, answer.headers["location"])
    assert json.loads(task["result"]["resultContent"])["entityId"] == entity
    assert client.post(path, headers={"Content-Type": "application/json"}).status_code == 202
    assert client.put(acl, json={"values": []}).json()["values"] == []
    refused(client.post(path), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")


def test_tenants_get_only_the_granted_access(define: Any, served: Served) -> None:
    client, _, kind = define
    entity = scenes.created(client, kind["id"], "one", {"foo": "x"}, resolveEntity="true")
    path = f"{API}/entities/{entity}"
    with served.client("author") as tenant:
        for name, body in (("interfaces", scenes.interface()), ("entityTypes", scenes.entity_type())):
            refused(tenant.post(f"{API}/{name}", json=body), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
        refused(tenant.get(path), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
        given = {"grantType": "MembershipAccessControlGrant", "memberId": user_id("a-author", "acme")}
        grant = client.post(f"{path}/accessControls/", json={**given, "accessLevelId": LEVEL + "ReadWrite"})
        assert (grant.status_code, grant.json()["objectId"]) == (201, entity)
        assert tenant.get(path).status_code == 200
        body = tenant.get(path).json()
        refused(tenant.delete(path, params={"invokeHooks": "false"}), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
        answer = tenant.put(path, json=body, params={"invokeHooks": "false"})
        refused(answer, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
        assert client.delete(f"{path}/accessControls/{grant.json()['id']}").status_code == 204
        refused(tenant.get(path), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")


def test_users_cannot_read_how_a_behavior_runs(define: Any, served: Served) -> None:
    client, of, kind = define
    path = f"{API}/interfaces/{of['id']}/behaviors/urn:vcloud:behavior-interface:ask:acme:{of['nss']}:1.0.0"
    execution = {"type": "WebHook", "id": "hook", "href": "https://inside.example/", "_internal_key": "k"}
    changed = client.put(path, json={**client.get(path).json(), "execution": execution})
    assert changed.json()["execution"] == {"type": "WebHook", "id": "hook", "href": "https://inside.example/"}
    given = {"grantType": "MembershipAccessControlGrant", "memberId": user_id("a-author", "acme")}
    level = {"accessLevelId": LEVEL + "FullControl"}
    assert client.post(f"{API}/entityTypes/{kind['id']}/accessControls", json={**given, **level}).status_code == 201
    with served.client("author") as tenant:
        of_type = f"{API}/entityTypes/{kind['id']}/behaviors"
        found = [tenant.get(path), tenant.get(of_type), tenant.get(f"{of_type}/{changed.json()['id']}")]
    for answer in found:
        assert answer.status_code == 200 and "inside.example" not in answer.text, answer.text
    assert found[0].json()["execution"] == {"type": "WebHook", "id": "hook"}


@pytest.mark.parametrize(("version", "new"), [("36.0", False), ("37.0", False), ("37.1", True), ("39.1", True)])
def test_answers_have_the_keys_of_their_api_version(define: Any, served: Served, version: str, new: bool) -> None:
    client, _, kind = define
    entity = scenes.created(client, kind["id"], "one", {"foo": "x"}, resolveEntity="true")
    with served.client(version=version) as old:
        answer = old.get(f"{API}/entities/{entity}")
        assert answer.headers["content-type"] == f"application/json;version={version}"
        assert [key for key in answer.json() if "tate" in key] == ["state", *(["entityState"] if new else [])]
        resolved = old.post(f"{API}/entities/{entity}/resolve").json()
        assert "message" in resolved and ("entityType" in resolved) is new


@pytest.mark.parametrize("version", ["34.0", "99.0", "x", "36", "36.0.0-alpha"])
def test_unknown_api_versions_are_refused(served: Served, version: str) -> None:
    with served.client(version=version) as client:
        message = refused(client.get(f"{API}/interfaces"), 406, "UNSUPPORTED_API_VERSION")
    assert "36.0" in message and "39.1" in message


def test_lists_are_paged_sorted_and_filtered(define: Any) -> None:
    client, _, kind = define
    for number in range(5):
        scenes.created(client, kind["id"], f"e{number}", {"foo": "x", "size": number})
    path = f"{API}/entities/types/acme/{kind['nss']}/1"
    seen: list[str] = []
    answer = client.get(path, params={"pageSize": 2, "sortDesc": "name", "filter": "name!=e3"})
    assert {key: answer.json()[key] for key in ("resultTotal", "pageCount", "page", "pageSize")} == {
        "resultTotal": 4,
        "pageCount": 2,
        "page": 1,
        "pageSize": 2,
    }
    seen += [each["name"] for each in answer.json()["values"]]
    assert answer.links["next"]["url"] == answer.links["nextPage"]["url"]
    answer = client.get(answer.links["nextPage"]["url"])
    seen += [each["name"] for each in answer.json()["values"]]
    assert seen == ["e4", "e2", "e1", "e0"] and "link" not in answer.headers
    assert client.get(path, params={"page": 9}).json()["values"] == []
    for wanted in ("(entity.size=gt=2)", "name==e3,name==e4", "(name==e3,name==e4);entityState==PRE_CREATED"):
        assert client.get(path, params={"filter": wanted, "sortAsc": "name"}).json()["resultTotal"] == 2
    refused(client.get(path, params={"filter": "nome==e1"}), 400, "INVALID_FILTER")
    refused(client.get(path, params={"sortAsc": "nome"}), 400, "INVALID_FILTER")


@pytest.mark.parametrize(
    "query", ["page=0", "page=x", "pageSize=129", "page=1&page=2", "invokeHook=false", "filter=%ff", "page=" + "9" * 99]
)
def test_wrong_queries_are_refused(served: Served, query: str) -> None:
    with served.client() as client:
        refused(client.get(f"{API}/interfaces?{query}"), 400, "BAD_REQUEST")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "needs a body"),
        (b"{", 400, "not JSON"),
        (b"\xff{}", 400, "UTF-8"),
        (b'{"name": "a", "name": "b"}', 400, "twice"),
        (b'{"name": NaN}', 400, "NaN"),
        (b'{"name": -Infinity}', 400, "Infinity"),
        (b'{"name": 1e999}', 400, "too large"),
        (b'{"name": ' + b"9" * 5000 + b"}", 400, "digits"),
        (b'{"name": "\\ud800"}', 400, "surrogate"),
        (b"[" * 5000 + b"]" * 5000, 400, "nests"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "nests"),
        (b"[]", 400, "object"),
        (b'{"name": "x"}', 400, "required"),
        (b'"' + b"x" * (1 << 20) + b'"', 413, "larger"),
    ],
)
def test_wrong_bodies_are_refused(served: Served, body: bytes, status: int, says: str) -> None:
    with served.client(**{"Content-Type": "application/json"}) as client:
        answer = client.post(f"{API}/interfaces", content=body)
    assert answer.status_code == status and says in answer.json()["message"], answer.text


@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "jsonp"]
)
def test_bodies_with_a_wrong_content_type_are_refused(served: Served, kind: str) -> None:
    with served.client(**{"Content-Type": kind}) as client:
        refused(client.post(f"{API}/interfaces", content=b"{}"), 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_without_a_declared_size_is_bounded(served: Served) -> None:
    with served.client(**{"Content-Type": "application/json"}) as client:
        answer = client.post(f"{API}/interfaces", content=(b" " * 65536 for _ in range(20)))
    assert answer.status_code == 413


def test_answers_have_security_headers(served: Served) -> None:
    with served.client() as client:
        headers = client.get(f"{API}/interfaces").headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert headers["x-vmware-vcloud-request-id"] and "server" not in headers


def test_head_answers_like_get_without_a_body(served: Served) -> None:
    with served.client() as client:
        answer = client.head(f"{API}/interfaces")
    assert answer.status_code == 200 and not answer.content and int(answer.headers["content-length"]) > 0


def test_go_clients_log_in_and_follow_xml_tasks(define: Any, served: Served) -> None:
    _, _, kind = define
    with served.client("", Accept="*/*") as nobody:
        found = ElementTree.fromstring(nobody.get("/api/versions").content)
    space = "{http://www.vmware.com/vcloud/versions}"
    login = {each.findtext(f"{space}Version"): each.findtext(f"{space}LoginUrl") for each in found}
    assert {"35.0", "36.0", "37.0", "37.1", "38.0", "39.0"} <= set(login)
    with served.client("", Accept="application/*;version=37.0") as nobody:
        user = "a-administrator@System"
        answer = nobody.post(f"{login['37.0']}/provider", auth=(user, served.tokens["administrator"]))
    token = answer.headers["x-vmware-vcloud-access-token"]
    assert len(token) > 32
    more = {"Authorization": f"bearer {token}", "X-Vmware-Vcloud-Access-Token": token}
    with served.client(
        "", **more, Accept="application/json;version=37.1", **{"Content-Type": "application/json"}
    ) as go:
        answer = go.post(f"{API}/entityTypes/{kind['id']}", json={"name": "go", "entity": {"foo": "<&\x01>"}})
        assert answer.status_code == 202
        task = go.get(answer.headers["location"], headers={"Accept": "application/*+xml;version=37.0"})
        assert task.headers["content-type"] == "application/vnd.vmware.vcloud.task+xml;version=37.0"
        seen = ElementTree.fromstring(task.content)
        assert (seen.tag, seen.get("operationName"), seen.get("status")) == (
            f"{XML}Task",
            "createDefinedEntity",
            "running",
        )
        owner = seen.find(f"{XML}Owner")
        assert owner is not None
        listed = go.get(f"{API}/entities/types/acme/{kind['nss']}/1.0.0?filter=name%3D%3Dgo&pageSize=128").json()
        assert [each["id"] for each in listed["values"]] == [owner.get("id")]
        missing = go.get("/api/task/nothing", headers={"Accept": "application/*+xml;version=37.0"})
        assert (missing.status_code, ElementTree.fromstring(missing.content).tag) == (403, f"{XML}Error")


def test_task_links_use_the_clients_host_name(define: Any, served: Served) -> None:
    client, _, kind = define
    port = served.url.rpartition(":")[2]
    body = {"name": "one", "entity": {"foo": "x"}}
    answer = client.post(f"{API}/entityTypes/{kind['id']}", json=body, headers={"Host": f"localhost:{port}"})
    assert answer.headers["location"].startswith(f"http://localhost:{port}/api/task/")


def test_a_partial_change_keeps_omitted_values(define: Any) -> None:
    client, _, kind = define
    path = f"{API}/entities/{scenes.created(client, kind['id'], 'one', {'foo': 'x'}, resolveEntity='true')}"
    assert client.put(path, json={"name": "two"}).json()["entity"] == {"foo": "x"}
    assert client.put(path, json={"entityState": "IN_DELETION"}).json()["entityState"] == "IN_DELETION"
    assert client.get(path).json()["name"] == "two"
    message = refused(client.put(path, json={"nmae": "three"}), 400, "BAD_REQUEST")
    assert "it needs one of entityType, name, externalId, entity, state, entityState" in message
    of = f"{API}/entityTypes/{scenes.made(client, 'entityTypes', scenes.entity_type('kept2'))['id']}"
    changed = client.put(of, json={"description": "mine"}).json()
    assert (changed["description"], changed["schema"]["required"]) == ("mine", ["foo"])


def test_empty_json_bodies_count_as_no_body(define: Any, served: Served) -> None:
    client, _, kind = define
    path = f"{API}/entities/{scenes.created(client, kind['id'], 'one', {'foo': 'x'})}"
    for content in (b"{}", b"null"):
        answer = client.post(f"{path}/resolve", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["entityState"]) == (200, "RESOLVED")
    refused(client.request("DELETE", path, json={"invokeHooks": False}), 400, "BAD_REQUEST")
    refused(client.delete(path, params={"invokeHooks": "no"}), 400, "BAD_REQUEST")
    refused(client.request("DELETE", path, content=b"{}", headers={"Content-Type": ""}), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert client.request("DELETE", path, json={}, params={"invokeHooks": "False"}).status_code == 202


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/api/versions", 200),
        ("HTTP://localhost:1/api/versions", 200),
        ("http://elsewhere.example.com/api/versions", 403),
        ("http://user@localhost/api/versions", 403),
        ("http://localhost", 401),
        ("/api/versions%0d%0a", 401),
        ("/api/ver%09sions", 401),
        ("/api/versions%3fpage=1", 401),
        ("/api/versions%23", 401),
        ("/api/%2e%2e/api/versions", 401),
    ],
)
def test_request_targets_are_not_rewritten(served: Served, target: str, status: int) -> None:
    """An absolute URL overrides the Host header. No part of a path is removed or taken for its end."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert raw.makefile("rb").readline().split()[1] == str(status).encode()


@pytest.mark.parametrize("line", [b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET /\r\n\r\n", b"A" * 70000])
def test_invalid_http_ends_only_its_connection(served: Served, line: bytes) -> None:
    host, _, port = served.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.settimeout(30)
        try:
            raw.sendall(line)
            raw.shutdown(socket.SHUT_WR)
            data = b""
            while piece := raw.recv(65536):
                data += piece
        except ConnectionError:
            data = b""
    assert data == b"" or b" 400 " in data.split(b"\r\n")[0] or b" 403 " in data.split(b"\r\n")[0]
    with served.client() as client:
        assert client.get("/api/versions").status_code == 200
