"""Services with concurrent writers, and with killed writers, on SQLite and PostgreSQL."""

from __future__ import annotations

import random
import time

from statecfg.store import opened, services
from tests.host.store import workers
from tests.host.store.running import (
    HOSTS,
    KEYS,
    PROJECT,
    add_units,
    declared,
    deploy,
    publish,
    read,
    related,
    run_hooks,
    units,
)


def test_concurrent_controllers_give_each_unit_a_different_number(url: str) -> None:
    """Eight controllers deploy the same service and add units to it at the same moment."""
    with workers.started(*[(add_units, (url, 4))] * 8) as running:
        assert workers.finish(running) == [0] * 8
        names = [name for _, pipe in running for name in workers.everything(pipe)]
    numbers = [int(name.partition("/")[2]) for name in names]
    assert sorted(numbers) == list(range(len(HOSTS), len(HOSTS) + 32))
    with opened(url=url) as store:
        there = units(store)
        assert sorted(each.number for each in there.values()) == list(range(len(HOSTS) + 32))
        assert {there[f"db/{number}"].host for number in range(3)} == set(HOSTS)
        assert services.add_unit(store, PROJECT, "db").number == len(HOSTS) + 32


def test_a_killed_process_leaves_no_partial_hook_changes(url: str) -> None:
    """Acknowledged changes are complete. Other units were told only of changes that are there."""
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    with opened(url=url) as store:
        deploy(store, declared("db", "h1"), declared("web", "h2"), related("web:db", "db:db"))
        run_hooks(store)
    acknowledged = 0
    for _ in range(6):
        with workers.started((publish, (url,))) as running:
            pipe = running[0][1]
            acknowledged = workers.heard(pipe)
            time.sleep(chance.random() * 0.05)
            running[0][0].kill()
            running[0][0].join(20)
            acknowledged = max([acknowledged, *workers.everything(pipe)])
        with opened(url=url) as store:
            found = read(store, "web/0", "relation", "db:0", "db/0")
            leader = read(store, "db/0", "leader")
            kept = int(leader["k0"])
            assert acknowledged <= kept <= acknowledged + 1, seed
            assert {found[key] for key in KEYS} == {leader[key] for key in KEYS} == {str(kept)}, seed
            # The hook counts as run exactly if its changes were written.
            assert services.get_settings(store, PROJECT, "db")["size"] in (kept, kept + 1), seed
            pending = [hook for hook in run_hooks(store) if "relation" in hook]
            assert pending == ["web/0 db-relation-changed db/0 [db/0]"], seed
