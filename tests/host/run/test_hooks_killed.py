"""The client, the executor or a hook killed in the middle of an apply with hooks: the next apply makes it whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests import lab
from tests.host.run import hook_crashes
from tests.host.run.conftest import or_skip
from tests.lab import Host

POINTS = {"client": 2, "executor": 1, "program": 1}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Give what was seen of the runs that were cut off, side by side on a host each."""
    with or_skip():
        machines = lab.light_hosts(len(POINTS), prefix="hooked")
    found: dict[str, Any] = {}

    def work(who: str, host: Host) -> None:
        root = tmp_path_factory.mktemp(who) / "site"
        try:
            found[who] = hook_crashes.at_random(host, root, who, POINTS[who], seed=20261121)
        except BaseException as problem:
            found[who] = problem

    threads = [threading.Thread(target=work, args=pair) for pair in zip(POINTS, machines, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield found
    for host in machines:
        host.stop()


@pytest.mark.parametrize("who", POINTS)
def test_killed_in_an_apply_with_hooks(killed: dict[str, Any], who: str) -> None:
    seen = killed[who]
    if isinstance(seen, BaseException):
        raise seen
    print(who, [(round(each["delay"], 2), each["code"]) for each in seen])
    assert len(seen) == POINTS[who]
