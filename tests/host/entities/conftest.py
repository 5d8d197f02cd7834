"""Registers the store fixtures, and gives scenes for tests of entities."""

from __future__ import annotations

import pytest

from statecfg.store.database import Store
from tests.host.store.fixtures import database, postgresql, store, url
from tests.unit.entities.scenes import Scene, scene

__all__ = ["database", "postgresql", "scene", "store", "url"]


@pytest.fixture
def scene_on_both(store: Store) -> Scene:
    """Give a scene for each kind of database."""
    return Scene(store)
