"""Refuses processes, connections and sleep in unit tests, and separates their secrets."""

from collections.abc import Iterator

import pytest

from tests.each import separate_secrets
from tests.guard import only_python

__all__ = ["only_python"]


@pytest.fixture(autouse=True)
def _secrets_as_they_were() -> Iterator[None]:
    """Forget the secrets of a test."""
    with separate_secrets():
        yield
