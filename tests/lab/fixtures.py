"""The pytest fixtures for test hosts. `tests/host/conftest.py` registers them.

If this machine can't provide a fixture, the fixture skips the test with the reason. The end of the output lists the
skipped tests.

- `sshd`: a loopback sshd for the whole session. Don't change its configuration.
- `make_sshd(config=…, forced_command=…, user=…)`: starts another sshd, which runs until the test ends.
- `light_host`: one light host per test module.
- `make_light_hosts(n)`: starts n new light hosts, which run until the test ends.
- `booted`: one booted host per test module, with the packages of `apt_packages`.
- `make_booted_host()`: boots a new host without packages, which runs until the test ends.
- `apt_packages`: the repository of `tests.lab.apt`, for the session. `apt_packages.use(host)` copies it to a host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import lab

NOT_RUN = "not run on this machine: "


@contextmanager
def or_skip() -> Iterator[None]:
    """Skip the test with the reason if this machine can't run such hosts."""
    try:
        yield
    except lab.Unavailable as reason:
        pytest.skip(f"{NOT_RUN}{reason}")


def light_hosts(count: int, prefix: str) -> Iterator[list[lab.Host]]:
    """Yield new light hosts for a fixture that is wider than a test, and stop them afterwards."""
    with or_skip():
        hosts = lab.light_hosts(count, prefix=prefix)
    yield hosts
    for host in hosts:
        host.stop()


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.PlainSshd]:
    """Return a loopback sshd that the whole session shares."""
    with or_skip():
        server = lab.plain_sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[Callable[..., lab.PlainSshd]]:
    """Return a function that starts a loopback sshd for the test. Its options are those of `plain_sshd`."""
    started: list[lab.PlainSshd] = []

    def make(**options: Any) -> lab.PlainSshd:
        with or_skip():
            started.append(lab.plain_sshd(tmp_path, **options))
        return started[-1]

    yield make
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def light_host() -> Iterator[lab.Host]:
    """Return a light host that the tests of the module share."""
    with or_skip():
        (host,) = lab.light_hosts(1)
    yield host
    host.stop()


@pytest.fixture
def make_light_hosts() -> Iterator[Callable[[int], list[lab.Host]]]:
    """Return a function that starts n light hosts for the test."""
    started: list[lab.Host] = []

    def make(n: int) -> list[lab.Host]:
        with or_skip():
            fresh = lab.light_hosts(n)
        started.extend(fresh)
        return fresh

    yield make
    for host in started:
        host.stop()


@pytest.fixture(scope="module")
def booted(apt_packages: lab.AptRepository) -> Iterator[lab.Host]:
    """Return a booted host that the tests of the module share. Its only package source is `apt_packages`."""
    with or_skip():
        host = lab.booted_host()
    try:
        apt_packages.use(host)
        yield host
    finally:
        host.stop()


@pytest.fixture
def make_booted_host() -> Iterator[Callable[[], lab.Host]]:
    """Return a function that boots a host for the test."""
    started: list[lab.Host] = []

    def make() -> lab.Host:
        with or_skip():
            started.append(lab.booted_host(f"booted{len(started) + 1}"))
        return started[-1]

    yield make
    for host in started:
        host.stop()


@pytest.fixture(scope="session")
def apt_packages(tmp_path_factory: pytest.TempPathFactory) -> lab.AptRepository:
    """Return the repository of small packages."""
    with or_skip():
        return lab.apt_repository(tmp_path_factory.mktemp("apt"))
