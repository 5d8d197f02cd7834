"""Hosts in the store, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import time

import pytest

from statecfg.store import hosts
from statecfg.store.database import Store

FACTS = {"hostname": "web1", "kernel": "6.1", "os": {"id": "debian"}, "boot_id": "b1", "user": "ann"}
FIRST = ["node-registered", "node-facts-changed"]


def met(store: Store, boot_id: str = "b1", ledger: str = "l1", **facts: object) -> list[str]:
    return hosts.check_in(store, "web1", {**FACTS, "boot_id": boot_id, **facts}, ledger, boot_id)


def test_a_check_in_reports_registration_new_facts_and_reboots(store: Store) -> None:
    assert met(store) == FIRST
    assert met(store) == []
    assert met(store, kernel="6.2") == ["node-facts-changed"]
    assert met(store, kernel="6.2", user="root") == []
    assert met(store, boot_id="b2", kernel="6.2") == ["node-booted"]
    assert met(store, boot_id="b3", kernel="6.3") == ["node-facts-changed", "node-booted"]
    assert met(store, boot_id="", kernel="6.3") == []
    assert met(store, boot_id="b3", kernel="6.3") == []


def test_a_check_in_stores_facts_times_boot_id_and_ledger(store: Store) -> None:
    before = time.time()
    met(store)
    met(store, boot_id="", ledger="", user="root")
    record = hosts.get(store, "web1")
    assert record is not None
    assert record.facts == {**FACTS, "boot_id": "", "user": "root"}
    assert (record.boot_id, record.ledger) == ("b1", "l1")
    assert record.registered is not None and record.last_checkin is not None
    assert before <= record.registered <= record.last_checkin <= time.time()
    assert (record.tags, record.metadata, record.playbooks, record.installed) == ([], {}, [], None)
    assert hosts.get(store, "web2") is None


def test_a_host_bound_earlier_registers_at_its_first_check_in(store: Store) -> None:
    hosts.bind(store, "web1", "playbooks/web.yml")
    record = hosts.get(store, "web1")
    assert record is not None and record.registered is record.last_checkin is None
    assert met(store) == FIRST


def test_tags_are_sorted_unique_and_survive_a_check_in(store: Store) -> None:
    assert hosts.tag(store, "web1", ["b", "a", "b"]).tags == ["a", "b"]
    assert hosts.tag(store, "web1", ["c"]).tags == ["a", "b", "c"]
    assert hosts.untag(store, "web1", ["b", "never"]).tags == ["a", "c"]
    met(store)
    assert hosts.every(store)[0].tags == ["a", "c"]


ODD = {"nul": "\0", "large": 10**40, "half": "\ud800", "text": "é\n'\"%s", "none": None, "deep": {"a": [True, 0.5]}}


def test_metadata_keeps_odd_values_and_can_be_changed(store: Store) -> None:
    assert hosts.set_metadata(store, "web1", ODD).metadata == ODD
    assert hosts.set_metadata(store, "web1", {"text": 1}, ["none", "never"]).metadata == {
        **{key: value for key, value in ODD.items() if key != "none"},
        "text": 1,
    }
    assert hosts.set_metadata(store, "web1", {"a": 1, "b": 2}, ["a"], clear=True).metadata == {}


def test_a_playbook_is_bound_and_unbound_only_once(store: Store) -> None:
    assert hosts.bind(store, "web1", "playbooks/web.yml")
    assert not hosts.bind(store, "web1", "playbooks/web.yml")
    assert hosts.bind(store, "web1", "playbooks/a.yml")
    assert hosts.bind(store, "web2", "playbooks/web.yml")
    assert [record.playbooks for record in hosts.every(store)] == [
        ["playbooks/a.yml", "playbooks/web.yml"],
        ["playbooks/web.yml"],
    ]
    assert _unbind(store, "web1", "playbooks/web.yml")
    assert not _unbind(store, "web1", "playbooks/web.yml")
    assert not _unbind(store, "web3", "playbooks/web.yml")
    assert [record.playbooks for record in hosts.every(store)] == [["playbooks/a.yml"], ["playbooks/web.yml"]]


def test_the_installed_playbook_is_stored_with_its_time(store: Store) -> None:
    met(store)
    with store.transaction() as connection:
        hosts.installed_in(connection, store.project, "web1", "playbooks/web.yml")
    record = hosts.get(store, "web1")
    assert record is not None and record.installed == "playbooks/web.yml" and record.installed_at is not None


def test_forgetting_a_host_removes_everything_about_it(store: Store) -> None:
    met(store)
    hosts.bind(store, "web1", "playbooks/web.yml")
    hosts.bind(store, "web2", "playbooks/web.yml")
    known = hosts.get(store, "web1")
    assert hosts.forget(store, "web1") == known
    assert hosts.forget(store, "web1") is None
    assert [record.name for record in hosts.every(store)] == ["web2"]
    assert met(store) == FIRST
    again = hosts.get(store, "web1")
    assert again is not None and again.playbooks == []
    assert known is not None and again.id > known.id


def test_a_failed_change_stores_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction() as connection:
        hosts.ensure(connection, "", "web1")
        hosts.change_metadata(connection, "", "web1", {"a": 1 // 0})
    assert hosts.every(store) == []


def test_each_playbook_of_a_host_has_its_own_ledger(store: Store) -> None:
    """Root applies one playbook and another user applies the other. Neither ledger counts as lost."""
    for playbook, ledger in (("p/a.yml", "root's"), ("p/b.yml", "ann's")):
        hosts.bind(store, "web1", playbook)
        assert hosts.lineages(store, playbook) == {}
        _went_by(store, playbook, ledger)
    assert hosts.lineages(store, "p/a.yml") == {"web1": "root's"}
    assert hosts.lineages(store, "p/b.yml") == {"web1": "ann's"}
    _went_by(store, "p/a.yml", "a new one")
    assert hosts.lineages(store, "p/a.yml") == {"web1": "a new one"}
    with store.transaction() as connection:
        hosts.unbind_in(connection, store.project, "web1", "p/a.yml")
    assert hosts.lineages(store, "p/a.yml") == {}


def _went_by(store: Store, playbook: str, ledger: str) -> None:
    store.attempt(lambda connection: hosts.went_by_in(connection, store.project, "web1", playbook, ledger))


def _unbind(store: Store, name: str, playbook: str) -> bool:
    return store.attempt(lambda connection: hosts.unbind_in(connection, store.project, name, playbook))
