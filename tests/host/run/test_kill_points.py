"""The executor is killed at its write calls. `script/soak points` tries every call."""

from __future__ import annotations

import pytest

from tests.host.run import points
from tests.lab import Host


def test_the_next_run_recovers_from_a_kill_at_any_write_call(target: Host, place: str) -> None:
    if target.run(["sh", "-c", "command -v strace"], check=False).returncode:
        pytest.skip("not run on this machine: there is no strace (Debian: strace)")
    tried = list(points.all_points(target, place, every=9))
    print(f"killed at {len(tried)} calls: {tried}")
    assert len(tried) >= 5
    assert {status for _, _, status in tried} <= {"unknown", "unreachable", "ok"}


def test_a_kill_while_replacing_a_file_is_reported_as_unknown(target: Host, place: str) -> None:
    if target.run(["sh", "-c", "command -v strace"], check=False).returncode:
        pytest.skip("not run on this machine: there is no strace (Debian: strace)")
    there = points.found(target, place)
    chosen = [point for point in there if point[0] in ("rename", "renameat", "fchmod", "fchown")]
    assert chosen
    statuses = [points.kill_at(target, place, *point) for point in chosen]
    assert "unknown" in statuses


def test_files_that_are_written_together_are_old_or_new_after_a_kill(target: Host, place: str) -> None:
    if target.run(["sh", "-c", "command -v strace"], check=False).returncode:
        pytest.skip("not run on this machine: there is no strace (Debian: strace)")
    there = points.found(target, place, points.batch, points.reset_batch)
    chosen = [point for point in there if point[0] in ("rename", "renameat")][1::2]
    chosen += [point for point in there if point[0] == "fsync"][::3] + there[::23]
    assert len(chosen) >= 8
    statuses = [points.kill_batch_at(target, place, *point) for point in dict.fromkeys(chosen)]
    assert "unknown" in statuses
    assert set(statuses) <= {"unknown", "unreachable", "ok"}
