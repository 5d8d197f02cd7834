"""The tables on deleting entities, each row over HTTP. Hooks are behaviors that succeed or fail as configured."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from statecfg.entities.model import HOOKS, IN_DELETION
from tests.host.server import scenes
from tests.host.server.scenes import API
from tests.host.server.serving import Served
from tests.unit.entities.test_deletion import DELETIONS, MARKS, Row, rows

_made: dict[str, str] = {}


def type_with(client: httpx.Client, hooks: str, failing: str) -> str:
    """Return a type with these hooks, of which some fail. Equal arguments give the same type."""
    key = re.sub(r"\W", "", hooks + "F" + failing) or "none"
    if key not in _made:
        of = scenes.made(client, "interfaces", scenes.interface(f"del{key}"))
        bound = {}
        for hook in hooks.split():
            error = {"majorErrorCode": 400, "minorErrorCode": "NO", "message": f"{hook} says no"}
            properties = {"returnError": error} if hook in failing.split() else {"returnValue": "fine"}
            execution = {"type": "noop", "id": "noop", "execution_properties": properties}
            body = {"name": f"on{hook}", "execution": execution}
            bound[hook] = scenes.made(client, f"interfaces/{of['id']}/behaviors", body)["id"]
        assert set(bound) <= set(HOOKS)
        kind = scenes.made(client, "entityTypes", scenes.entity_type(f"del{key}", (of["id"],), hooks=bound))
        _made[key] = kind["id"]
    return _made[key]


def in_state(client: httpx.Client, kind: str, state: str) -> str:
    """Create an entity and bring it into a state without hooks. Return its id."""
    content: dict[str, Any] = {"foo": "x"} if state != "RESOLUTION_ERROR" else {}
    entity = scenes.created(client, kind, "one", content, resolveEntity="true", invokeHooks="false")
    if state == IN_DELETION:
        mark(client, entity, invokeHooks="false")
    assert show(client, entity) == state
    return entity


def show(client: httpx.Client, entity: str) -> str:
    """Return the state of an entity, or "gone" if it does not exist."""
    answer = client.get(f"{API}/entities/{entity}")
    return "gone" if answer.status_code == 403 else str(answer.json()["entityState"])


def mark(client: httpx.Client, entity: str, **query: str) -> httpx.Response:
    body = {**client.get(f"{API}/entities/{entity}").json(), "entityState": IN_DELETION}
    return client.put(f"{API}/entities/{entity}", json=body, params=query)


def ran(task: dict[str, Any]) -> list[str]:
    """Return the hooks that a task lists as called."""
    return re.findall(r"(\w+) hook: urn:vcloud:task:[0-9a-f-]{36}\.", task["operation"])


@pytest.mark.parametrize("row", rows(DELETIONS), ids=" ".join)
def test_a_deletion_matches_its_row_of_the_table(served: Served, row: Row) -> None:
    state, hooks, failing, invoke, wanted, after, status = row
    with served.client() as client:
        entity = in_state(client, type_with(client, hooks, failing), state)
        answer = client.delete(f"{API}/entities/{entity}", params={} if invoke == "yes" else {"invokeHooks": "false"})
        assert answer.status_code == 202 and not answer.content
        task = scenes.finished(client, answer.headers["location"])
        assert (task["status"], task["operationName"]) == (status, "deleteDefinedEntity")
        assert (ran(task), show(client, entity)) == (wanted.split(), after)
        assert (task["error"] is None) == (status == "success")


@pytest.mark.parametrize("row", rows(MARKS), ids=" ".join)
def test_marking_for_deletion_matches_its_row_of_the_table(served: Served, row: Row) -> None:
    state, hooks, failing, invoke, wanted, after, status = row
    with served.client() as client:
        entity = in_state(client, type_with(client, hooks, failing), state)
        answer = mark(client, entity, **({} if invoke == "yes" else {"invokeHooks": "false"}))
        if status:
            assert answer.status_code == 202 and not answer.content
            task = scenes.finished(client, answer.headers["location"])
            assert (task["status"], task["operationName"], ran(task)) == (status, "updateDefinedEntity", wanted.split())
        else:
            assert answer.status_code == 200, answer.text
        assert show(client, entity) == after
