"""Registers the scene of the entities' API."""

from tests.unit.entities.scenes import scene

__all__ = ["scene"]
