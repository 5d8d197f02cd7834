"""Fixtures of the tests on hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests import lab
from tests.lab.fixtures import or_skip


@pytest.fixture(scope="session")
def target() -> Iterator[lab.Host]:
    """Give one light host for the session; every test works in a directory of its own there."""
    with or_skip():
        (host,) = lab.light_hosts(1, prefix="target")
    yield host
    host.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """Give a directory name of the host that no other test uses."""
    return f"/srv/{re.sub('[^a-z0-9]+', '-', request.node.name.lower()).removeprefix('test-')[-50:].strip('-')}"
