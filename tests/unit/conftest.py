"""Refuses what a unit test must not need."""

from tests.guard import only_python

__all__ = ["only_python"]
