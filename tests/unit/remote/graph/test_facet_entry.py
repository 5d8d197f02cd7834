"""Entries of facets: check, snapshot and undo of a type that defines none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Machine

Fields = Mapping[str, Any]


@op
def write_thing(machine: Machine, name: str, fields: dict[str, Any] | None) -> Result:
    """Write a thing, or remove it."""
    return machine.run(["thing", name], {"things": {name: fields}})


class Thing(FacetEntry):
    facet, fields = "things", ("size", "color")

    def change(self, now: Fields, fields: Fields) -> list[Action]:
        return [write_thing(self.key(), dict(fields))]

    def remove(self, now: Fields) -> list[Action]:
        return [write_thing(self.key(), None)]


class Full(Thing):
    permission = ("set force", "with force, it goes")

    def in_the_way(self, now: Fields) -> str:
        return f"{self.key()} is full"


class Together(Thing):
    together = True


class Whole(Thing):
    whole = True


class Listed(Thing):
    fields = lists = ("members",)
    noun = "the thing"

    def exact(self, field: str) -> bool:
        return bool(self.attrs.get("exact"))

    def known(self, field: str, item: str) -> bool:
        return item != "gone"


class Locked(Thing):
    secret = "password"

    def set_secret(self, now: Fields | None) -> list[Action]:
        right = now is not None and now.get("password") == self.attrs["password"]
        return [] if right else [write_thing(self.key(), {"password": self.attrs["password"]})]


class Single(Thing):
    fields, single, kept_as = ("size",), True, "size"


class Rounded(Thing):
    def enough(self, field: str, now: Any, value: Any) -> bool:
        return bool(now >= value)


class Applied:
    """A node that was applied on a machine with one former thing, or none."""

    def __init__(self, thing: type[FacetEntry], was: Fields | None, **attrs: Any) -> None:
        self.type: NodeType[...] = NodeType("thing")
        self.type.managed_by(thing)
        self.node = HostNode("thing:a", "thing", attrs={"name": "a", **attrs})
        self.machine = MemoryMachine({}, {"things": {"a": was} if was is not None else {}})
        self.memory = self.type.run_remember(self.node, self.machine)
        self.perform(self.type.run_check(self.node, {}, [], self.machine).actions)
        assert self.type.run_check(self.node, {}, [], self.machine).actions == []

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            assert action.perform(self.machine)["status"] == "ok"

    @property
    def now(self) -> Fields | None:
        return self.machine.entry("things", "a")

    def undone(self, **others: Any) -> tuple[Fields | None, list[str]]:
        """Let others change fields, undo the node, and return the thing and what the undo says."""
        if others:
            self.machine.affect({"things": {"a": others}})
        spec: ActionSpec = self.type.run_undo(self.node, self.memory, self.machine, {})
        self.perform(spec.actions)
        assert self.type.run_undo(self.node, self.memory, self.machine, {}).actions == []
        return self.now, spec.left


def test_a_new_thing_is_removed_whatever_others_changed() -> None:
    assert Applied(Thing, None, size=1).undone() == (None, [])
    assert Applied(Thing, None, size=1).undone(size=7) == (None, [])


def test_a_new_thing_that_is_one_whole_stays_if_others_changed_it() -> None:
    assert Applied(Whole, None, size=1).undone() == (None, [])
    assert Applied(Whole, None, size=1).undone(size=7) == ({"size": 7}, ["the size of a is now 7: it stays"])


def test_only_fields_that_the_node_set_go_back() -> None:
    applied = Applied(Thing, {"size": 1, "color": "red"}, size=2)
    assert applied.now == {"size": 2, "color": "red"}
    assert applied.undone(color="blue") == ({"size": 1, "color": "blue"}, [])


def test_a_field_that_others_changed_stays_and_another_goes_back() -> None:
    applied = Applied(Thing, {"size": 1, "color": "red"}, size=2, color="blue")
    assert applied.undone(size=7) == ({"size": 7, "color": "red"}, ["the size of a is now 7: it stays"])


def test_fields_that_change_together_go_back_together() -> None:
    was = {"size": 1, "color": "red"}
    assert Applied(Together, was, size=2, color="blue").undone() == (was, [])
    applied = Applied(Together, was, size=2, color="blue")
    assert applied.undone(size=7) == ({"size": 7, "color": "blue"}, ["the size of a is now 7: it stays"])


def test_a_removed_thing_comes_back_unless_others_made_another() -> None:
    was = {"size": 1}
    assert Applied(Thing, was, absent=True).undone() == (was, [])
    assert Applied(Thing, was, absent=True).undone(size=7) == ({"size": 7}, [])
    left = ["the size of a is now 7: it stays"]
    assert Applied(Whole, was, absent=True).undone(size=7) == ({"size": 7}, left)
    assert Applied(Thing, None, absent=True).undone() == (None, [])


def test_what_is_in_the_way_stops_the_check_and_the_undo() -> None:
    with pytest.raises(CheckError, match=r"^a is full; set force$"):
        Applied(Full, {"size": 1}, absent=True)
    assert Applied(Full, None, size=1).undone() == ({"size": 1}, ["a is full: it stays; with force, it goes"])


def test_a_thing_that_others_removed_stays_away() -> None:
    applied = Applied(Thing, {"size": 1}, size=2)
    applied.machine.affect({"things": {"a": None}})
    assert applied.undone() == (None, ["a no longer exists"])


def test_items_of_a_list_are_added_and_taken_away_one_by_one() -> None:
    applied = Applied(Listed, {"members": ["a", "b"]}, members=["c", "b"])
    assert applied.now == {"members": ["a", "b", "c"]}
    assert applied.undone() == ({"members": ["a", "b"]}, [])
    applied = Applied(Listed, {"members": ["a", "b"]}, members=["c", "b"])
    assert applied.undone(members=["b", "c", "theirs"]) == ({"members": ["b", "theirs"]}, [])


def test_a_complete_list_comes_back_except_for_items_that_no_longer_exist() -> None:
    was = {"members": ["a", "gone"]}
    applied = Applied(Listed, was, members=["c"], exact=True)
    assert applied.now == {"members": ["c"]}
    assert applied.undone() == ({"members": ["a"]}, [])
    left = ["theirs was added to the members of the thing a since: it stays"]
    assert Applied(Listed, was, members=["c"], exact=True).undone(members=["theirs"]) == (
        {"members": ["a", "theirs"]},
        left,
    )
    assert Applied(Listed, was, absent=True).undone() == ({"members": ["a"]}, [])


def test_the_same_items_in_another_order_are_no_change() -> None:
    machine = MemoryMachine({}, {"things": {"a": {"members": ["b", "a"]}}})
    node = HostNode("thing:a", "thing", attrs={"name": "a", "members": ["a", "b"], "exact": True})
    assert Listed(node, machine).check().actions == []


def test_a_secret_is_set_and_never_recorded() -> None:
    applied = Applied(Locked, {"size": 1, "password": "old"}, size=2, password="new")
    assert applied.now == {"size": 2, "password": "new"}
    left = ["the password of a stays: statecfg does not record passwords"]
    assert applied.undone() == ({"size": 1, "password": "new"}, left)
    removed = ["a is not restored: statecfg does not record passwords"]
    assert Applied(Locked, {"size": 1}, absent=True).undone() == (None, removed)


def test_a_snapshot_can_be_one_value() -> None:
    applied = Applied(Single, {"size": 1}, size=2)
    assert applied.memory == {"size": 1}
    assert applied.undone() == ({"size": 1}, [])
    assert Applied(Single, None, size=2).memory == {"size": None}


def test_a_value_that_is_enough_stays_and_is_not_undone() -> None:
    applied = Applied(Rounded, {"size": 7}, size=2)
    assert applied.now == {"size": 7}
    assert applied.undone(size=9) == ({"size": 9}, ["the size of a is now 9: it stays"])
