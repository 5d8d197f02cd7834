"""Reconciled objects and their pending hook calls, on SQLite and PostgreSQL."""

from __future__ import annotations

import threading
import time

from statecfg.store import hosts, objects
from statecfg.store.database import Store
from statecfg.store.hooks.log import events

SPEC = {"host": "web1", "vars": {"port": 8080}}


def test_an_object_is_created_once_and_its_generation_counts_definitions(store: Store) -> None:
    first = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    assert (first.generation, first.finalizers, first.status, first.deleted) == (1, [], {}, None)
    assert objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64) == first
    second = objects.ensure(store, "site.yml", "web1", SPEC, "b" * 64)
    assert (second.id, second.generation, second.created) == (first.id, 2, first.created)
    assert objects.get(store, "site.yml", "web2") is None
    other = objects.ensure(store, "other.yml", "web1", SPEC, "a" * 64)
    assert objects.get(store, "other.yml", "web1") == other
    assert objects.get(store, "site.yml", "web1") == second


def test_an_object_keeps_its_status_finalizers_and_deletion_time(store: Store) -> None:
    made = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    status = {"conditions": [{"type": "Ready", "status": "True"}], "text": "a\0b ü", "large": 10**30}
    changed = objects.keep_status(store, made, status)
    changed = objects.keep_finalizers(store, changed, ["statecfg/a"])
    changed = objects.delete_asked(store, changed)
    found = objects.get(store, "site.yml", "web1")
    assert found == changed and changed.status == status and changed.finalizers == ["statecfg/a"]
    assert objects.delete_asked(store, changed).deleted == changed.deleted
    objects.forget(store, changed)
    assert objects.get(store, "site.yml", "web1") is None


def test_applying_a_deleted_object_again_cancels_its_deletion(store: Store) -> None:
    made = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    objects.delete_asked(store, made)
    objects.owe(store, made, "h", "finalize", 1, 5, "m")
    objects.owe(store, made, "h", "pre-reconcile", 1, 5, "m")
    again = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    assert again == made
    assert [item.phase for item in objects.owed(store)] == ["pre-reconcile"]


def test_owed_calls_count_attempts_and_disappear_with_their_object(store: Store) -> None:
    made = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    first = objects.owe(store, made, "h", "finalize", 3, 100, "starting")
    second = objects.owe(store, made, "h", "finalize", 2, 5, "still starting")
    assert (second.attempts, second.since, second.error) == (5, first.since, "still starting")
    later = objects.owe(store, made, "k", "pre-reconcile", 1, 50, "m")
    assert objects.owed(store) == [second, later]
    assert objects.owed(store, time.time() + 10) == [second]
    objects.forget_owed(store, made, "h", "finalize")
    objects.forget_owed(store, made, "h", "finalize")
    assert objects.owed(store) == [later]
    objects.forget(store, made)
    assert objects.owed(store) == []


def test_the_result_of_a_call_is_written_to_the_hook_log(store: Store) -> None:
    hosts.tag(store, "web1", ["edge"])
    made = objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64)
    objects.log(store, made, "error", {"hook": "h", "event": "finalize", "status": "owed", "error": "m"})
    (found,) = events(store)
    assert (found.host, found.playbook, found.severity, found.hook) == ("web1", "site.yml", "error", None)
    assert found.entry == {"hook": "h", "event": "finalize", "status": "owed", "error": "m"}


def test_concurrent_threads_create_an_object_once(store: Store) -> None:
    made: list[objects.Reconciled] = []

    def make() -> None:
        made.append(objects.ensure(store, "site.yml", "web1", SPEC, "a" * 64))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(made) == 8 and len({each.id for each in made}) == 1
