"""The node types for the system and access to it, on a booted host: apply, destroy, and what validators refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.command import Ran, reach, statecfg
from tests.host.resources.truth_system import writable_settings
from tests.lab import Host

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
EVERYTHING = f"""
  - cron: backup
    schedule: "30 4 * * *"
    command: date +%F
  - sudoers: deploy
    users: [daemon]
    commands: [/usr/bin/true]
    password: false
  - limits: database
    domain: daemon
    hard: {{nofile: 4096}}
  - logrotate: shop
    paths: [/var/log/shop/*.log]
    directives: [weekly]
  - systemd_unit: nap
    sections: {{Service: {{ExecStart: /usr/bin/sleep 7310}}, Install: {{WantedBy: multi-user.target}}}}
  - systemd_unit: nap
    drop_in: nice
    provides: nap drop-in
    sections: {{Service: {{Nice: 5}}}}
    requires: ["systemd_unit:nap"]
  - service: nap
    running: true
    enabled: true
    restart_on: ["systemd_unit:nap", "nap drop-in"]
  - host_entry: 192.0.2.11
    names: [db1]
  - known_host: git.example.org
    key: {KEY}
  - user: ann
    remove_home: true
  - authorized_key: ann@laptop
    user: ann
    key: {KEY}
    requires: ["user:ann"]
  - authorized_key: ann@desk
    user: ann
    key: ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAACAABAgMEBQYH
    restrictions: [no-pty]
    requires: ["user:ann"]
  - sysctl: net.ipv4.tcp_fin_timeout
    value: 31
  - hostname: renamed
  - locale: en_US.UTF-8
    default_for: [LANG]
  - password_aging: daemon
    max_days: 365
    expires: "2037-01-31"
  - timezone: Europe/Berlin
  - directory: /srv/cache
  - mount: /srv/cache
    source: tmpfs
    fstype: tmpfs
    mount_options: [size=1m]
    requires: ["directory:/srv/cache"]
  - file: /srv/program
    content: ""
    mode: "0755"
  - alternative: program
    path: /srv/program
    link: /usr/local/bin/program
    priority: 3
    requires: ["file:/srv/program"]
  - diversion: /etc/issue
  - file: /etc/issue
    content: "ours\\n"
    requires: ["diversion:/etc/issue"]
  - wait_for: nap
    unit: nap
    requires: ["service:nap"]
  - assertion: journal
    unit: systemd-journald
"""
# Prints everything that these nodes change.
STATE = r"""
find /etc /home /srv /usr/local/bin -xdev ! -path '/etc/*-' ! -path '/etc/sub?id' ! -name .pwd.lock \
    -printf '%p %y %m %u %g %l\n' | sort
find /etc /home /srv -xdev -type f ! -path '/etc/*-' ! -path '/etc/sub?id' -exec sha256sum {} + | sort
systemctl list-unit-files --no-legend --no-pager --plain | sort
systemctl is-active nap; hostname; sysctl net.ipv4.tcp_fin_timeout; grep -c /srv/cache /proc/self/mountinfo
locale --all-locales; chage --list daemon
dpkg-divert --list; update-alternatives --get-selections; date +%Z
"""


class Site:
    """A project with one playbook for one host."""

    def __init__(self, host: Host, directory: Path) -> None:
        self.host, self.directory = host, directory
        self.options = reach(directory, [host])

    def say(self, verb: str, resources: str = "", *more: str, code: int | None = 0) -> Ran:
        """Run a verb with a playbook that contains these resources; without any, with the last playbook."""
        playbook = self.directory / "site.yml"
        if resources:
            playbook.write_text(f"hosts: all\nresources:\n{resources}")
        asked = [] if verb in ("plan", "verify") else ["--yes"]
        return statecfg(verb, playbook, *asked, *more, *self.options, cwd=self.directory, code=code)

    def nodes(self, verb: str, resources: str = "", code: int | None = 0) -> dict[str, Any]:
        """Return the nodes of the host's report by name."""
        report = self.say(verb, resources, "--json", code=code).json()["hosts"][self.host.name]
        return {node["name"]: node for layer in report["layers"] for node in layer}

    def state(self) -> list[str]:
        return self.host.run(["sh", "-c", STATE], check=False).stdout.splitlines()


@pytest.fixture(scope="module")
def host(booted: Host) -> Host:
    """Return a booted host that may change the settings of its own network."""
    writable_settings(booted)
    return booted


@pytest.fixture
def site(host: Host, tmp_path: Path) -> Iterator[Site]:
    found = Site(host, tmp_path)
    yield found
    if (tmp_path / "site.yml").exists():
        found.say("destroy", code=None)


def test_destroy_restores_the_host(site: Site) -> None:
    """All node types together: they converge, `verify` finds no drift, and destroy restores what was there."""
    site.host.write("/etc/hosts", "127.0.0.1 localhost\n192.0.2.11 before\n")
    before = site.state()
    site.say("apply", EVERYTHING)
    assert {node["outcome"] for node in site.nodes("plan").values()} == {"unchanged"}
    site.say("verify")
    assert site.host.run(["hostname"]).stdout == "renamed\n"
    assert site.host.read("/etc/issue") == "ours\n"
    assert site.host.run(["systemctl", "show", "--property=Nice", "--value", "nap"]).stdout == "5\n"
    assert site.host.path("/home/ann/.ssh/authorized_keys").stat().st_mode & 0o7777 == 0o600
    assert site.host.run(["readlink", "-f", "/usr/local/bin/program"]).stdout == "/srv/program\n"
    ran = site.say("destroy")
    assert "stays" not in ran.out
    assert sorted(set(before) ^ set(site.state())) == []


def test_prune_keeps_the_entries_of_others(site: Site) -> None:
    """What others add to the same files stays when the nodes leave the definition."""
    kept = "  - limits: database\n    domain: daemon\n    hard: {nofile: 4096}\n"
    site.say("apply", EVERYTHING)
    site.host.write("/etc/hosts", site.host.read("/etc/hosts") + "192.0.2.99 other\n")
    site.host.write("/home/ann/.ssh/authorized_keys", site.host.read("/home/ann/.ssh/authorized_keys") + "# mine\n")
    site.host.run(["sysctl", "-w", "net.ipv4.tcp_fin_timeout=33"])
    ran = site.say("apply", kept + "  - user: ann\n    remove_home: true\n", "--prune")
    assert "the running value of net.ipv4.tcp_fin_timeout is now 33: it stays" in ran.out
    assert site.host.read("/etc/hosts").endswith("192.0.2.99 other\n") and "db1" not in site.host.read("/etc/hosts")
    assert site.host.read("/home/ann/.ssh/authorized_keys") == "# mine\n"
    assert site.host.path("/etc/security/limits.d/database.conf").exists()
    site.host.run(["sysctl", "-w", "net.ipv4.tcp_fin_timeout=60"])


def test_validators_refuse_wrong_content_before_it_is_installed(site: Site) -> None:
    wrong = "  - sudoers: wrong\n    content: daemon ALL=(ALL NOPASSWD\n"
    node = site.nodes("apply", wrong, code=1)["sudoers:wrong"]
    assert "visudo rejects the new content" in node["reason"]
    assert not site.host.path("/etc/sudoers.d/wrong").exists()
    unit = "  - systemd_unit: wrong\n    sections: {Service: {ExecStart: /usr/bin/true, Tpye: oneshot}}\n"
    node = site.nodes("apply", unit, code=1)["systemd_unit:wrong"]
    assert "systemd-analyze rejects the new content" in node["reason"]
    assert "Tpye" in node["reason"]
    assert not site.host.path("/etc/systemd/system/wrong.service").exists()
    site.say("apply", unit + "    verify: false\n")
    drop_in = "  - systemd_unit: wrong\n    drop_in: a\n    content: |\n      [Service]\n      ExecStart=relative\n"
    node = site.nodes("apply", unit + "    verify: false\n" + drop_in + "    provides: drop-in\n", code=1)["drop-in"]
    assert "systemd-analyze rejects the new content" in node["reason"]


def test_unit_that_runs_is_not_removed(site: Site) -> None:
    unit = "  - systemd_unit: nap\n    content: |\n      [Service]\n      ExecStart=/usr/bin/sleep 7311\n"
    site.say("apply", unit + '  - service: nap\n    running: true\n    requires: ["systemd_unit:nap"]\n')
    absent = "  - systemd_unit: nap\n    absent: true\n"
    assert "nap.service runs" in site.nodes("plan", absent, code=1)["systemd_unit:nap"]["reason"]
    stopped = '    requires: ["service:nap"]\n  - service: nap\n    running: false\n'
    site.say("apply", absent + stopped)
    assert not site.host.path("/etc/systemd/system/nap.service").exists()


SERVER = """
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/health"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"ready: true\\n")
time.sleep(1)
http.server.HTTPServer(("127.0.0.1", 8099), Handler).serve_forever()
"""
SLOW = """
  - systemd_unit: slow
    sections: {Service: {ExecStart: /usr/bin/python3 /srv/slow.py}}
    requires: ["file:/srv/slow.py"]
  - service: slow
    running: true
    requires: ["systemd_unit:slow"]
  - wait_for: slow-port
    port: 8099
    interval: 0.1
    requires: ["service:slow"]
  - wait_for: slow-answer
    url: http://127.0.0.1:8099/health
    contains: "^ready: true$"
    interval: 0.1
    requires: ["wait_for:slow-port"]
  - assertion: slow-answer
    url: http://127.0.0.1:8099/nothing
    status: [404]
    requires: ["wait_for:slow-answer"]
"""


def test_wait_for_waits_until_a_service_answers(site: Site) -> None:
    """The plan has the waits, because the service starts. Later plans have none."""
    body = "".join(f"      {line}\n" for line in SERVER.strip().splitlines())
    slow = f"  - file: /srv/slow.py\n    content: |\n{body}" + SLOW
    planned = site.nodes("plan", slow)
    assert [planned[name]["outcome"] for name in ("wait_for:slow-port", "wait_for:slow-answer")] == ["changed"] * 2
    assert planned["assertion:slow-answer"]["known_after"]
    applied = site.nodes("apply")
    assert {node["outcome"] for node in applied.values()} <= {"changed", "unchanged"}
    assert {node["outcome"] for node in site.nodes("plan").values()} == {"unchanged"}


def test_wait_for_fails_after_its_timeout(site: Site) -> None:
    node = site.nodes("apply", "  - wait_for: never\n    port: 9\n    timeout: 0.5\n    interval: 0.1\n", code=1)
    assert "after 0.5 seconds: port 9 of 127.0.0.1: " in node["wait_for:never"]["actions"][0]["reason"]


def test_assertion_fails_in_the_plan(site: Site) -> None:
    wrong = "  - assertion: disk\n    command: [test, -e, /nowhere]\n    message: attach the disk\n"
    node = site.nodes("plan", wrong, code=1)["assertion:disk"]
    assert node["reason"] == "attach the disk: the command ends with exit status 1"
