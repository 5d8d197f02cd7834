"""Refuses what these tests, which are unit tests but for the time they take, must not need."""

from tests.guard import only_python

__all__ = ["only_python"]
