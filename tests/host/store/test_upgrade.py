"""Stores of version 0.3.0 are upgraded: each project gets its own hosts, and numbers stay the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import select

from statecfg.playbook.project import Project, Settings
from statecfg.store import address, hosts, opened, services
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log
from statecfg.store.service_tables import unit
from tests.host import upgrades
from tests.host.store.postgresql import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a store of version 0.3.0."""
    path = tmp_path / "store.db"
    if request.param == "sqlite":
        upgrades.store(path)
        return str(path)
    server: Server = request.getfixturevalue("postgresql")
    name: str = request.getfixturevalue("database")
    with server.connect(name) as connection:
        upgrades.database(connection, path)
    found = server.url(name)
    Store(address.parse(found, tmp_path), migrate=True).close()
    return found


def of_project(name: str, url: str) -> Store:
    return opened(Project(Path("/nowhere"), Settings(name=name)), url)


def test_a_shared_host_gets_a_record_in_each_project(url: str) -> None:
    with of_project("shop", url) as store:
        assert {each.name: each.playbooks for each in hosts.every(store)} == {
            "@local": [],
            "light1": ["shop/site.yml"],
            "light2": ["shop/site.yml"],
        }
        shop = hosts.get(store, "light1")
        assert shop is not None and (shop.tags, shop.metadata, shop.installed) == (["canary"], {"rack": 12}, None)
        hosts.set_metadata(store, "light1", {"rack": 13})
        hosts.tag(store, "@local", ["mine too"])  # from now on, @local belongs to shop
        second = hosts.get(store, "light2")
        assert second is not None and second.installed == "shop/site.yml"
    with of_project("blog", url) as store:
        assert {each.name: each.playbooks for each in hosts.every(store)} == {"light1": ["blog/site.yml"]}
        blog = hosts.get(store, "light1")
        assert blog is not None and (blog.metadata, blog.installed) == ({"rack": 12}, "blog/site.yml")
        assert blog.facts == shop.facts and blog.id != shop.id
        assert [each.host for each in hook_log.events(store)] == ["light1"]
        assert hosts.lineages(store, "blog/site.yml") == {"light1": blog.ledger}
    with of_project("shop", url) as store:
        assert hook_log.events(store) == []
        assert store.check() == []


def test_an_unbound_playbook_no_longer_counts_as_installed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    upgrades.store(path)
    connection = sqlite3.connect(path)
    with connection:  # the state that 0.3.0 left after destroying shop/old.yml
        connection.execute("UPDATE host SET installed = 'shop/old.yml', installed_at = 1.0 WHERE name = 'light2'")
    connection.close()
    with of_project("shop", str(path)) as store:
        found = hosts.get(store, "light2")
        assert found is not None and (found.installed, found.installed_at) == (None, None)
        assert found.playbooks == ["shop/site.yml"]


def test_an_upgrade_keeps_numbers_of_units_and_relations(url: str) -> None:
    with of_project("shop", url) as store:
        shown = services.show(store, "shop")
        assert list(shown.units) == ["a/0", "a/1", "b/0", "c/0"]
        assert {each.number: each.ends for each in shown.relations} == {
            2: (("a", "x"), ("c", "x")),
            3: (("a", "x"), ("b", "x")),
        }
        assert [each.id for each in services.in_relations(store, shown.units["a/0"].id)] == ["x:2", "x:3"]
        assert services.relate(store, "shop", [("b", "y"), ("c", "y")])
        assert services.relate(store, "blog", [("z", "peers")])
        assert [each.number for each in services.show(store, "shop").relations] == [2, 3, 4]
        # 3 was the last number given in any project. Which project had the removed relations is unknown.
        assert [each.number for each in services.show(store, "blog").relations] == [4]
        added = services.add_unit(store, "shop", "c")
        assert added.name == "c/1"
        with store.reading() as connection:
            early = {row.id: row.early for row in connection.execute(select(unit.c.id, unit.c.early))}
        assert early.pop(added.id) is False and set(early.values()) == {True}


def test_a_new_host_never_gets_a_forgotten_hosts_number(url: str) -> None:
    with of_project("shop", url) as store:
        known = {each.id for each in hosts.every(store)}
        hosts.tag(store, "new", ["a"])
        new = hosts.get(store, "new")
        assert new is not None and new.id > max(known)
