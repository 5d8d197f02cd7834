"""Marks of the store: the mark of a topic moves when the data of that topic change, and only then."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import insert, update

from statecfg.store import hosts, marks, runs, tables
from statecfg.store import service_tables as services
from statecfg.store.database import Store
from statecfg.store.entities import tables as entities

TOPICS = {"hosts", "runs", "hooks", "services", "entities", "tasks"}
Change = Callable[[Store], object]


def begin(store: Store) -> None:
    runs.begin(store, "r1", time.time(), "apply", "ann@desk", "site.yml", ["web1", "web2"])


def finish(store: Store, host: str = "web1") -> None:
    with store.transaction() as connection:
        runs.host_finished(connection, "r1", host, "ok", {})


def log(store: Store) -> None:
    values = {"at": 1.0, "playbook": "", "severity": "info", "entry": {}, "detail": ""}
    with store.transaction() as connection:
        connection.execute(insert(tables.event).values(values))


def deploy(store: Store) -> None:
    about = {
        "project": "p",
        "name": "web",
        "playbook": "p/a.yml",
        "alive": True,
        "charm": "web",
        "digest": "",
        "endpoints": {},
        "next": 1,
    }
    more = {"schema": {}, "settings": {}, "overrides": {}, "salt": "", "secrets": "", "leader": {}, "timeout": 1.0}
    rest = {"hosts": [], "without": {}, "created": 1.0}
    unit = {"number": 0, "host": "web1", "added": False, "dying": False, "gone": False, "state": "new", "error": ""}
    told = {
        "why": "",
        "tried": "",
        "failed": "",
        "charm": "",
        "configured": "",
        "addresses": {},
        "ports": [],
        "status": "",
        "message": "",
    }
    with store.transaction() as connection:
        made = connection.execute(insert(services.service).values({**about, **more, **rest})).inserted_primary_key
        assert made is not None
        connection.execute(insert(services.unit).values({"service": made[0], **unit, **told, "since": 1.0}))


def status(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(update(services.unit).values(status="active"))


def entity(store: Store) -> None:
    kind = {"id": "t", "name": "t", "vendor": "a", "nss": "t", "version": "1.0.0", "schema": {}, "interfaces": []}
    one = {"id": "e", "type": "t", "name": "e", "content": {}, "state": "PRE_CREATED", "message": "", "revision": 1}
    with store.transaction() as connection:
        connection.execute(insert(entities.entity_type).values({**kind, "hooks": {}, "readonly": False}))
        connection.execute(
            insert(entities.entity).values(
                {**one, "owner": "a", "org": "o", "tenant": "o", "created": 1.0, "modified": 1.0}
            )
        )


def change(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(update(entities.entity).values(revision=2, modified=2.0))


def task(store: Store) -> None:
    who = {
        "id": "k",
        "parent": "",
        "name": "n",
        "operation": "o",
        "entity": "e",
        "entity_name": "e",
        "user": "a",
        "org": "o",
    }
    how = {"role": "author", "status": "running", "progress": 0, "details": "", "result": None, "error": None}
    rest = {"created": 1.0, "work": {}, "serial": True, "worker": ""}
    with store.transaction() as connection:
        connection.execute(insert(entities.task).values({**who, **how, **rest}))


def progress(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute(update(entities.task).values(progress=50))


CHANGES: list[tuple[str, Change]] = [
    ("hosts", lambda store: hosts.check_in(store, "web1", {}, "", "")),
    ("hosts", lambda store: hosts.tag(store, "web1", ["a"])),
    ("hosts", lambda store: hosts.set_metadata(store, "web1", {"rack": 1})),
    ("hosts", lambda store: hosts.bind(store, "web1", "a.yml")),
    ("hosts", lambda store: hosts.forget(store, "web1")),
    ("runs", begin),
    ("runs", finish),
    ("runs", lambda store: finish(store, "web2")),
    ("runs", lambda store: runs.beat(store, "r1", over=True)),
    ("runs", lambda store: runs.record(store, {"run": "r1", "mode": "apply", "hosts": {}}, 1.0, 2.0, "ann@desk")),
    ("hooks", log),
    ("services", deploy),
    ("services", status),
    ("entities", entity),
    ("entities", change),
    ("tasks", task),
    ("tasks", progress),
]


def test_each_change_moves_only_the_mark_of_its_topic(store: Store) -> None:
    # A run that was given up counts as cut off at once, because its beat is 0.
    known = marks.read(store, 1.0)
    assert set(known) == TOPICS
    for number, (topic, now) in enumerate(CHANGES):
        assert marks.read(store, 1.0) == known
        now(store)
        after = marks.read(store, 1.0)
        assert {name for name in TOPICS if after[name] != known[name]} == {topic}, CHANGES[number]
        known = after


def test_a_heartbeat_moves_no_mark_but_a_missing_one_does(store: Store) -> None:
    begin(store)
    known = marks.read(store, time.time() - runs.CUT_OFF)
    runs.beat(store, "r1")
    assert marks.read(store, time.time() - runs.CUT_OFF) == known
    later = marks.read(store, time.time() + 1)
    assert {name for name in TOPICS if later[name] != known[name]} == {"runs"}
