"""A run whose store can't be opened ends with exit code 8 and touches nothing, although it connects meanwhile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.command import reach, statecfg
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts

LATER = 2.0  # seconds in which the executor would arrive on the host, if it were sent before the store is open


@pytest.fixture(scope="module")
def hosts() -> Iterator[list[Host]]:
    yield from light_hosts(1, "unopened")


@pytest.fixture
def slow_store(hosts: list[Host]) -> Iterator[str]:
    """Give the URL of a server that closes connections some time after the login to the host."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                processes.wait_until(lambda: bool(hosts[0].sessions()), 60, "the login")
                time.sleep(LATER)

        threading.Thread(target=serve, daemon=True).start()
        yield f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/store"


def test_a_host_keeps_nothing_of_a_run_whose_store_can_not_be_opened(
    hosts: list[Host], slow_store: str, tmp_path: Path
) -> None:
    (tmp_path / "site.yml").write_text("hosts: all\nresources:\n  - file: /srv/new\n    content: x\n")
    ran = statecfg(
        "apply", "site.yml", "--yes", *reach(tmp_path, hosts), cwd=tmp_path, code=8, STATECFG_STORE=slow_store
    )
    assert "127.0.0.1" in ran.err
    assert not hosts[0].path("/var/lib/statecfg").exists()
    assert not hosts[0].path("/srv/new").exists()
