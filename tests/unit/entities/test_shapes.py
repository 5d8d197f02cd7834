"""The JSON of each API version: it omits fields that break older clients, and it contains no secrets."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from statecfg.entities import shapes
from statecfg.entities.model import (
    LEVELS,
    Behavior,
    BehaviorGrant,
    Entity,
    EntityType,
    Grant,
    Interface,
    MetadataEntry,
    Page,
    Task,
)
from statecfg.entities.parts import Coordinates, Ownership, Reported, Starter, TaskTimes
from statecfg.server import documents
from tests.each import each

ANN = Ownership("ann", "System", "sales")
ENTITY = Entity("urn:e", "urn:t", "e", None, {"foo": 1}, "RESOLUTION_ERROR", "why", 3, ANN, 0.0, 61.5)
COORDINATES = Coordinates("v", "n", "1.0.0")
OLD = {"id", "entityType", "name", "externalId", "entity", "state", "owner", "org"}
NEW = OLD | {"entityState", "message", "creationDate", "lastModificationDate"}


@each(("version", "keys"), [(35.0, OLD), (36.0, OLD), (37.0, OLD), (37.1, NEW), (39.0, NEW)])
def test_entity_has_the_fields_of_its_api_version(version: float, keys: set[str]) -> None:
    found = shapes.entity(ENTITY, version)
    assert set(found) == keys
    assert found["owner"]["name"] == "ann"
    assert found["org"]["name"] == "sales"
    assert set(found["owner"]) == set(found["org"]) == {"name", "id"}
    assert found["state"] == found.get("entityState", "RESOLUTION_ERROR") == "RESOLUTION_ERROR"
    assert found.get("lastModificationDate") in (None, "1970-01-01T00:01:01.500Z")
    # The old client removes the message and adds the type itself.
    resolved = shapes.resolved(ENTITY, version)
    assert set(resolved) == (NEW if keys == NEW else OLD - {"entityType"} | {"message"})
    assert resolved["message"] == "why"


def test_behavior_is_shown_without_its_secrets() -> None:
    execution = {
        "type": "WebHook",
        "_internal_key": "k",
        "execution_properties": {"_secure_token": "t", "list": [{"_internal_x": 1, "y": 2}]},
    }
    item = Behavior("urn:i", "urn:b", "urn:b", "b", None, execution)
    shown = {"type": "WebHook", "execution_properties": {"list": [{"y": 2}]}}
    found = shapes.behavior(item, 36.0)
    assert found == {"name": "b", "id": "urn:b", "ref": "urn:b", "description": None, "execution": shown}


def test_entity_type_has_the_fields_of_its_api_version() -> None:
    item = EntityType("urn:t", "t", COORDINATES, None, None, {}, ["urn:i"], {"PreDelete": "urn:b"}, None, None, False)
    keys = {"id", "name", "description", "nss", "version", "inheritedVersion", "externalId", "schema", "vendor"}
    keys |= {"interfaces", "readonly"}
    assert set(shapes.entity_type(item, 35.0)) == keys - {"inheritedVersion"}
    assert set(shapes.entity_type(item, 36.0)) == keys | {"hooks"}
    assert set(shapes.entity_type(item, 39.0)) == keys | {"hooks", "maxImplicitRight"}


@each(
    ("result", "text"),
    [("as it is", "as it is"), ({"a": [1, None]}, '{"a":[1,null]}'), (7, "7"), (True, "true"), (None, None)],
)
def test_task_shows_its_result_as_text(result: Any, text: str | None) -> None:
    item = Task(
        "urn:vcloud:task:1",
        "",
        "executeBehavior",
        "op",
        "urn:e",
        "e",
        Starter("ann", "sales"),
        "success",
        Reported(100, "", ""),
        result,
        None,
        TaskTimes(0.5, 1.0, 3.0),
    )
    found = shapes.task(item, 36.0, "http://x/api/task/1")
    assert (found["result"] and found["result"]["resultContent"]) == text
    assert (found["owner"]["id"], found["status"], found["operationName"]) == ("urn:e", "success", "executeBehavior")
    assert (found["startTime"], found["endTime"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:03.000Z")


@pytest.mark.parametrize("version", [36.0, 37.1, 39.1])
def test_answers_match_their_own_schemas(version: float) -> None:
    items = {
        "Entity": shapes.entity(ENTITY, version),
        "Interface": shapes.interface(Interface("urn:i", "i", COORDINATES, False), version),
        "Behavior": shapes.behavior(Behavior("urn:i", "urn:b", "urn:b", "b", None, {"type": "noop"}), version),
        "Access": shapes.grant(Grant("urn:g", "urn:e", "urn:vcloud:user:a", LEVELS[0]), version),
        "BehaviorAccess": shapes.behavior_grant(BehaviorGrant("urn:b", LEVELS[2]), version),
        "MetadataEntry": shapes.metadata_entry(
            MetadataEntry("urn:m", "TENANT", "", "k", "BoolEntry", True, False, False, 1), version
        ),
    }
    for name, found in items.items():
        schema = {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "components": {"schemas": documents.SCHEMAS}}
        jsonschema.Draft202012Validator(schema).validate(found)
        needed = documents.SCHEMAS[name]["required"]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(schema).validate({**found, needed[0]: 0})


def test_users_see_only_the_public_fields_of_a_behavior() -> None:
    execution = {"type": "WebHook", "id": "hook", "href": "https://inside.example/", "hosts": "web", "selectable": True}
    item = Behavior("urn:i", "urn:b", "urn:b", "b", None, execution)
    public = {"type": "WebHook", "id": "hook", "selectable": True}
    assert shapes.behavior_for_users(item, 39.0)["execution"] == public
    assert shapes.behavior(item, 39.0)["execution"] == execution


def test_page_has_totals_and_values() -> None:
    found = shapes.page(Page([ENTITY], 26, 2, 25), shapes.entity, 36.0)
    assert (found["resultTotal"], found["pageCount"], found["page"], found["pageSize"]) == (26, 2, 2, 25)
    assert found["values"] == [shapes.entity(ENTITY, 36.0)]
    assert shapes.page(Page([], 0, 1, 25), shapes.entity, 36.0)["pageCount"] == 0
