"""Fixtures of the tests of runs on hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests import lab
from tests.lab.fixtures import or_skip


@pytest.fixture(scope="session")
def target() -> Iterator[lab.Host]:
    """Give one light host for the session; every test uses its own directory on it."""
    with or_skip():
        (host,) = lab.light_hosts(1, prefix="target")
    yield host
    host.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """Give the path of a directory on the host that no other test uses."""
    return f"/srv/{re.sub('[^a-z0-9]+', '-', request.node.name.lower()).removeprefix('test-')[-50:].strip('-')}"
