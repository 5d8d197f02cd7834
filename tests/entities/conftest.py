"""Registers the fixtures of stores, and gives scenes of the entities' API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from statecfg.store import opened
from statecfg.store.database import Store
from tests.entities.scenes import Scene
from tests.store.fixtures import database, postgresql, store, url

__all__ = ["database", "postgresql", "store", "url"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a scene on a SQLite store that the tests of a module share: each makes types of its own."""
    with opened(url=str(tmp_path_factory.mktemp("entities") / "store.db")) as found:
        yield Scene(found)


@pytest.fixture
def scene_on_both(store: Store) -> Scene:
    """Give a scene on SQLite, then on PostgreSQL."""
    return Scene(store)
