"""Registers the fixtures of test hosts, and stops the hosts at the end."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.host.remote.managed import host, machine, server
from tests.lab import close_all
from tests.lab.fixtures import (
    apt_packages,
    booted,
    light_host,
    make_booted_host,
    make_light_hosts,
    make_sshd,
    sshd,
)

__all__ = ["apt_packages", "booted", "light_host", "make_booted_host", "make_light_hosts", "make_sshd", "sshd"]
__all__ += ["host", "machine", "server"]


@pytest.fixture
def silent() -> Iterator[int]:
    """Give the port of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def pytest_sessionfinish() -> None:
    """Stop all hosts that still run, even if the tests were interrupted."""
    close_all()
