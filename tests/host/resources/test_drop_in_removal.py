"""A drop-in that leaves the definition: its removal restarts the service that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.host.run.site import Site
from tests.lab import Host

DROP_IN = "  - {systemd_unit: ssh, drop_in: dropped, sections: {Service: {LimitNOFILE: 4096}}, provides: limits}\n"
NAMED = "  - {systemd_unit: ssh, drop_in: dropped, sections: {Service: {LimitNOFILE: 4096}}}\n"


@pytest.mark.parametrize("drop_in", [DROP_IN, NAMED])
def test_a_removed_drop_in_does_not_count_as_the_unit(tmp_path: Path, booted: Host, drop_in: str) -> None:
    site = Site(tmp_path, booted, "dropped")
    name = "limits" if "provides" in drop_in else "systemd_unit:ssh"
    service = '  - {service: ssh, running: true, restart_on: ["%s"]}\n'
    (site.base / "site.yml").write_text(f"hosts: all\nresources:\n{drop_in}" + service % name)
    site("apply", "site.yml", "--yes")
    (site.base / "site.yml").write_text("hosts: all\nresources:\n  - {service: ssh, running: true}\n")
    planned = site("plan", "site.yml", "--prune").out
    assert "creates the unit" not in planned and "failed" not in planned, planned
    site("apply", "site.yml", "--yes", "--prune")
    assert "/dropped.conf" not in booted.run(["systemctl", "show", "-p", "DropInPaths", "ssh"]).stdout
    site("plan", "site.yml", "--prune", "--detailed-exitcode")
