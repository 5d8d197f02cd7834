"""Refuses processes, connections and sleep in unit tests."""

from tests.guard import only_python

__all__ = ["only_python"]
