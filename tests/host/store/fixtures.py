"""Fixtures of stores. `postgresql` is one server for the session. `url` and `store` exist for each kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.store import opened
from statecfg.store.database import Store
from tests.host.store.postgresql import Server, start
from tests.lab.fixtures import or_skip


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """Give a PostgreSQL server that the whole session shares."""
    with or_skip():
        server = start()
    yield server
    server.stop()


@pytest.fixture
def database(postgresql: Server) -> Iterator[str]:
    """Give the name of an empty database."""
    name = postgresql.fresh()
    yield name
    postgresql.drop(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of a store that does not exist yet."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    name: str = request.getfixturevalue("database")
    server: Server = request.getfixturevalue("postgresql")
    return server.url(name)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give an open, empty store."""
    with opened(url=url) as found:
        yield found
