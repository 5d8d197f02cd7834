"""Metadata of entities: what clients note beside the content, each value of its type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.host.server import scenes
from tests.host.server.scenes import API
from tests.host.server.serving import Served

FORBIDDEN = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"


def entry(key: str, value: Any = "ann", kind: str = "StringEntry", domain: str = "TENANT", **more: Any) -> Any:
    return {"keyValue": {"domain": domain, "key": key, "value": {"type": kind, "value": value}}, **more}


@pytest.fixture(scope="module")
def path(served: Served) -> str:
    """Give the address of the metadata of an entity that the author may change."""
    with served.client() as client, served.client("author") as author:
        made = scenes.one_of_each(client, "noted")
        member = author.get(f"{API}/sessions/current").json()["user"]["id"]
        grant = {"grantType": "MembershipAccessControlGrant", "memberId": member}
        grant["accessLevelId"] = "urn:vcloud:accessLevel:ReadWrite"
        scenes.made(client, f"entities/{made['entity']}/accessControls", grant)
        return f"entities/{made['entity']}/metadata"


def test_entries_are_added_changed_and_removed(served: Served, path: str) -> None:
    with served.client() as client:
        added = [
            scenes.made(client, path, entry("owner", persistent=True)),
            scenes.made(client, path, {"keyValue": {**entry("owner")["keyValue"], "namespace": "n"}}),
            scenes.made(client, path, entry("cost", -1.5, "NumberEntry")),
            scenes.made(client, path, entry("paid", False, "BoolEntry", "PROVIDER")),
        ]
        assert client.get(f"{API}/{path}").json()["values"] == added
        assert client.get(f"{API}/{path}?filter=keyValue.key==cost").json()["values"] == [added[2]]
        one = f"{API}/{path}/{added[2]['id']}"
        read = client.get(one)
        assert (read.json(), read.headers["etag"]) == (added[2], '"1"')
        wanted = {**added[2], "persistent": True, "keyValue": entry("cost", 7, "NumberEntry")["keyValue"]}
        changed = client.put(one, json=wanted, headers={"If-Match": '"1"'})
        assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
        assert (changed.json()["keyValue"]["value"]["value"], changed.json()["persistent"]) == (7, True)
        assert client.put(one, json=wanted, headers={"If-Match": '"1"'}).status_code == 412
        for other in (entry("price", 7, "NumberEntry"), entry("cost"), {**wanted, "readOnly": True}):
            assert client.put(one, json=other).json()["minorErrorCode"] == "RDE_IMMUTABLE"
        assert [client.delete(f"{API}/{path}/{each['id']}").status_code for each in added] == [204] * 4
        assert (client.get(one).status_code, client.delete(one).status_code) == (403, 403)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (entry("k", "notANumber", "NumberEntry"), 400, "notANumber"),
        (entry("k", True, "NumberEntry"), 400, "keyValue.value"),
        (entry("k", "x", "BoolEntry"), 400, "keyValue.value"),
        (entry("k", domain="PROVIDER", readOnly=True), 409, "VCD_META_CRUD_INVALID_FLAG"),
        ({"keyValue": {"key": "k"}}, 400, "value"),
    ],
)
def test_wrong_entries_are_refused(served: Served, path: str, body: Any, status: int, says: str) -> None:
    with served.client() as client:
        answer = client.post(f"{API}/{path}", json=body)
        assert answer.status_code == status and says in answer.text


def test_tenants_cannot_change_the_providers_entries(served: Served, path: str) -> None:
    with served.client() as client, served.client("author") as author, served.client("viewer") as stranger:
        hidden = scenes.made(client, path, entry("hidden", domain="PROVIDER"))
        fixed = scenes.made(client, path, entry("fixed", readOnly=True))
        assert client.post(f"{API}/{path}", json=entry("fixed")).json()["minorErrorCode"] == "RDE_ALREADY_EXISTS"
        own = scenes.made(author, path, entry("own"))
        assert author.get(f"{API}/{path}").json()["values"] == [fixed, own]
        answers = [
            author.post(f"{API}/{path}", json=each)
            for each in (entry("p", domain="PROVIDER"), entry("r", readOnly=True))
        ]
        answers += [author.get(f"{API}/{path}/{hidden['id']}"), author.delete(f"{API}/{path}/{hidden['id']}")]
        answers += [author.put(f"{API}/{path}/{fixed['id']}", json=fixed), author.delete(f"{API}/{path}/{fixed['id']}")]
        answers.append(stranger.get(f"{API}/{path}"))
        assert [(each.status_code, each.json()["minorErrorCode"]) for each in answers] == [(403, FORBIDDEN)] * 7
        assert client.delete(f"{API}/{path.removesuffix('/metadata')}").status_code == 202
        assert client.get(f"{API}/{path}").status_code == 403
