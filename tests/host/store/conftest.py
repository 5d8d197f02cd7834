"""Registers the fixtures of stores."""

from tests.host.store.fixtures import database, postgresql, store, url

__all__ = ["database", "postgresql", "store", "url"]
