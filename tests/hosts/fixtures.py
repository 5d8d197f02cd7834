"""The pytest fixtures of test hosts; `tests/conftest.py` registers them.

A fixture that this machine can't give skips its test with the reason, and the end of the run names what was not run.

- `sshd`: a loopback sshd for the whole session; don't change its configuration.
- `make_sshd(config=…, forced_command=…, user=…)`: as many others as wanted, until the test ends.
- `light_host`: one light host per test module. `make_light_hosts(n)`: n fresh ones, until the test ends.
- `booted`: one booted host per test module, with the packages of `apt_packages`. `make_booted_host()`: a fresh one,
  without packages, until the test ends.
- `apt_packages`: the repository of `tests.hosts.apt`, for the session; `apt_packages.use(host)` gives it to a host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import hosts

NOT_RUN = "not run on this machine: "


@contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except hosts.Unavailable as reason:
        pytest.skip(f"{NOT_RUN}{reason}")


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hosts.PlainSshd]:
    """Give a loopback sshd that the whole session shares."""
    with _or_skip():
        server = hosts.plain_sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[Callable[..., hosts.PlainSshd]]:
    """Give a function that starts a loopback sshd for the test; it takes what `plain_sshd` does but the directory."""
    started: list[hosts.PlainSshd] = []

    def make(**options: Any) -> hosts.PlainSshd:
        with _or_skip():
            started.append(hosts.plain_sshd(tmp_path, **options))
        return started[-1]

    yield make
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def light_host() -> Iterator[hosts.Host]:
    """Give a light host that the tests of the module share."""
    with _or_skip():
        (host,) = hosts.light_hosts(1)
    yield host
    host.stop()


@pytest.fixture
def make_light_hosts() -> Iterator[Callable[[int], list[hosts.Host]]]:
    """Give a function that starts n light hosts for the test."""
    started: list[hosts.Host] = []

    def make(n: int) -> list[hosts.Host]:
        with _or_skip():
            fresh = hosts.light_hosts(n)
        started.extend(fresh)
        return fresh

    yield make
    for host in started:
        host.stop()


@pytest.fixture(scope="module")
def booted(apt_packages: hosts.AptRepository) -> Iterator[hosts.Host]:
    """Give a booted host, with the local packages as its only source, that the tests of the module share."""
    with _or_skip():
        host = hosts.booted_host()
    try:
        apt_packages.use(host)
        yield host
    finally:
        host.stop()


@pytest.fixture
def make_booted_host() -> Iterator[Callable[[], hosts.Host]]:
    """Give a function that boots a host for the test."""
    started: list[hosts.Host] = []

    def make() -> hosts.Host:
        with _or_skip():
            started.append(hosts.booted_host(f"booted{len(started) + 1}"))
        return started[-1]

    yield make
    for host in started:
        host.stop()


@pytest.fixture(scope="session")
def apt_packages(tmp_path_factory: pytest.TempPathFactory) -> hosts.AptRepository:
    """Give the repository of small packages."""
    with _or_skip():
        return hosts.apt_repository(tmp_path_factory.mktemp("apt"))
