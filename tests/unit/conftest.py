"""Refuses processes, connections and sleep in unit tests, and separates their secrets."""

import pytest

from statecfg.graph import outputs
from statecfg.problems import tokens
from tests.guard import only_python

__all__ = ["only_python"]


@pytest.fixture(autouse=True)
def _secrets_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets of a test, because messages in later tests would mask their values."""
    monkeypatch.setattr(tokens, "_SECRETS", dict(tokens._SECRETS))
    monkeypatch.setattr(tokens, "_NAMES", set(tokens._NAMES))
    monkeypatch.setattr(outputs, "_OUTPUTS", dict(outputs._OUTPUTS))
    monkeypatch.setattr(outputs, "_BY_REFERENCE", dict(outputs._BY_REFERENCE))
