"""Stores with services, on SQLite and PostgreSQL, and what the tests of services do with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from statecfg.store import opened, services
from statecfg.store.database import Store
from statecfg.store.units.records import DueStep
from tests.host.store.postgresql import Server
from tests.host.store.running import (
    PROJECT,
    commit,
    declared,
    next_of,
    related,
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


def step_of(store: Store, name: str, run: str = "r") -> DueStep:
    step = next_of(store, name, run)
    assert step is not None
    return step


def tell(store: Store, name: str, **values: str) -> set[int]:
    """Make a hook of a unit due, and let it set values in the relation."""
    deploy_again(store)
    return commit(store, step_of(store, name), {"relations": {"db:0": {"set": values}}})


_titles = iter(range(10**6))


def deploy_again(store: Store) -> None:
    """Change the settings of both services, so that each unit has a hook due."""
    for name in ("db", "web"):
        services.set_settings(store, PROJECT, name, {"title": f"t{next(_titles)}"})


def run_own_life(store: Store, *names: str) -> None:
    """Run the due hooks that belong to no relation."""
    for name in names or units(store):
        while (step := next_of(store, name)) is not None and step.relation is None:
            commit(store, step)


def commit_own(store: Store, name: str, key: str, value: str) -> None:
    deploy_again(store)
    commit(store, step_of(store, name), {"relations": {"db:0": {"set": {key: value}}}})
