"""Unit hooks are killed at random moments on four hosts: settings stay whole and no unit number is reused."""

from __future__ import annotations

from pathlib import Path

from tests import lab
from tests.host.units import rings


def test_killed_hooks_leave_settings_whole_and_numbers_unique(tmp_path: Path) -> None:
    machines = lab.light_hosts(4)
    try:
        seen = rings.at_random(machines, tmp_path, 12, seed=20261121, services=2)
    finally:
        for host in machines:
            host.stop()
    print(dict(seen))
    assert seen["hooks killed"] >= 12 and seen["settings acknowledged"] > 0
