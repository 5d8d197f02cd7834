"""A node of type `reboot` reboots the host, and the same run continues after that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import command, directory, file, reboot
from tests import lab
from tests.host.run import rig
from tests.lab import Host

LOCK = "/var/lib/statecfg/lock"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@pytest.fixture(scope="module")
def target() -> Iterator[Host]:
    """Give a host of its own, which reboots."""
    try:
        host = lab.booted_host("reboots")
    except lab.Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")
    yield host
    host.stop()


def boot_id(host: Host) -> str:
    return host.run(["cat", BOOT_ID]).stdout.strip()


def note(name: str, place: str, *requires: str) -> Graph:
    """Return a command that adds a line to a log."""
    shell = f"echo {name} $(cat {BOOT_ID}) >> {place}/log"
    return command(name, shell=shell, effects={}, requires=[f"directory:{place}", *requires])


def lines(host: Host, place: str) -> list[list[str]]:
    return [line.split() for line in host.read(f"{place}/log").splitlines()]


def test_the_run_continues_after_the_reboot(target: Host) -> None:
    place, before = "/srv/continues", boot_id(target)
    graphs = (
        directory(place),
        note("first", place),
        reboot("kernel", always=True, boot_timeout=60, requires=["command:first"]),
        note("second", place, "reboot:kernel"),
        file(f"{place}/after", content="after\n", requires=["command:second"]),
    )
    planned = rig.run(target, rig.define(*graphs), "plan")
    assert planned.outcomes()["reboot:kernel"] == "changed"
    assert boot_id(target) == before
    done = rig.run(target, rig.define(*graphs))
    print(f"reboot and continue: {done.seconds:.1f} s")
    assert done.host()["status"] == "ok", done.host()
    lab.await_boot(target)
    after = boot_id(target)
    assert after != before
    assert lines(target, place) == [["first", before], ["second", after]]
    assert target.read(f"{place}/after") == "after\n"
    assert set(done.outcomes().values()) == {"changed"}
