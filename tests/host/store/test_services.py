"""Services, units and relations in the store, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import time

import pytest

from statecfg.problems import InvalidInput
from statecfg.store import services
from statecfg.store.database import Store
from statecfg.store.units.records import DueStep, StoredChanges, UnitRequestError
from tests.host.store.running import (
    PLAYBOOK,
    PROJECT,
    commit,
    declared,
    deploy,
    read,
    related,
    run_hooks,
    sets,
    units,
)
from tests.host.store.service_store import BOTH, DB, LIFE, WEB, own, rows, run_own_life, shared, step_of, store, tell

__all__ = ["shared", "store"]


def test_new_units_run_their_lifecycle_hooks_once(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2"))
    assert [(each.name, each.host, each.condition.state) for each in units(store).values()] == [
        ("db/0", "h1", "new"),
        ("db/1", "h2", "new"),
    ]
    hooks = run_hooks(store)
    assert own(hooks, "db/0") == own(hooks, "db/1") == LIFE
    assert {each.condition.state for each in units(store).values()} == {"started"}
    assert run_hooks(store) == []
    deploy(store, declared("db", "h1", "h2"))
    assert run_hooks(store, run="r2") == []
    assert [each.leader for each in units(store).values()] == [True, False]


def test_related_services_run_relation_hooks_and_read_settings(store: Store) -> None:
    def publish(step: DueStep) -> StoredChanges:
        return sets(step, user="ann", password="pw")

    deploy(store, *BOTH)
    hooks = run_hooks(store, {"db db-relation-joined": publish})
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
    hooks = run_hooks(store)
    assert own(hooks, "db/1")[3:] == [
        "ring-relation-joined db/0 [db/0]",
        "ring-relation-changed db/0 [db/0]",
        "ring-relation-joined db/2 [db/0 db/2]",
        "ring-relation-changed db/2 [db/0 db/2]",
    ]
    deploy(store, declared("db", "h1", "h3"), related("db:ring"), prune=True)
    hooks = run_hooks(store)
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
    run_hooks(store, only=["db/0"])
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


def test_changes_of_a_hook_are_merged_with_the_current_values(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store, {"db db-relation-joined": lambda step: sets(step, a="1", b="1", c="1")})
    tell(store, "web/0", go="1")
    slow = step_of(store, "db/0")
    # Meanwhile, another hook of the unit also writes.
    tell(store, "db/0", a="2", d="2")
    change: StoredChanges = {
        "relations": {"db:0": {"set": {"b": "3"}, "delete": ["c", "never"]}},
        "leader": {"set": {"l": "1"}},
    }
    commit(store, slow, change)
    expected = {"a": "2", "b": "3", "d": "2", "private-address": "10.0.0.h1"}
    assert read(store, "db/0", "relation", "db:0", "db/0") == expected
    assert read(store, "db/0", "leader") == {"l": "1"}


def test_only_other_units_are_told_of_real_changes(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    db, web = (units(store)[name].id for name in ("db/0", "web/0"))
    assert tell(store, "db/0", a="1") == {web}
    assert tell(store, "db/0", a="1") == set()
    assert tell(store, "web/0", b="1") == {db}
    assert [hook for hook in run_hooks(store) if "relation" in hook] == [
        "web/0 db-relation-changed db/0 [db/0]",
        "db/0 db-relation-changed web/0 [web/0]",
    ]


def test_a_change_during_a_hook_causes_another_hook(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    tell(store, "db/0", a="1")
    run_own_life(store)
    running = step_of(store, "web/0")
    assert running.hook == "db-relation-changed"
    tell(store, "db/0", a="2")
    run_own_life(store, "db/0")
    commit(store, running)
    assert run_hooks(store, only=["web/0"])[-1] == "web/0 db-relation-changed db/0 [db/0]"
    assert run_hooks(store, only=["web/0"]) == []


def test_a_unit_removed_during_its_joined_hook_departs(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store, only=["db/0"])
    run_own_life(store)
    joined = step_of(store, "web/0")
    assert joined.hook == "db-relation-joined"
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    assert own(run_hooks(store, only=["db/0"]), "db/0") == ["db-relation-broken []", "stop"]
    commit(store, joined)
    assert read(store, "web/0", "relation", "db:0", "db/0") == {"private-address": "10.0.0.h1"}
    assert run_hooks(store) == ["web/0 db-relation-departed db/0 []"]
    with pytest.raises(UnitRequestError, match=r"The relation 'db' has no unit state for 'db/0'"):
        read(store, "web/0", "relation", "db:0", "db/0")
    assert rows(store, "unit") == 1


def test_a_unit_removed_before_its_joined_hook_is_never_announced(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store, only=["db/0"])
    run_own_life(store)
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    run_hooks(store, only=["db/0"])
    assert run_hooks(store) == []


def test_unit_numbers_are_never_reused(store: Store) -> None:
    deploy(store, declared("db", "h1", "h2"))
    run_hooks(store)
    services.set_settings(store, PROJECT, "db", {"title": "T"})
    deploy(store, prune=True)
    hooks = run_hooks(store)
    assert own(hooks, "db/0") == own(hooks, "db/1") == ["stop"]
    assert units(store) == {}
    deploy(store, declared("db", "h1"))
    assert list(units(store)) == ["db/2"]
    assert services.get_settings(store, PROJECT, "db")["title"] == "My Title", "settings go with their service"
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1"], time.time()))
    assert run_hooks(store) == [], "a unit that was never installed runs no stop hook"
    assert units(store) == {}
    deploy(store, declared("db", "h1"))
    assert services.add_unit(store, PROJECT, "db").name == "db/4"


def test_a_service_is_destroyed_with_its_relations(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1", "h2"], time.time()))
    hooks = run_hooks(store)
    for name, other in (("db/0", "web/0"), ("web/0", "db/0")):
        assert own(hooks, name) == [f"db-relation-departed {other} []", "db-relation-broken []", "stop"]
    assert services.show(store, PROJECT) == services.ServicesSnapshot({}, {}, [])
    assert [rows(store, name) for name in ("unit", "relation", "relation_unit", "unit_event", "service")] == [
        0,
        0,
        0,
        0,
        2,
    ]


def test_destroying_one_host_removes_only_its_units(store: Store) -> None:
    deploy(store, declared("db", "h1", "h3"), WEB, BOTH[2])
    run_hooks(store)
    store.attempt(lambda connection: services.leave_in(connection, PROJECT, PLAYBOOK, ["h1"], time.time()))
    assert sorted(run_hooks(store)) == [
        "db/0 db-relation-broken []",
        "db/0 db-relation-departed web/0 []",
        "db/0 stop",
        "web/0 db-relation-departed db/0 [db/1]",
    ]
    assert list(services.show(store, PROJECT).services) == ["db", "web"]


def test_pruning_a_relation_runs_departed_and_broken_hooks(store: Store) -> None:
    deploy(store, *BOTH)
    run_hooks(store)
    deploy(store, DB, WEB)
    assert run_hooks(store) == [], "without prune, the relation stays"
    deploy(store, DB, WEB, prune=True)
    step = step_of(store, "db/0")
    assert step.relation is not None and step.relation.members == () and not step.relation.broken
    commit(store, step)
    step = step_of(store, "db/0")
    assert step.relation is not None and step.relation.broken and step.relation.remote == ""
    hooks = run_hooks(store)
    assert own(hooks, "db/0") == ["db-relation-broken []"]
    assert own(hooks, "web/0") == ["db-relation-departed db/0 []", "db-relation-broken []"]
    assert rows(store, "relation") == rows(store, "relation_unit") == 0
    deploy(store, *BOTH)
    assert "db/0 db-relation-joined web/0 [web/0]" in run_hooks(store)
    assert [each.number for each in services.show(store, PROJECT).relations] == [1]


def test_prune_keeps_units_and_relations_added_by_hand(store: Store) -> None:
    deploy(store, DB, WEB)
    assert services.relate(store, PROJECT, [("web", "cache"), ("db", "cache")])
    assert not services.relate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert services.add_unit(store, PROJECT, "db", "h9").name == "db/1"
    assert services.add_unit(store, PROJECT, "db").host == "h1"
    deploy(store, DB, WEB, prune=True)
    run_hooks(store)
    deploy(store, DB, WEB, prune=True)
    assert run_hooks(store) == []
    assert list(units(store)) == ["db/0", "db/1", "db/2", "web/0"]
    assert services.unrelate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert not services.unrelate(store, PROJECT, [("db", "cache"), ("web", "cache")])
    assert sum("broken" in hook for hook in run_hooks(store)) == 4


def test_deploy_does_not_restore_units_and_relations_removed_by_hand(store: Store) -> None:
    both = (declared("db", "h1", "h2"), WEB, related("web:db", "db:db"))
    deploy(store, *both)
    run_hooks(store)
    assert services.remove_unit(store, PROJECT, "db/1").dying
    assert services.unrelate(store, PROJECT, [("web", "db"), ("db", "db")])
    for run in "12":
        deploy(store, *both, prune=True)
        run_hooks(store, run=run)
        assert list(units(store)) == ["db/0", "web/0"]
        assert services.show(store, PROJECT).relations == []
    assert services.relate(store, PROJECT, [("web", "db"), ("db", "db")])
    assert services.show(store, PROJECT).relations[0].playbook == PLAYBOOK
    assert services.add_unit(store, PROJECT, "db", "h2").name == "db/2"
    deploy(store, declared("db", "h1"), WEB, prune=True)
    run_hooks(store)
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
    run_hooks(store)
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
    run_hooks(store)
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
