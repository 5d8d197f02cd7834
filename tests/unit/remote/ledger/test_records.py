"""Records of managed resources: objects from rows of the ledger, lines of journals, and owed restarts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from statecfg.remote.ledger.journal import Account
from statecfg.remote.ledger.records import Debt, Orphan, Resource, StoredDefinition, recorded_name

LINE: dict[str, Any] = {
    "name": "conf", "type": "file", "module": "m", "claims": ["path:/conf"], "digest": "d", "state": "RESOLVED",
    "memory": {"was": None}, "after": "a", "hides": 1, "attrs": {"path": "/conf"}, "requires": ["dir"], "tags": ["web"],
    "protect": 1, "position": "p:1", "owing": [["post-update", "h"]], "triggers": ["dir"],
}  # fmt: skip


def test_resource_keeps_all_fields_of_its_line() -> None:
    assert json.loads(json.dumps(Resource.from_json(LINE).to_json())) == LINE
    renamed = dict(LINE, first_run="r1", since=5.0, replaces={"name": "old", "claims": ["path:/conf"]})
    assert Resource.from_json(renamed).to_json() == renamed


def test_line_of_version_0_4_0_has_masks_in_its_attributes() -> None:
    old = {key: value for key, value in LINE.items() if key != "hides"}
    found = Resource.from_json(dict(old, attrs={"line": "a <secret tok> b", "$x": "y"}))
    assert found.definition.attrs == {"line": {"$hidden": ["a ", ["tok", None], " b"]}, "$$x": "y"}


def test_line_of_version_0_3_0_is_read_without_triggers() -> None:
    old = {key: value for key, value in LINE.items() if key != "triggers"}
    assert Resource.from_json(dict(old, replaced=False)).definition.triggers is None


def test_resource_refuses_an_unknown_key() -> None:
    with pytest.raises(TypeError):
        Resource.from_json(dict(LINE, colour="red"))


def test_a_resource_can_not_be_changed() -> None:
    resource = Resource.from_json(LINE)
    with pytest.raises(AttributeError, match="a resource can't be changed"):
        resource.state = "IN_DELETION"
    assert resource.state == "RESOLVED"


def test_owed_restart_restores_its_resource_without_a_node() -> None:
    debt = Debt("conf", "cause", 1.0, "r1", Resource.from_json(LINE).debt)
    assert debt.how is not None
    assert set(debt.how) == {"name", "type", "module", "attrs", "position", "tags"}
    resource = Resource.from_debt(json.loads(json.dumps(debt.how)))
    assert (resource.name, resource.definition.tags, resource.definition.requires) == ("conf", ["web"], [])
    assert {key: debt[key] for key in ("node", "cause", "since", "run")} == {
        "node": "conf", "cause": "cause", "since": 1.0, "run": "r1"
    }  # fmt: skip


def test_orphan_is_recorded_under_the_name_of_its_resource() -> None:
    orphan = Orphan(Resource("conf", StoredDefinition("file", "m", {"path": "/old"})), "conf (the file /old)")
    assert (orphan.provides, recorded_name(orphan)) == ("conf (the file /old)", "conf")


def test_journal_returns_new_resources_and_states_in_order() -> None:
    lines = [{"manage": LINE}, {"entity": "conf", "state": "", "heir": ["other", "theirs"]}]
    account = Account([json.dumps(line) for line in lines])
    assert account.managed == ["conf"]
    change = account.records[1]
    assert not isinstance(change, Resource)
    assert (change.name, change.state, change.owing, change.successor) == ("conf", "", [], ["other", "theirs"])
