"""Validators in plans on a booted host: unit files, drop-ins of masked units, and the whole configuration of sshd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.host.run.site import Site
from tests.lab import Host

UNIT = "[Unit]\nDescription=Test\n[Service]\nExecStart=/bin/sleep 1000\n"


@pytest.fixture
def site(tmp_path: Path, booted: Host, request: pytest.FixtureRequest) -> Site:
    return Site(tmp_path, booted, request.node.name.replace("_", "-"))


def report(site: Site, verb: str, *lines: str, code: int | None = 0) -> dict[str, dict[str, Any]]:
    """Write a playbook, run the command and return the nodes of its report by name."""
    (site.base / "site.yml").write_text("hosts: all\nresources:\n" + "".join(f"  - {line}\n" for line in lines))
    found = site.report(verb, "site.yml", *(["--yes"] if verb == "apply" else []), code=code)
    return {node["name"]: node for layer in found["layers"] for node in layer}


DROP_IN = "{systemd_unit: planned, drop_in: limits, sections: {Service: {%s: 65536}}}"


def test_a_wrong_drop_in_fails_in_the_plan(site: Site, booted: Host) -> None:
    booted.write("/usr/lib/systemd/system/planned.service", UNIT)
    booted.run(["systemctl", "daemon-reload"])
    (node,) = report(site, "plan", DROP_IN % "LimitNOFIL", code=1).values()
    assert "systemd-analyze rejects the new content" in node["reason"]
    assert "LimitNOFIL" in node["reason"]
    assert not booted.path("/etc/systemd/system/planned.service.d").exists()
    (node,) = report(site, "plan", DROP_IN % "LimitNOFILE").values()
    assert node["outcome"] == "changed"
    assert "reason" not in node


def test_a_drop_in_of_a_unit_that_this_run_creates_is_checked_with_it(site: Site, booted: Host) -> None:
    unit = "{systemd_unit: coming, sections: {Service: {ExecStart: /bin/sleep 10}}}"
    drop_in = (
        "{systemd_unit: coming.service, drop_in: more, sections: {Service: {%s: 5}}, requires: ['systemd_unit:coming']}"
    )
    nodes = report(site, "plan", unit, drop_in % "TimeoutStopSec")
    assert [node.get("reason") for node in nodes.values()] == [None, None]
    nodes = report(site, "plan", unit, drop_in % "TimeoutStopSek", code=1)
    assert [node["outcome"] for node in nodes.values()] == ["changed", "failed"]


def test_a_drop_in_of_a_masked_unit_is_installed_before_the_unit_is_unmasked(site: Site, booted: Host) -> None:
    booted.write("/usr/lib/systemd/system/planned.service", UNIT)
    booted.run(["systemctl", "mask", "planned.service"])
    nodes = DROP_IN % "LimitNOFILE", "{service: planned, masked: false, running: true}"
    planned = report(site, "plan", *nodes)
    assert [node["outcome"] for node in planned.values()] == ["changed", "changed"]
    wrong = report(site, "plan", DROP_IN % "LimitNOFIL", code=1)
    assert "LimitNOFIL" in next(iter(wrong.values()))["reason"]
    applied = report(site, "apply", *nodes)
    assert [node["outcome"] for node in applied.values()] == ["changed", "changed"]
    shown = booted.run(["systemctl", "show", "--value", "--property=LimitNOFILE,ActiveState", "planned"]).stdout
    assert "65536" in shown
    assert "active" in shown
    assert not any(node["outcome"] != "unchanged" for node in report(site, "plan", *nodes).values())


def test_a_drop_in_of_a_unit_that_stays_masked_is_installed(site: Site, booted: Host) -> None:
    booted.write("/usr/lib/systemd/system/hidden.service", UNIT)
    booted.run(["systemctl", "mask", "hidden.service"])
    node = DROP_IN.replace("planned", "hidden") % "LimitNOFILE"
    (applied,) = report(site, "apply", node).values()
    assert applied["outcome"] == "changed"
    (again,) = report(site, "plan", node).values()
    assert again["outcome"] == "unchanged"


def test_a_configuration_that_sshd_refuses_fails_in_the_plan(site: Site, booted: Host) -> None:
    main = booted.read("/etc/ssh/sshd_config")
    booted.write("/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n" + main)
    edit = "{line_in_file: /etc/ssh/sshd_config, line: 'NoSuchOption yes', validate: [/usr/sbin/sshd, -t, -f, '{}']}"
    booted.run(["mkdir", "-p", "/etc/ssh/sshd_config.d"])
    (node,) = report(site, "plan", edit, code=1).values()
    assert "NoSuchOption" in node["reason"]
    whole = "{file: /etc/ssh/sshd_config.d/50-x.conf, content: NoSuchOption yes}"
    service = "{service: ssh, running: true, restart_on: ['file:/etc/ssh/sshd_config.d/50-x.conf']}"
    nodes = report(site, "plan", whole, service, code=1)
    assert nodes["service:ssh"]["outcome"] == "failed"
    assert "NoSuchOption" in nodes["service:ssh"]["reason"]
    assert not booted.path("/etc/ssh/sshd_config.d/50-x.conf").exists()
