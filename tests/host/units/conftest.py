"""The test hosts that most tests of units use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import lab
from tests.lab import Host
from tests.lab.fixtures import or_skip


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Host]]:
    """Give two light hosts that the tests of a module share."""
    with or_skip():
        hosts = lab.light_hosts(2)
    yield hosts
    for host in hosts:
        host.stop()


@pytest.fixture
def bare_pair(pair: list[Host]) -> list[Host]:
    """Give the same two hosts, without the files of earlier tests."""
    for host in pair:
        host.run(["sh", "-c", "rm -rf /srv/* /var/lib/statecfg"])
    return pair
