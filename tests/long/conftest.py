"""Refuses what these tests must not need. They are unit tests that take longer."""

from tests.guard import only_python

__all__ = ["only_python"]
