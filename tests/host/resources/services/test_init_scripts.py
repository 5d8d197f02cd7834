"""Services of hosts without systemd: init scripts of System V on a real host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.test_system import Site
from tests.lab import Host

SCRIPT = """\
#!/bin/sh
### BEGIN INIT INFO
# Provides:          napd
# Required-Start:    $remote_fs
# Required-Stop:     $remote_fs
# Default-Start:     2 3 4 5
# Default-Stop:      0 1 6
### END INIT INFO
. /lib/lsb/init-functions
PID=/run/napd.pid
start() { start-stop-daemon --start --quiet --oknodo --background --make-pidfile --pidfile $PID --exec /usr/bin/sleep -- $(cat /etc/napd); }
stop() { start-stop-daemon --stop --quiet --oknodo --retry 5 --remove-pidfile --pidfile $PID --exec /usr/bin/sleep; }
case "$1" in
    start) start ;;
    stop) stop ;;
    restart|force-reload) stop; start ;;
    status) status_of_proc -p $PID /usr/bin/sleep napd ;;
    *) echo "Usage: $0 {start|stop|restart|force-reload|status}"; exit 2 ;;
esac
"""  # noqa: E501  # a long line of a shell script
FILES = f"""
  - file: /etc/napd
    content: "7401\\n"
  - file: /etc/init.d/napd
    mode: "0755"
    content: |
      {SCRIPT.replace(chr(10), chr(10) + "      ").rstrip()}
"""
SERVICE = """
  - service: napd
    running: true
    enabled: true
    stable_for: 0.5
    restart_on: ["file:/etc/napd", "file:/etc/init.d/napd"]
"""


@pytest.fixture
def site(light_host: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(light_host, tmp_path)
    yield found
    found.say("destroy", code=None)


def links(host: Host) -> list[str]:
    """Return the links with which the service starts and stops at boot."""
    return host.run(["sh", "-c", "ls -d /etc/rc?.d/*napd 2>/dev/null | sort"], check=False).stdout.split()


def sleeping(host: Host) -> str:
    """Return the command line of the service's process, "" without one."""
    script = "pid=$(cat /run/napd.pid) && tr '\\0' ' ' < /proc/$pid/cmdline"
    return host.run(["sh", "-c", script], check=False).stdout.strip()


def test_service_with_an_init_script_starts_restarts_and_goes_again(site: Site) -> None:
    """The plan foresees each step. Destroy stops and disables the service before its script goes."""
    planned = site.nodes("plan", FILES + SERVICE)["service:napd"]
    applied = site.nodes("apply")["service:napd"]
    assert [action["op"] for action in planned["actions"]] == ["enable", "start"]
    assert [action["op"] for action in applied["actions"]] == ["enable", "start"]
    assert (planned["changes"], applied["outcome"]) == (applied["changes"], "changed")
    assert sleeping(site.host) == "/usr/bin/sleep 7401"
    assert [link for link in links(site.host) if "/S" in link]
    assert {node["outcome"] for node in site.nodes("apply").values()} == {"unchanged"}
    site.say("verify")

    changed = site.nodes("apply", FILES.replace("7401", "7402") + SERVICE)["service:napd"]
    assert [action["op"] for action in changed["actions"]] == ["restart"]
    assert sleeping(site.host) == "/usr/bin/sleep 7402"

    stopped = SERVICE.replace("true", "false")
    assert [action["op"] for action in site.nodes("apply", FILES + stopped)["service:napd"]["actions"]] == [
        "disable",
        "stop",
    ]
    assert sleeping(site.host) == ""
    assert [link for link in links(site.host) if "/S" in link] == []
    site.say("apply", FILES + SERVICE)
    site.say("destroy")
    assert sleeping(site.host) == ""
    assert not site.host.path("/etc/init.d/napd").exists()
    assert links(site.host) == []


def test_drift_of_an_init_script_is_found_and_corrected(site: Site) -> None:
    site.say("apply", FILES + SERVICE)
    site.host.run(["service", "napd", "stop"])
    site.host.run(["update-rc.d", "napd", "disable"])
    planned = site.nodes("plan")["service:napd"]
    assert [action["op"] for action in planned["actions"]] == ["enable", "start"]
    site.say("apply")
    assert sleeping(site.host) == "/usr/bin/sleep 7401"


def test_service_that_ends_after_its_start_fails(site: Site) -> None:
    ends = FILES.replace("7401", "0.2") + SERVICE
    node = site.nodes("apply", ends, code=1)["service:napd"]
    assert node["outcome"] == "failed"
    assert "it started and then ended" in str(node)


def test_wait_for_waits_for_a_service_with_an_init_script(site: Site) -> None:
    waits = '  - wait_for: napd\n    unit: napd\n    requires: ["service:napd"]\n'
    nodes = site.nodes("apply", FILES + SERVICE + waits)
    assert nodes["wait_for:napd"]["outcome"] == "changed"
    assert {node["outcome"] for node in site.nodes("plan").values()} == {"unchanged"}
    unit = "  - systemd_unit: nap\n    sections: {Service: {ExecStart: /usr/bin/true}}\n"
    reason = site.nodes("plan", unit, code=1)["systemd_unit:nap"]["reason"]
    assert reason == "this host runs System V, and not systemd"
