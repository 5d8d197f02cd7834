"""Registers the scene, the fixture for tests of entities."""

from tests.unit.entities.scenes import scene

__all__ = ["scene"]
