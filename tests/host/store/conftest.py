"""Registers the store fixtures."""

from tests.host.store.fixtures import database, postgresql, store, url

__all__ = ["database", "postgresql", "store", "url"]
