"""The client, the executor or a hook is killed during an apply with hooks, and the next apply repairs everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.host.run import hook_crashes
from tests.host.run.side_by_side import Found, given, side_by_side
from tests.lab import Host

POINTS = {"client": 2, "executor": 1, "program": 1}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """Give the results of the interrupted runs. They ran in parallel, each on its own host."""

    def work(who: str) -> Callable[[Host], Any]:
        root = tmp_path_factory.mktemp(who) / "site"
        return lambda host: hook_crashes.at_random(host, root, who, POINTS[who], seed=20261121)

    yield from side_by_side("hooked", {who: work(who) for who in POINTS})


@pytest.mark.parametrize("who", POINTS)
def test_the_next_apply_recovers_from_a_kill_during_hooks(killed: Found, who: str) -> None:
    seen = given(killed, who)
    print(who, [(round(each["delay"], 2), each["code"]) for each in seen])
    assert len(seen) == POINTS[who]
