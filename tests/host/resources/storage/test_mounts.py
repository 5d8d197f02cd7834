"""Mounts on a real host: what is mounted is compared with the declared options, and second places of a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.resources.test_mount_points import report
from tests.host.run.site import Site
from tests.lab import Host


@pytest.fixture
def site(tmp_path: Path, light_host: Host) -> Iterator[Site]:
    light_host.run(["mkdir", "-p", "/srv/n/a b", "/srv/n/from", "/srv/n/to", "/srv/n/real/x"])
    light_host.write("/srv/n/from/file", "f\n")
    light_host.write("/srv/n/other", "o\n")
    light_host.run(["ln", "-s", "real", "/srv/n/link"])
    light_host.write("/etc/fstab", "")
    yield Site(tmp_path, light_host, "site")
    for path in ("/srv/n/a b", "/srv/n/to", "/srv/n/real/x", "/srv/n/other"):
        light_host.run(["umount", path], check=False)
    light_host.run(["rm", "-rf", "/srv/n", "/var/lib/statecfg"])


def options(host: Host, path: str) -> list[str]:
    shown = host.run(["findmnt", "--noheadings", "--output", "OPTIONS", "--mountpoint", path]).stdout
    return shown.strip().split(",")


def once(site: Site, node: str) -> dict[str, Any]:
    """Apply a node; return its report, and check that it has nothing to do then."""
    (applied,) = report(site, "apply", node).values()
    (again,) = report(site, "plan", node).values()
    assert again["outcome"] == "unchanged", again
    return applied


TMPFS = "{mount: '/srv/n/a b', source: tmpfs, fstype: tmpfs, mount_options: [%s]}"


def test_options_that_are_not_in_effect_are_set_by_a_remount(site: Site, light_host: Host) -> None:
    once(site, TMPFS % "noexec, size=2m, mode=0750, nofail")
    assert "noexec" in options(light_host, "/srv/n/a b")
    light_host.run(["umount", "/srv/n/a b"])
    light_host.run(["mount", "-t", "tmpfs", "-o", "size=3m,nosuid", "tmpfs", "/srv/n/a b"])
    (planned,) = report(site, "plan", TMPFS % "noexec, size=2m, mode=0750, nofail").values()
    assert [action["op"] for action in planned["actions"]] == ["remount"]
    assert {"noexec", "suid", "size=2m"} <= set(planned["actions"][0]["args"]["options"])
    once(site, TMPFS % "noexec, size=2m, mode=0750, nofail")
    assert {"noexec", "size=2048k"} <= set(options(light_host, "/srv/n/a b"))
    assert "nosuid" not in options(light_host, "/srv/n/a b")
    once(site, TMPFS % "size=1g")
    assert "size=1048576k" in options(light_host, "/srv/n/a b")


def test_options_that_the_kernel_refuses_leave_fstab_as_it_is(site: Site, light_host: Host) -> None:
    """A line that can't be mounted could keep the host from booting."""
    (failed,) = report(site, "apply", TMPFS % "nosuchoption", code=1).values()
    assert failed["outcome"] == "failed" and light_host.read("/etc/fstab") == ""
    once(site, TMPFS % "size=2m")
    (failed,) = report(site, "apply", TMPFS % "size=2m, nosuchoption", code=1).values()
    assert failed["outcome"] == "failed" and "nosuchoption" not in light_host.read("/etc/fstab")


def test_a_second_place_of_a_directory_can_be_written_as_in_fstab(site: Site, light_host: Host) -> None:
    once(site, "{mount: /srv/n/to, source: /srv/n/from, fstype: none, mount_options: [bind]}")
    assert light_host.read("/srv/n/to/file") == "f\n"
    once(site, "{mount: /srv/n/to, source: /srv/n/from, fstype: none, mount_options: [bind, ro]}")
    assert "ro" in options(light_host, "/srv/n/to")
    (planned,) = report(
        site, "plan", "{mount: /srv/n/to, source: /srv/n/real, fstype: none, mount_options: [bind, ro]}", code=1
    ).values()
    assert "is mounted on /srv/n/to, not /srv/n/real; unmount it first" in planned["reason"]
    once(site, "{mount: /srv/n/to, absent: true}")
    assert light_host.run(["ls", "/srv/n/to"]).stdout == ""


def test_a_file_can_have_a_second_place(site: Site, light_host: Host) -> None:
    once(site, "{mount: /srv/n/other, source: /srv/n/from/file, fstype: none, mount_options: [bind]}")
    assert light_host.read("/srv/n/other") == "f\n"
    site("destroy", "site.yml", "--yes")
    assert light_host.read("/srv/n/other") == "o\n"


def test_a_mount_below_a_link_is_found(site: Site, light_host: Host) -> None:
    once(site, "{mount: /srv/n/link/x, source: tmpfs, fstype: tmpfs, mount_options: [size=1m]}")
    assert "size=1024k" in options(light_host, "/srv/n/real/x")


def test_the_former_options_of_a_mount_come_back(site: Site, light_host: Host) -> None:
    light_host.run(["mount", "-t", "tmpfs", "-o", "size=3m,nosuid", "tmpfs", "/srv/n/a b"])
    once(site, TMPFS % "noexec, size=2m")
    site("destroy", "site.yml", "--yes")
    assert {"nosuid", "size=3072k"} <= set(options(light_host, "/srv/n/a b"))
    assert "noexec" not in options(light_host, "/srv/n/a b")
    assert light_host.read("/etc/fstab") == ""
