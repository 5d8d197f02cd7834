"""Refuses processes, connections and sleep. The tests here are unit tests that take longer."""

from tests.guard import only_python

__all__ = ["only_python"]
