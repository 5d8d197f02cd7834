"""Users with Full Control of a type may select behaviors of administrators, but may not define behaviors."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.model import FULL_CONTROL, READ_ONLY, READ_WRITE, EntityType
from statecfg.playbook.project import Project
from tests.unit.entities.scenes import ALL, ANN, INTERFACE, ROOT, Scene, behavior, refused

GONE = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
WRONG = "RDE_INVALID_BEHAVIOR_EXECUTION"
DEFINITIONS = (
    {"type": "WebHook", "id": "x", "href": "https://192.0.2.1/", "_internal_key": "key"},
    {"type": "Function", "id": "sites:create"},
    {"type": "Playbook", "id": "playbooks/site.yml"},
    {"type": "Activity", "id": "x"},
)


@pytest.fixture(scope="module")
def offered(scene: Scene) -> str:
    """Return the ref of a behavior that users may select."""
    body = {"name": "offered", "execution": {"type": "noop", "id": "offered", "selectable": True}}
    return scene.operations.create_behavior(ROOT, INTERFACE, body).ref


@pytest.fixture
def kind(scene: Scene, offered: str) -> EntityType:
    """Return a type for which ann has Full Control."""
    found = scene.type("PostCreate")
    body = {"grantType": "MembershipAccessControlGrant", "memberId": ANN.id, "accessLevelId": FULL_CONTROL}
    scene.operations.add_grant(ROOT, found.id, body)
    return found


@pytest.mark.parametrize("execution", DEFINITIONS, ids=lambda each: each["type"])
def test_user_may_not_define_what_a_behavior_runs(scene: Scene, kind: EntityType, execution: dict) -> None:
    o = scene.operations
    said = refused(400, WRONG, o.override_behavior, ANN, kind.id, behavior("blink"), {"execution": execution})
    assert "Only administrators define what a behavior runs" in said
    o.override_behavior(ROOT, kind.id, behavior("blink"), {"execution": execution})
    changed = {"execution": {**execution, "id": "other"}}
    refused(400, WRONG, o.override_behavior, ANN, kind.id, behavior("blink"), changed)
    refused(403, GONE, o.delete_override, ANN, kind.id, behavior("blink"))
    # Users may change the description, which is not part of the definition.
    same = {"execution": execution, "description": "mine"}
    assert o.override_behavior(ANN, kind.id, behavior("blink"), same).description == "mine"


@pytest.mark.parametrize(
    "execution",
    [
        {"type": "Playbook", "id": "playbooks/sit.yml"},
        {"type": "Playbook", "id": "../other.yml"},
        {"type": "Playbook", "id": "playbooks/site.yml", "execution_properties": {"inventory": "hosts.yml"}},
        {"type": "Function", "id": "hidden:run"},
        {"type": "Function", "id": "sites:nosuch"},
    ],
    ids=lambda each: each["id"],
)
def test_user_learns_nothing_about_the_files_of_the_project(
    scene: Scene, kind: EntityType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, execution: dict
) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks/site.yml").write_text("")
    (tmp_path / "behaviors").mkdir()
    (tmp_path / "behaviors/sites.py").write_text("def create(invocation): return None\n")
    o = scene.operations
    monkeypatch.setattr(o, "project", Project(tmp_path))
    body = {"execution": execution}
    said = refused(400, WRONG, o.override_behavior, ANN, kind.id, behavior("blink"), body)
    assert said.startswith("Only administrators define what a behavior runs.") and "site" not in said
    assert said != refused(400, WRONG, o.override_behavior, ROOT, kind.id, behavior("blink"), body)


def test_user_may_select_only_offered_behaviors(scene: Scene, kind: EntityType, offered: str) -> None:
    o = scene.operations
    for ref, code in ((behavior("PreDelete"), (403, GONE)), ("urn:no", (404, "RDE_INVALID_BEHAVIOR_SCOPE"))):
        body = {"execution": {"type": "Behavior", "id": ref}}
        refused(*code, o.override_behavior, ANN, kind.id, behavior("PostCreate"), body)
    o.override_behavior(ANN, kind.id, behavior("PostCreate"), {"execution": {"type": "Behavior", "id": offered}})
    o.create_entity(ROOT, kind.id, {"name": "e", "entity": {"foo": "x"}})
    claimed = o.claim("worker")
    assert claimed is not None
    step = o.advance(claimed)
    assert step is not None and step.execution["id"] == "offered"
    o.enter_outcome(claimed, step.id, BehaviorResult(True))
    o.delete_override(ANN, kind.id, behavior("PostCreate"))


def test_user_may_bind_and_grant_only_offered_behaviors(scene: Scene, kind: EntityType, offered: str) -> None:
    o = scene.operations
    hooks = {"hooks": {**kind.hooks, "PreDelete": behavior("PreDelete")}}
    refused(403, GONE, o.update_type, ANN, kind.id, hooks)
    bound = o.update_type(ANN, kind.id, {"hooks": {**kind.hooks, "PreDelete": offered}})
    assert bound.hooks == {"PostCreate": behavior("PostCreate"), "PreDelete": offered}
    opened = {"behaviorId": behavior("blink"), "accessLevelId": READ_WRITE}
    refused(403, GONE, o.add_behavior_grant, ANN, kind.id, opened)
    refused(403, GONE, o.replace_behavior_grants, ANN, kind.id, {"values": [opened]})
    o.add_behavior_grant(ANN, kind.id, {"behaviorId": offered, "accessLevelId": READ_ONLY})
    # Users may restrict the grants of an administrator, but not extend them.
    o.add_behavior_grant(ROOT, kind.id, opened)
    refused(403, GONE, o.add_behavior_grant, ANN, kind.id, {**opened, "accessLevelId": READ_ONLY})
    o.add_behavior_grant(ANN, kind.id, {**opened, "accessLevelId": FULL_CONTROL})
    levels = {each.behavior: each.level for each in o.list_behavior_grants(ROOT, kind.id, ALL).values}
    assert levels == {offered: READ_ONLY, behavior("blink"): FULL_CONTROL}
