"""Services, units and relations in the store, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from statecfg.problems import InvalidInput
from statecfg.store import opened, services
from statecfg.store.database import Store
from statecfg.store.units.records import Changes, Declared, UnitError, UnitStep
from tests.host.store.postgresql import Server
from tests.host.store.running import (
    PLAYBOOK,
    PROJECT,
    Failed,
    commit,
    declared,
    deploy,
    fail,
    next_of,
    read,
    related,
    sets,
    settle,
    units,
)

DB, WEB = declared("db", "h1"), declared("web", "h2")
BOTH = (DB, WEB, related("web:db", "db:db"))
LIFE = ["install", "config-changed", "start"]


EMPTY = {
    "sqlite": ("DELETE FROM service", "DELETE FROM project", "DELETE FROM sqlite_sequence"),
    "postgresql": ("TRUNCATE service, project RESTART IDENTITY CASCADE",),
}


@pytest.fixture(scope="module", params=EMPTY)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    """Give a store that all tests of this module share. Creating one for each test takes too long."""
    if request.param == "sqlite":
        with opened(url=str(tmp_path_factory.mktemp("services") / "store.db")) as found:
            yield request.param, found
        return
    server: Server = request.getfixturevalue("postgresql")
    name = server.fresh()
    with opened(url=server.url(name)) as found:
        yield request.param, found
    server.drop(name)


@pytest.fixture
def store(shared: tuple[str, Store]) -> Store:
    """Give an open store without services."""
    kind, found = shared
    with found.transaction() as connection:
        for statement in EMPTY[kind]:
            connection.exec_driver_sql(statement)
    return found


def own(hooks: list[str], name: str) -> list[str]:
    return [hook.removeprefix(f"{name} ") for hook in hooks if hook.startswith(f"{name} ")]


def rows(store: Store, table: str) -> int:
    with store.reading() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_new_units_run_their_lifecycle_hooks_once(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2"))
    assert [(each.name, each.host, each.condition.state) for each in units(store).values()] == [
        ("db/0", "h1", "new"),
        ("db/1", "h2", "new"),
    ]
    hooks = settle(store)
    assert own(hooks, "db/0") == own(hooks, "db/1") == LIFE
    assert {each.condition.state for each in units(store).values()} == {"started"}
    assert settle(store) == []
    deploy(store, declared("db", "h1", "h2"))
    assert settle(store, run="r2") == []
    assert [each.leader for each in units(store).values()] == [True, False]


def test_related_services_run_relation_hooks_and_read_settings(store: Store) -> None:
    def publish(step: UnitStep) -> Changes:
        return sets(step, user="ann", password="pw")

    deploy(store, *BOTH)
    hooks = settle(store, {"db db-relation-joined": publish})
    assert own(hooks, "db/0") == [*LIFE, "db-relation-joined web/0 [web/0]", "db-relation-changed web/0 [web/0]"]
    assert own(hooks, "web/0") == [
        *LIFE,
        "db-relation-joined db/0 [db/0]",
        "db-relation-changed db/0 [db/0]",
    ]
    found = read(store, "web/0", "relation", "db:0", "db/0")
    assert found == {"user": "ann", "password": "pw", "private-address": "10.0.0.h1"}
    assert read(store, "web/0", "relation", "db:0", "web/0") == {"private-address": "10.0.0.h2"}


def test_peers_run_relation_hooks_when_they_come_and_go(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2", "h3"), related("db:ring"))
    hooks = settle(store)
    assert own(hooks, "db/1")[3:] == [
        "ring-relation-joined db/0 [db/0]",
        "ring-relation-changed db/0 [db/0]",
        "ring-relation-joined db/2 [db/0 db/2]",
        "ring-relation-changed db/2 [db/0 db/2]",
    ]
    deploy(store, declared("db", "h1", "h3"), related("db:ring"), prune=True)
    hooks = settle(store)
    assert own(hooks, "db/1") == [
        "ring-relation-departed db/0 [db/2]",
        "ring-relation-departed db/2 []",
        "ring-relation-broken []",
        "stop",
    ]
    assert own(hooks, "db/0") == ["ring-relation-departed db/1 [db/2]"]
    assert rows(store, "unit") == 2 and rows(store, "relation_unit") == 2 and rows(store, "unit_event") == 0


def test_a_step_describes_its_hook_relation_and_goal(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store, only=["db/0"])
    commit(store, step_of(store, "web/0"))
    commit(store, step_of(store, "web/0"))
    start = step_of(store, "web/0")
    assert (start.hook, start.relation, dict(start.around.relations), start.now.leader, start.last) == (
        "start",
        None,
        {},
        True,
        False,
    )
    commit(store, start)
    joined = step_of(store, "web/0")
    assert joined.relation is not None
    assert (joined.relation.id, joined.relation.remote, joined.relation.broken) == ("db:0", "db/0", False)
    assert dict(joined.around.relations) == {"db:0": ("db/0",)} and joined.hooks == ("db-relation-joined",)
    assert dict(step_of(store, "db/0").around.relations) == {"db:0": ("web/0",)}
    assert joined.around.goal == {
        "units": {"web/0": {"status": "waiting"}},
        "relations": {"db": {"db": {"status": "joined"}, "db/0": {"status": "waiting"}}},
    }


def step_of(store: Store, name: str, run: str = "r") -> UnitStep:
    step = next_of(store, name, run)
    assert step is not None
    return step


def test_changes_of_a_hook_are_merged_with_the_current_values(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store, {"db db-relation-joined": lambda step: sets(step, a="1", b="1", c="1")})
    tell(store, "web/0", go="1")
    slow = step_of(store, "db/0")
    # Meanwhile, another hook of the unit also writes.
    tell(store, "db/0", a="2", d="2")
    change: Changes = {
        "relations": {"db:0": {"set": {"b": "3"}, "delete": ["c", "never"]}},
        "leader": {"set": {"l": "1"}},
    }
    commit(store, slow, change)
    expected = {"a": "2", "b": "3", "d": "2", "private-address": "10.0.0.h1"}
    assert read(store, "db/0", "relation", "db:0", "db/0") == expected
    assert read(store, "db/0", "leader") == {"l": "1"}


def tell(store: Store, name: str, **values: str) -> set[int]:
    """Make a hook of a unit due, and let it set values in the relation."""
    deploy_again(store)
    return commit(store, step_of(store, name), {"relations": {"db:0": {"set": values}}})


_titles = iter(range(10**6))


def deploy_again(store: Store) -> None:
    """Change the settings of both services, so that each unit has a hook due."""
    for name in ("db", "web"):
        services.set_settings(store, PROJECT, name, {"title": f"t{next(_titles)}"})


def test_only_other_units_are_told_of_real_changes(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store)
    db, web = (units(store)[name].id for name in ("db/0", "web/0"))
    assert tell(store, "db/0", a="1") == {web}
    assert tell(store, "db/0", a="1") == set()
    assert tell(store, "web/0", b="1") == {db}
    assert [hook for hook in settle(store) if "relation" in hook] == [
        "web/0 db-relation-changed db/0 [db/0]",
        "db/0 db-relation-changed web/0 [web/0]",
    ]


def test_a_change_during_a_hook_causes_another_hook(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store)
    tell(store, "db/0", a="1")
    settle_own_life(store)
    running = step_of(store, "web/0")
    assert running.hook == "db-relation-changed"
    tell(store, "db/0", a="2")
    settle_own_life(store, "db/0")
    commit(store, running)
    assert settle(store, only=["web/0"])[-1] == "web/0 db-relation-changed db/0 [db/0]"
    assert settle(store, only=["web/0"]) == []


def settle_own_life(store: Store, *names: str) -> None:
    """Run the due hooks that belong to no relation."""
    for name in names or units(store):
        while (step := next_of(store, name)) is not None and step.relation is None:
            commit(store, step)


def test_a_unit_removed_during_its_joined_hook_departs(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store, only=["db/0"])
    settle_own_life(store)
    joined = step_of(store, "web/0")
    assert joined.hook == "db-relation-joined"
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    assert own(settle(store, only=["db/0"]), "db/0") == ["db-relation-broken []", "stop"]
    commit(store, joined)
    assert read(store, "web/0", "relation", "db:0", "db/0") == {"private-address": "10.0.0.h1"}
    assert settle(store) == ["web/0 db-relation-departed db/0 []"]
    with pytest.raises(UnitError, match=r"The relation 'db' has no unit state for 'db/0'"):
        read(store, "web/0", "relation", "db:0", "db/0")
    assert rows(store, "unit") == 1


def test_a_unit_removed_before_its_joined_hook_is_never_announced(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store, only=["db/0"])
    settle_own_life(store)
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    settle(store, only=["db/0"])
    assert settle(store) == []


def test_unit_numbers_are_never_reused(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2"))
    settle(store)
    services.set_settings(store, PROJECT, "db", {"title": "T"})
    deploy(store, prune=True)
    hooks = settle(store)
    assert own(hooks, "db/0") == own(hooks, "db/1") == ["stop"]
    assert units(store) == {}
    deploy(store, declared("db", "h1"))
    assert list(units(store)) == ["db/2"]
    assert services.get_settings(store, PROJECT, "db")["title"] == "My Title", "settings go with their service"
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1"], time.time()))
    assert settle(store) == [], "a unit that was never installed runs no stop hook"
    assert units(store) == {}
    deploy(store, declared("db", "h1"))
    assert services.add_unit(store, PROJECT, "db").name == "db/4"


def test_a_service_is_destroyed_with_its_relations(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store)
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1", "h2"], time.time()))
    hooks = settle(store)
    for name, other in (("db/0", "web/0"), ("web/0", "db/0")):
        assert own(hooks, name) == [f"db-relation-departed {other} []", "db-relation-broken []", "stop"]
    assert services.show(store, PROJECT) == services.Snapshot({}, {}, [])
    assert [rows(store, name) for name in ("unit", "relation", "relation_unit", "unit_event", "service")] == [
        0,
        0,
        0,
        0,
        2,
    ]


def test_destroying_one_host_removes_only_its_units(store: Store) -> None:
    deploy(store, declared("db", "h1", "h3"), WEB, BOTH[2])
    settle(store)
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1"], time.time()))
    assert sorted(settle(store)) == [
        "db/0 db-relation-broken []",
        "db/0 db-relation-departed web/0 []",
        "db/0 stop",
        "web/0 db-relation-departed db/0 [db/1]",
    ]
    assert list(services.show(store, PROJECT).services) == ["db", "web"]


def test_pruning_a_relation_runs_departed_and_broken_hooks(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store)
    deploy(store, DB, WEB)
    assert settle(store) == [], "without prune, the relation stays"
    deploy(store, DB, WEB, prune=True)
    step = step_of(store, "db/0")
    assert step.relation is not None and step.relation.members == () and not step.relation.broken
    commit(store, step)
    step = step_of(store, "db/0")
    assert step.relation is not None and step.relation.broken and step.relation.remote == ""
    hooks = settle(store)
    assert own(hooks, "db/0") == ["db-relation-broken []"]
    assert own(hooks, "web/0") == ["db-relation-departed db/0 []", "db-relation-broken []"]
    assert rows(store, "relation") == rows(store, "relation_unit") == 0
    deploy(store, *BOTH)
    assert "db/0 db-relation-joined web/0 [web/0]" in settle(store)
    assert [each.number for each in services.show(store, PROJECT).relations] == [1]


def test_prune_keeps_units_and_relations_added_by_hand(store: Store) -> None:
    deploy(store, DB, WEB)
    assert services.relate(store, PROJECT, [("web", "cache"), ("db", "cache")])
    assert not services.relate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert services.add_unit(store, PROJECT, "db", "h9").name == "db/1"
    assert services.add_unit(store, PROJECT, "db").host == "h1"
    deploy(store, DB, WEB, prune=True)
    settle(store)
    deploy(store, DB, WEB, prune=True)
    assert settle(store) == []
    assert list(units(store)) == ["db/0", "db/1", "db/2", "web/0"]
    assert services.unrelate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert not services.unrelate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert sum("broken" in hook for hook in settle(store)) == 4


def test_deploy_does_not_restore_units_and_relations_removed_by_hand(store: Store) -> None:
    both = (declared("db", "h1", "h2"), WEB, related("web:db", "db:db"))
    deploy(store, *both)
    settle(store)
    assert services.remove_unit(store, PROJECT, "db/1").dying
    assert services.unrelate(store, PROJECT, [("web", "db"), ("db", "db")])
    for run in "12":
        deploy(store, *both, prune=True)
        settle(store, run=run)
        assert list(units(store)) == ["db/0", "web/0"]
        assert services.show(store, PROJECT).relations == []
    assert services.relate(store, PROJECT, [("web", "db"), ("db", "db")])
    assert services.show(store, PROJECT).relations[0].playbook == PLAYBOOK
    assert services.add_unit(store, PROJECT, "db", "h2").name == "db/2"
    deploy(store, declared("db", "h1"), WEB, prune=True)
    settle(store)
    assert list(units(store)) == ["db/0", "web/0"], "the playbook owns the units again"
    assert services.show(store, PROJECT).relations == []


def test_units_follow_added_and_pruned_hosts(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2"))
    deploy(store, declared("db", "h2", "h3"))
    assert [each.host for each in units(store).values()] == ["h1", "h2", "h3"]
    deploy(store, declared("db", "h2", "h3"), prune=True)
    assert [each.name for each in units(store).values() if each.dying] == ["db/0"]
    # A dying unit is not revived. Its host gets a new one.
    deploy(store, declared("db", "h1", "h2", "h3"))
    assert [each.name for each in units(store).values() if each.host == "h1"] == ["db/0", "db/3"]
    settle(store)
    assert list(units(store)) == ["db/1", "db/2", "db/3"]


def test_a_service_of_another_playbook_is_refused(store: Store) -> None:
    deploy(store, DB, playbook="shop/one.yml")
    with pytest.raises(InvalidInput) as refused:
        deploy(store, WEB, DB)
    assert [each.code for each in refused.value.problems] == ["SC0751"]
    assert list(units(store)) == ["db/0"], "the refused deployment changed nothing"
    with pytest.raises(InvalidInput) as refused:
        deploy(store, WEB, related("web:db", "dc:db"))
    assert "`dc`" in refused.value.problems[0].detail
    deploy(store, playbook="shop/one.yml", prune=True)
    settle(store)
    deploy(store, DB)
    assert list(units(store)) == ["db/1"]


def test_projects_do_not_share_services(store: Store) -> None:
    deploy(store, DB)
    now = time.time()
    store.attempt(lambda connection: services.deploy_in(connection, "other", "other/x.yml", [DB], [], {}, True, now))
    assert list(units(store)) == ["db/0"]
    assert list(services.show(store, "other").units) == ["db/0"]
    services.remove_unit(store, "other", "db/0")
    assert not units(store)["db/0"].dying


def test_a_failed_hook_is_retried_only_in_another_run(store: Store) -> None:
    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 3.")

    deploy(store, DB)
    assert settle(store, {"db start": fails}) == [f"db/0 {hook}" for hook in LIFE]
    assert (units(store)["db/0"].condition.state, units(store)["db/0"].condition.why) == ("start_error", "exit code 3.")
    assert settle(store) == [], "a failed hook is not repeated in the same run"
    step = step_of(store, "db/0", "r2")
    assert step.now.failed_before and step.hook == "start"
    assert settle(store, run="r2") == ["db/0 start"]
    assert (units(store)["db/0"].condition.state, units(store)["db/0"].condition.why) == ("started", "")


def test_a_failed_relation_hook_is_retried_for_remaining_units(store: Store) -> None:
    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 1.")

    deploy(store, declared("db", "h1", "h3"), WEB, BOTH[2])
    settle(store, {"web db-relation-joined": fails})
    assert units(store)["web/0"].condition.relation_errors == {"db:0": "db-relation-joined: exit code 1."}
    assert units(store)["web/0"].condition.state == "started"
    tell(store, "db/0", a="1")
    tell(store, "db/1", a="1")
    settle(store)
    # The unit that is removed now was never announced to web/0.
    deploy(store, declared("db", "h1"), WEB, BOTH[2], prune=True)
    settle(store)
    assert [hook for hook in settle(store, run="r2") if "relation" in hook] == [
        "web/0 db-relation-joined db/0 [db/0]",
        "web/0 db-relation-changed db/0 [db/0]",
    ]
    assert units(store)["web/0"].condition.relation_errors == {}


def test_removing_a_unit_clears_its_failed_joined_hook(store: Store) -> None:
    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    settle(store, {"web db-relation-joined": fails})
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    settle(store, run="r2", only=["db/0"])
    assert units(store)["web/0"].condition.relation_errors == {}
    assert settle(store, run="r3") == []


@pytest.mark.parametrize("failing", ["install", "config-changed", "start", "upgrade-charm", "stop"])
def test_resolve_continues_as_if_the_failed_hook_succeeded(store: Store, failing: str) -> None:
    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 1.")

    deploy(store, DB)
    for run, parts in (("r1", [DB]), ("r2", [declared("db", "h1", digest="c2")]), ("r3", [])):
        deploy(store, *parts, prune=True)
        settle(store, {f"db {failing}": fails}, run=run)
        if "db/0" in units(store) and units(store)["db/0"].condition.state.endswith("_error"):
            break
    assert services.resolve(store, PROJECT, "db/0", retry=False) == [failing]
    assert services.resolve(store, PROJECT, "db/0", retry=False) == []
    after = {"install": ["config-changed", "start"], "config-changed": ["start"]}.get(failing, [])
    assert settle(store) == [f"db/0 {hook}" for hook in after]
    assert [each.condition.state for each in units(store).values()] == ([] if failing == "stop" else ["started"])


@pytest.mark.parametrize("kind", ["joined", "changed", "departed", "broken"])
def test_resolve_retries_or_skips_a_failed_relation_hook(store: Store, kind: str) -> None:
    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    settle(store, {f"web db-relation-{kind}": fails})
    if kind in ("departed", "broken"):
        deploy(store, DB, WEB, prune=True)
        settle(store, {f"web db-relation-{kind}": fails})
    assert list(units(store)["web/0"].condition.relation_errors) == ["db:0"]
    assert services.resolve(store, PROJECT, "web/0", retry=True) == [f"db-relation-{kind}"]
    assert step_of(store, "web/0").hook == f"db-relation-{kind}", "the hook is due again in the same run"
    assert services.resolve(store, PROJECT, "web/0", retry=False) == [f"db-relation-{kind}"]
    assert units(store)["web/0"].condition.relation_errors == {}
    after = {"joined": ["db-relation-changed db/0 [db/0]"], "departed": ["db-relation-broken []"]}.get(kind, [])
    assert own(settle(store), "web/0") == after


def test_resolve_skips_only_what_the_failed_hook_had_seen(store: Store) -> None:
    """Changes that the failed hook had not seen cause another hook."""

    def fails(step: UnitStep) -> Changes:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    settle(store)
    tell(store, "db/0", a="1")
    settle(store, {"web db-relation-changed": fails})
    tell(store, "db/0", a="2")
    assert services.resolve(store, PROJECT, "web/0", retry=False) == ["db-relation-changed"]
    assert "web/0 db-relation-changed db/0 [db/0]" in settle(store)
    services.set_settings(store, PROJECT, "db", {"size": 40})
    settle(store, {"db config-changed": fails})
    services.set_settings(store, PROJECT, "db", {"size": 41})
    assert services.resolve(store, PROJECT, "db/0", retry=False) == ["config-changed"]
    assert settle(store, run="r2") == ["db/0 config-changed"]
    deploy(store, declared("db", "h1", digest="c2"), WEB, BOTH[2])
    settle(store, {"db upgrade-charm": fails}, run="r3")
    deploy(store, declared("db", "h1", digest="c3"), WEB, BOTH[2])
    assert services.resolve(store, PROJECT, "db/0", retry=False) == ["upgrade-charm"]
    assert settle(store, run="r4") == ["db/0 upgrade-charm"]


def test_settings_follow_precedence_and_changes_run_config_changed(store: Store) -> None:
    deploy(store, declared("db", "h1", settings={"size": 3}))
    settle(store)
    assert read(store, "db/0", "config") == {"title": "My Title", "size": 3, "key": None}
    services.set_settings(store, PROJECT, "db", {"title": "T", "size": 4})
    assert services.get_settings(store, PROJECT, "db") == {"title": "T", "size": 4}
    assert settle(store) == ["db/0 config-changed"]
    services.set_settings(store, PROJECT, "db", {}, ["size"])
    assert read(store, "db/0", "config") == {"title": "T", "size": 3, "key": None}
    deploy(store, declared("db", "h1", settings={"size": 5, "title": "P"}))
    assert services.get_settings(store, PROJECT, "db") == {"title": "T", "size": 5}
    # Several changes cause only one hook. A change to the same value causes none.
    deploy(store, declared("db", "h1", settings={"size": 3, "title": "P"}))
    services.set_settings(store, PROJECT, "db", {"title": "My Title"})
    assert settle(store) == ["db/0 config-changed"]
    services.set_settings(store, PROJECT, "db", {"size": 3})
    assert settle(store) == []


def test_secrets_are_not_stored_and_their_change_runs_a_hook(store: Store) -> None:
    def with_key(key: str) -> Declared:
        return declared("db", "h1", secrets={"key": key})

    deploy(store, with_key("Hunter-2-Hunter"))
    settle(store)
    assert read(store, "db/0", "config", key="Hunter-2-Hunter")["key"] == "Hunter-2-Hunter"
    deploy(store, with_key("Hunter-2-Hunter"))
    assert settle(store) == []
    deploy(store, with_key("Hunter-3-Hunter"))
    assert settle(store) == ["db/0 config-changed"]
    with store.reading() as connection:
        for table in ("service", "unit"):
            found = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
            assert "Hunter" not in repr(found)
    if store.address.path is not None:
        assert all(b"Hunter" not in path.read_bytes() for path in store.address.path.parent.iterdir())


def test_a_changed_address_is_told_unless_a_hook_set_it(store: Store) -> None:
    deploy(store, *BOTH)
    settle(store)
    web = units(store)["web/0"].id

    def moved(address: str) -> set[int]:
        found = {"private-address": address, "public-address": "db.example"}
        return store.attempt(lambda connection: services.addressed_in(connection, PROJECT, "h1", found))

    assert moved("10.1.1.1") == {web}
    assert moved("10.1.1.1") == set()
    assert units(store)["db/0"].network.addresses == {"private-address": "10.1.1.1", "public-address": "db.example"}
    assert read(store, "web/0", "relation", "db:0", "db/0") == {"private-address": "10.1.1.1"}
    assert settle(store) == ["web/0 db-relation-changed db/0 [db/0]"]
    # A new address does not replace a value that a hook has set.
    commit_own(store, "db/0", "private-address", "vip.example")
    assert moved("10.2.2.2") == set()


def commit_own(store: Store, name: str, key: str, value: str) -> None:
    deploy_again(store)
    commit(store, step_of(store, name), {"relations": {"db:0": {"set": {key: value}}}})


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
    settle(store)
    for node, code in (
        (("relation", "db:0", "web/9"), "NoSuchUnit"),
        (("relation", "cache:0", "db/0"), "UnitRelationStateNotFound"),
        (("relation", "db:99999999999999999999", "db/0"), "UnitRelationStateNotFound"),
        (("relation", "db", "db/0"), "UnitRelationStateNotFound"),
    ):
        with pytest.raises(UnitError) as refused:
            read(store, "web/0", *node)
        assert refused.value.code == code
    deploy_again(store)
    step = step_of(store, "web/0")
    with pytest.raises(UnitError):
        commit(store, step, {"relations": {"db:0": {"set": {"a": "1"}}, "db:7": {"set": {"a": "1"}}}})
    assert "a" not in read(store, "web/0", "relation", "db:0", "web/0"), "a refused commit changes nothing"
    number = units(store)["web/0"].id
    store.attempt(lambda connection: services.gone_in(connection, number, time.time()))
    with pytest.raises(UnitError), store.reading() as connection:
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
    with pytest.raises(UnitError):
        services.log(store, PROJECT, [(1.0, "web/0", "start", 20, "kept?"), (1.0, "wed/0", "start", 20, "")])
    assert rows(store, "unit_log") == 10_001
    services.log(store, PROJECT, [])
