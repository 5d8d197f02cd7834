"""Runs hooks of units like a real run, but without hosts. Each hook is a Python function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection as Pipe
from typing import Any

from statecfg.store import opened, services
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.units.records import Declared, DeclaredRelation, DueStep, StoredChanges, UnitRow

PROJECT, PLAYBOOK = "shop", "shop/playbooks/web.yml"
HOSTS = ("h1", "h2", "h3")
SCHEMA = {"title": {"type": "string", "default": "My Title"}, "size": {"type": "int"}, "key": {"type": "secret"}}

Program = Callable[[DueStep], StoredChanges]


class Failed(Exception):
    """Raised by a hook to fail."""


def declared(name: str, *hosts: str, **changes: Any) -> Declared:
    """Return the declaration of a service on these hosts."""
    values: dict[str, Any] = {"charm": name, "digest": "c1", "schema": SCHEMA, "settings": {}, "timeout": 60.0}
    return Declared(name, tuple(hosts), **{**values, **changes})


def related(*ends: str) -> DeclaredRelation:
    """Return the declaration of a relation between ends such as "web:db"."""
    return DeclaredRelation(tuple((name, called) for name, _, called in (end.partition(":") for end in ends)))


def deploy(
    store: Store,
    *parts: Declared | DeclaredRelation,
    prune: bool = False,
    playbook: str = PLAYBOOK,
    addresses: Mapping[str, str] | None = None,
) -> None:
    """Deploy services and relations. By default, the address of each host contains its name."""
    found = [each for each in parts if isinstance(each, Declared)]
    relations = [each for each in parts if isinstance(each, DeclaredRelation)]
    hosts = {host for each in found for host in each.hosts}
    known = addresses or {host: f"10.0.0.{host}" for host in hosts}
    each_known = {host: {"private-address": at, "public-address": at} for host, at in known.items()}
    store.attempt(
        lambda connection: services.deploy_in(
            connection, PROJECT, playbook, found, relations, each_known, prune, time.time()
        )
    )


def units(store: Store) -> dict[str, UnitRow]:
    """Return the existing units by name."""
    with store.reading() as connection:
        return {each.name: each for each in services.units_in(connection, PROJECT)}


def next_of(store: Store, name: str, run: str = "r") -> DueStep | None:
    """Return the next step of a unit, if one is due."""
    with store.reading() as connection:
        return services.next_in(connection, units(store)[name].id, run)


def commit(store: Store, step: DueStep, changes: StoredChanges | None = None, run: str = "r") -> set[int]:
    """Store that a hook succeeded, with its changes. Return the ids of the units that this concerns."""
    return store.attempt(lambda connection: services.commit_in(connection, step, run, changes or {}, time.time()))


def fail(store: Store, step: DueStep, run: str = "r", error: str = "exit code 1.") -> None:
    """Store that a hook failed."""
    store.attempt(lambda connection: services.fail_in(connection, step, run, error, time.time()))


def sets(step: DueStep, **values: str) -> StoredChanges:
    """Return the changes of a relation hook that sets these values in its relation."""
    assert step.relation is not None
    return {"relations": {step.relation.id: {"set": values}}}


def told(step: DueStep) -> str:
    """Describe a hook as text, for example `web/0 db-relation-joined db/0 [db/0]`."""
    about = step.relation
    shown = "" if about is None else f" {about.remote} [{' '.join(about.members)}]"
    return f"{step.unit} {step.hook}{shown}".replace("  ", " ")


def run_hooks(
    store: Store, programs: Mapping[str, Program] | None = None, run: str = "r", only: Sequence[str] = ()
) -> list[str]:
    """Run hooks until none is due. Return them as texts. The units take turns in the order of their names.

    All hooks share one transaction to save time. A real run has one transaction for each hook.

    :param programs: service and hook, such as "db db-relation-joined" → its function; other hooks do nothing
    :param only: run only the hooks of these units
    """
    with store.transaction() as connection:
        return list(_run_hooks(connection, programs or {}, run, only))


def _run_hooks(connection: Connection, programs: Mapping[str, Program], run: str, only: Sequence[str]) -> Iterator[str]:
    quiet, count = False, 0
    while not quiet:
        quiet = True
        for known in services.units_in(connection, PROJECT):
            step = services.next_in(connection, known.id, run) if not only or known.name in only else None
            if step is None:
                if services.over_in(connection, known.id):
                    services.gone_in(connection, known.id, time.time())
                continue
            quiet, count = False, count + 1
            assert count < 500, "over 500 hooks ran, and more are due"
            yield told(step)
            try:
                changes = programs.get(f"{step.service} {step.hook}", lambda _: {})(step)
            except Failed as problem:
                services.fail_in(connection, step, run, str(problem), time.time())
            else:
                services.commit_in(connection, step, run, changes, time.time())


def read(store: Store, name: str, *node: str, **secrets: str) -> dict[str, Any]:
    """Return the settings in a node, as a unit reads them."""
    with store.reading() as connection:
        return services.read_in(connection, units(store)[name].id, node, secrets)


# Functions that tests run in separate processes: see `workers.started`.

KEYS = [f"k{number}" for number in range(20)]


def add_units(pipe: Pipe, url: str, times: int) -> None:
    """Deploy the service and add units to it. Send the name of each unit after it is stored."""
    with opened(url=url) as store:
        deploy(store, declared("db", *HOSTS))
        for _ in range(times):
            pipe.send(services.add_unit(store, PROJECT, "db").name)


def publish(pipe: Pipe, url: str) -> None:
    """Commit hooks, each of which sets one number under many keys. Send each number after it is stored."""
    with opened(url=url) as store:
        number = int(read(store, "db/0", "leader").get("k0", 0))
        while True:
            number += 1
            services.set_settings(store, PROJECT, "db", {"size": number, "title": f"{os.getpid()} {number}"})
            step = next_of(store, "db/0")
            assert step is not None and step.hook == "config-changed"
            values = dict.fromkeys(KEYS, str(number))
            commit(store, step, {"relations": {"db:0": {"set": values}}, "leader": {"set": values}})
            pipe.send(number)
