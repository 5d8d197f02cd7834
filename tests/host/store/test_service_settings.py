"""Settings, secrets, addresses, ports and logs of services in the store."""

from __future__ import annotations

import time

import pytest

from statecfg.store import services
from statecfg.store.database import Store
from statecfg.store.units.records import Declared, UnitRequestError
from tests.host.store.running import (
    PROJECT,
    commit,
    declared,
    deploy,
    fail,
    read,
    run_hooks,
    units,
)
from tests.host.store.service_store import BOTH, DB, commit_own, deploy_again, rows, shared, step_of, store

__all__ = ["shared", "store"]


def test_settings_follow_precedence_and_changes_run_config_changed(store: Store) -> None:
    deploy(store, declared("db", "h1", settings={"size": 3}))
    run_hooks(store)
    assert read(store, "db/0", "config") == {"title": "My Title", "size": 3, "key": None}
    services.set_settings(store, PROJECT, "db", {"title": "T", "size": 4})
    assert services.get_settings(store, PROJECT, "db") == {"title": "T", "size": 4}
    assert run_hooks(store) == ["db/0 config-changed"]
    services.set_settings(store, PROJECT, "db", {}, ["size"])
    assert read(store, "db/0", "config") == {"title": "T", "size": 3, "key": None}
    deploy(store, declared("db", "h1", settings={"size": 5, "title": "P"}))
    assert services.get_settings(store, PROJECT, "db") == {"title": "T", "size": 5}
    # Several changes cause only one hook. A change to the same value causes none.
    deploy(store, declared("db", "h1", settings={"size": 3, "title": "P"}))
    services.set_settings(store, PROJECT, "db", {"title": "My Title"})
    assert run_hooks(store) == ["db/0 config-changed"]
    services.set_settings(store, PROJECT, "db", {"size": 3})
    assert run_hooks(store) == []


def test_secrets_are_not_stored_and_their_change_runs_a_hook(store: Store) -> None:
    def with_key(key: str) -> Declared:
        return declared("db", "h1", secrets={"key": key})

    deploy(store, with_key("Hunter-2-Hunter"))
    run_hooks(store)
    assert read(store, "db/0", "config", key="Hunter-2-Hunter")["key"] == "Hunter-2-Hunter"
    deploy(store, with_key("Hunter-2-Hunter"))
    assert run_hooks(store) == []
    deploy(store, with_key("Hunter-3-Hunter"))
    assert run_hooks(store) == ["db/0 config-changed"]
    with store.reading() as connection:
        for table in ("service", "unit"):
            found = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
            assert "Hunter" not in repr(found)
    if store.address.path is not None:
        assert all(b"Hunter" not in path.read_bytes() for path in store.address.path.parent.iterdir())


def test_a_changed_address_is_told_unless_a_hook_set_it(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    web = units(store)["web/0"].id

    def moved(address: str) -> set[int]:
        found = {"private-address": address, "public-address": "db.example"}
        return store.attempt(lambda connection: services.addressed_in(connection, PROJECT, "h1", found))

    assert moved("10.1.1.1") == {web}
    assert moved("10.1.1.1") == set()
    assert units(store)["db/0"].network.addresses == {"private-address": "10.1.1.1", "public-address": "db.example"}
    assert read(store, "web/0", "relation", "db:0", "db/0") == {"private-address": "10.1.1.1"}
    assert run_hooks(store) == ["web/0 db-relation-changed db/0 [db/0]"]
    # A new address does not replace a value that a hook has set.
    commit_own(store, "db/0", "private-address", "vip.example")
    assert moved("10.2.2.2") == set()


def test_ports_and_status_are_stored_even_if_the_hook_fails(store: Store) -> None:
    deploy(store, DB)
    number = units(store)["db/0"].id
    with store.transaction() as connection:
        for open, text in ((True, "80/tcp"), (True, "53/udp"), (True, "80/tcp"), (True, "1/tcp"), (False, "53/udp")):
            services.port_in(connection, number, open, text)
    store.attempt(lambda connection: services.status_in(connection, number, "active", "odd \0 \ud800"))
    step = step_of(store, "db/0")
    assert list(step.now.ports) == ["80/tcp", "1/tcp"]
    fail(store, step)
    row = units(store)["db/0"]
    assert row.network.ports == ("80/tcp", "1/tcp")
    assert (row.announced.status, row.announced.message) == ("active", "odd \0 \ud800")


def test_unknown_units_and_relations_cannot_be_read_or_written(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    for node, code in (
        (("relation", "db:0", "web/9"), "NoSuchUnit"),
        (("relation", "cache:0", "db/0"), "UnitRelationStateNotFound"),
        (("relation", "db:99999999999999999999", "db/0"), "UnitRelationStateNotFound"),
        (("relation", "db", "db/0"), "UnitRelationStateNotFound"),
    ):
        with pytest.raises(UnitRequestError) as refused:
            read(store, "web/0", *node)
        assert refused.value.code == code
    deploy_again(store)
    step = step_of(store, "web/0")
    with pytest.raises(UnitRequestError):
        commit(store, step, {"relations": {"db:0": {"set": {"a": "1"}}, "db:7": {"set": {"a": "1"}}}})
    assert "a" not in read(store, "web/0", "relation", "db:0", "web/0"), "a refused commit changes nothing"
    number = units(store)["web/0"].id
    store.attempt(lambda connection: services.gone_in(connection, number, time.time()))
    with pytest.raises(UnitRequestError), store.reading() as connection:
        services.next_in(connection, number, "r")
    with store.reading() as connection:
        assert services.unit_in(connection, number) is None


def test_the_unit_log_keeps_only_the_newest_lines(store: Store) -> None:
    deploy(store, *BOTH)
    many = [(float(number), "db/0", "install", 20, f"line {number}") for number in range(10_040)]
    services.log(store, PROJECT, many)
    services.log(
        store, PROJECT, [(1.0, "web/0", "start", 40, "odd \0 \ud800 \x1b[31m"), (2.0, "db/0", "x", 20, "last")]
    )
    assert rows(store, "unit_log") == 10_001
    assert [line.text for line in services.lines(store, PROJECT, "db", limit=2)] == ["line 10039", "last"]
    assert services.lines(store, PROJECT, "web", limit=5)[0].text == "odd \0 \ud800 \x1b[31m"
    assert [line.unit for line in services.lines(store, PROJECT, of_unit="db/0", limit=3)] == ["db/0"] * 3
    with pytest.raises(UnitRequestError):
        services.log(store, PROJECT, [(1.0, "web/0", "start", 20, "kept?"), (1.0, "wed/0", "start", 20, "")])
    assert rows(store, "unit_log") == 10_001
    services.log(store, PROJECT, [])
