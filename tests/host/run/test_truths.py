"""After a cut or a kill, no report and no history contradicts what the host did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.host.run import crashes, truths
from tests.host.run.side_by_side import Found, given, side_by_side
from tests.lab import Host

# `script/soak truth` can try more.
COUNT = 2
WAYS = [*truths.CUTS, *crashes.KILLS]


@pytest.fixture(scope="module")
def told() -> Iterator[Found]:
    """Give the results of the interrupted runs."""

    def work(how: str) -> Callable[[Host], Any]:
        return lambda host: truths.at_random(host, "/srv/truths", [how], COUNT, seed=20261129)

    yield from side_by_side("truths", {how: work(how) for how in WAYS})


@pytest.mark.parametrize("how", WAYS)
def test_no_report_contradicts_the_host(told: Found, how: str) -> None:
    seen = given(told, how)
    print(dict(seen))
    assert seen[f"{how}: runs"] == COUNT
