"""The power fails during an apply: files are old or new, and the ledger matches. `script/soak power` does it often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.host.run import power
from tests.host.run.side_by_side import Found, given, side_by_side
from tests.lab import Host, Unavailable


@pytest.fixture(scope="module")
def cut() -> Iterator[Found]:
    """Give the results of power cuts, with and without fsync."""

    def work(kind: str) -> Callable[[Host], Any]:
        def cut(host: Host) -> Any:
            disk = power.Disk(host, kind)
            seen = power.cut(disk, runs=3, count=24, recovered=3, seed=20261124)
            return seen, power.without_fsync(disk), power.renamed_without_fsync(disk)

        return cut

    yield from side_by_side("power", {kind: work(kind) for kind in power.MOUNT})


def results(cut: Found, kind: str) -> Any:
    try:
        return given(cut, kind)
    except Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")


@pytest.mark.parametrize("kind", list(power.MOUNT))
def test_files_are_old_or_new_and_the_ledger_matches_after_a_power_cut(cut: Found, kind: str) -> None:
    seen, _, _ = results(cut, kind)
    print(dict(seen))
    assert seen[f"{kind}: recovered"] == 3
    assert seen[f"{kind}: power cuts during changes"] >= 3


@pytest.mark.parametrize("kind", list(power.MOUNT))
def test_a_program_without_fsync_leaves_empty_files(cut: Found, kind: str) -> None:
    _, executor, renamed = results(cut, kind)
    assert "empty" in executor.values()
    assert set(renamed.values()) == {"empty"}
