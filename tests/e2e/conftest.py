"""Fixtures of the tests on hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import hosts
from tests.hosts.fixtures import NOT_RUN


@pytest.fixture(scope="session")
def target() -> Iterator[hosts.Host]:
    """Give one light host for the session; every test works in a directory of its own there."""
    try:
        (host,) = hosts.light_hosts(1, prefix="target")
    except hosts.Unavailable as reason:
        pytest.skip(f"{NOT_RUN}{reason}")
    yield host
    host.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """Give a directory name of the host that no other test uses."""
    return f"/srv/{request.node.name.replace('[', '-').replace(']', '').replace('/', '-')[:60]}"
