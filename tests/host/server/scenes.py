"""Definitions in the form that clients send, and functions that create objects over the API."""

from __future__ import annotations

import time
from typing import Any

import httpx

API = "/cloudapi/1.0.0"
NOOP = {"type": "noop", "id": "noop"}


def interface(nss: str = "kept", **more: Any) -> dict[str, Any]:
    return {"name": f"{nss} things", "vendor": "acme", "nss": nss, "version": "1.0.0", **more}


def entity_type(nss: str = "kept", interfaces: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Return a type whose entities must have the key `foo`."""
    return {
        "name": f"{nss} thing",
        "vendor": "acme",
        "nss": nss,
        "version": "1.0.0",
        "interfaces": list(interfaces),
        "schema": {
            "type": "object",
            "required": ["foo"],
            "properties": {"foo": {"type": "string"}, "size": {"type": "integer"}},
        },
        **more,
    }


def made(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(f"{API}/{path}", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def finished(client: httpx.Client, address: str, seconds: float = 60.0) -> dict[str, Any]:
    """Wait until a task has ended. Return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        task: dict[str, Any] = client.get(address).raise_for_status().json()
        if task["status"] in ("success", "error"):
            return task
        time.sleep(0.02)
    raise AssertionError(f"{task} did not end")


def created(client: httpx.Client, type_id: str, name: str, content: dict[str, Any], **query: str) -> str:
    """Create an entity. Return its id."""
    answer = client.post(f"{API}/entityTypes/{type_id}", json={"name": name, "entity": content}, params=query)
    assert answer.status_code == 202, answer.text
    task = client.get(answer.headers["location"]).raise_for_status().json()
    found: str = task["owner"]["id"]
    return found


def one_of_each(client: httpx.Client, name: str) -> dict[str, str]:
    """Create one object of each kind. Return the values for the parameters of paths."""
    of = made(client, "interfaces", interface(name))
    behavior = made(client, f"interfaces/{of['id']}/behaviors", {"name": name, "execution": NOOP})
    kind = made(client, "entityTypes", entity_type(name, (of["id"],)))
    entity = created(client, kind["id"], name, {"foo": name}, resolveEntity="true")
    member = client.get(f"{API}/sessions/current").json()["user"]["id"]
    level = "urn:vcloud:accessLevel:ReadOnly"
    grant = made(
        client,
        f"entities/{entity}/accessControls",
        {"grantType": "MembershipAccessControlGrant", "memberId": member, "accessLevelId": level},
    )
    tasks = client.get("/statecfg/1.0/tasks").json()["values"]
    return {
        "interface": of["id"],
        "behavior": behavior["id"],
        "type": kind["id"],
        "entity": entity,
        "grant": grant["id"],
        "task": tasks[0]["id"],
        "vendor": "acme",
        "nss": name,
        "version": "1.0.0",
        "name": name,
        "id": name,
    }
