"""The test hosts that most tests of units use, and the scenes of the tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.units.tool_scene import Scene
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a relation hook that tests share. Its calls must not change anything."""
    scene = Scene(tmp_path_factory.mktemp("place"))
    yield scene
    scene.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()
