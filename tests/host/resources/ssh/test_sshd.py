"""Services on a booted host react to removals. Changed sshd settings never lock anybody out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, lab
from tests.host.command import Ran, reach, statecfg

SETTINGS = "/etc/ssh/sshd_config.d/50-site.conf"
INCLUDE = "Include /etc/ssh/sshd_config.d/*.conf\n"
SSHD = f"""
hosts: guarded
resources:
  - file: {SETTINGS}
    content: "Port 22\\nPort 2222\\n"
  - service: ssh
    running: true
    enabled: true
    restart_on: ["file:{SETTINGS}"]
"""


class Site:
    """A project with one playbook for one host."""

    def __init__(self, host: lab.Host, directory: Path) -> None:
        self.host, self.directory = host, directory
        self.options = reach(directory, [host])

    def say(self, verb: str, text: str = "", *more: str, code: int | None = 0, **env: str) -> Ran:
        playbook = self.directory / "site.yml"
        if text:
            playbook.write_text(text)
        asked = [] if verb in ("plan", "verify") else ["--yes"]
        return statecfg(verb, playbook, *asked, *more, *self.options, cwd=self.directory, code=code, **env)

    def report(self, verb: str, text: str = "", *more: str, code: int | None = 0) -> dict[str, Any]:
        """Return the host's part of the report."""
        found: dict[str, Any] = self.say(verb, text, "--json", *more, code=code).json()["hosts"][self.host.name]
        return found

    def ports(self) -> list[str]:
        """Return the ports on which sshd listens."""
        said = self.host.run(["ss", "-Hltn4"]).stdout
        return sorted({line.split()[3].rpartition(":")[2] for line in said.splitlines()} & {"22", "2222"})

    def show(self, unit: str, field: str) -> str:
        return self.host.run(["systemctl", "show", "--value", f"--property={field}", unit]).stdout.strip()


@pytest.fixture(scope="module")
def host() -> Iterator[lab.Host]:
    try:
        found = lab.booted_host("guarded")
    except lab.Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")
    found.write("/etc/ssh/sshd_config", INCLUDE + found.read("/etc/ssh/sshd_config"))
    found.write("/etc/ssh/sshd_config.d/00-other.conf", "UseDNS no\n")
    yield found
    found.stop()


@pytest.fixture
def site(host: lab.Host, tmp_path: Path) -> Site:
    return Site(host, tmp_path)


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def names(host: dict[str, Any], part: str) -> list[list[str]]:
    return [[node["name"] for node in layer] for layer in host[part]]


def ops(node: dict[str, Any]) -> list[str]:
    return [action["op"] for action in node["actions"]]


# Removals trigger restarts


def test_destroy_restarts_a_remaining_service_with_its_former_settings(site: Site) -> None:
    """Not only the files are restored: sshd also runs with its former settings again."""
    assert site.ports() == ["22"]
    site.say("apply", SSHD)
    assert site.ports() == ["22", "2222"]
    done = site.report("destroy")
    assert names(done, "removals") == [["service:ssh"], [f"file:{SETTINGS}"], ["service:ssh (stays)"]]
    ((last,),) = done["removals"][2:]
    assert (last["outcome"], last["triggered_by"], last["stays"]) == ("changed", [f"file:{SETTINGS}"], True)
    assert ops(last)[-1] == "restart"
    assert site.ports() == ["22"]
    assert site.report("destroy")["removals"] == []


def test_prune_restarts_a_service_that_is_still_defined(site: Site) -> None:
    """An apply restarts the service at its turn among the others. A prune restarts it after the removals.

    After each of these restarts, statecfg tries a new login.
    """
    assert site.report("apply", SSHD)["login"] == {"ok": True}
    without = SSHD.partition("  - file")[0] + "  - service: ssh\n    running: true\n    enabled: true\n"
    planned = site.report("plan", without, "--prune")
    ((node,),) = planned["layers"]
    assert (node["outcome"], node["triggered_by"]) == ("changed", [f"file:{SETTINGS}"])
    site.say("apply", without, "--prune")
    assert site.ports() == ["22"]
    site.say("apply", SSHD)
    done = site.report("prune", without)
    assert names(done, "removals") == [[f"file:{SETTINGS}"], ["service:ssh (stays)"]]
    assert done["login"] == {"ok": True}
    assert site.ports() == ["22"]
    said = site.say("verify").out
    assert "service:ssh" not in said or "changed" not in said
    site.say("destroy")


NAP = "/usr/lib/systemd/system/nap.service"
UNIT = "[Service]\nEnvironmentFile=-/etc/nap\nExecStart=/bin/sh -c 'exec sleep $${LONG:-1000}'\n"
NAPS = """
hosts: guarded
resources:
  - file: /etc/nap
    content: "LONG=2000\\n"
  - file: /etc/systemd/system/nap.service.d/nice.conf
    content: "[Service]\\nNice=5\\n"
    requires: [directory:/etc/systemd/system/nap.service.d]
  - directory: /etc/systemd/system/nap.service.d
  - service: nap
    running: true
    restart_on: [file:/etc/nap, file:/etc/systemd/system/nap.service.d/nice.conf]
"""


def running(site: Site) -> str:
    """Return the arguments and the niceness of the process of nap."""
    pid = site.show("nap", "MainPID")
    return site.host.run(["ps", "-o", "ni=,args=", "-p", pid]).stdout.strip()


@pytest.fixture
def nap(site: Site) -> Iterator[Site]:
    """Give a host that runs the service nap with its own settings."""
    site.host.write(NAP, UNIT)
    site.host.run(["systemctl", "daemon-reload"])
    site.host.run(["systemctl", "restart", "nap"])
    yield site
    site.say("destroy", NAPS)
    site.host.run(["systemctl", "stop", "nap"])
    site.host.run(["rm", "-f", NAP])
    site.host.run(["systemctl", "daemon-reload"])


def test_removing_a_drop_in_reloads_and_restarts_its_unit(nap: Site) -> None:
    """Without a reload the unit would keep the drop-in's settings at each restart."""
    usual = running(nap)
    nap.say("apply", NAPS)
    assert running(nap) == "5 sleep 2000"
    done = nap.report("destroy")
    nodes = {node["name"]: node for layer in done["removals"] for node in layer}
    assert ops(nodes["service:nap (stays)"]) == ["daemon_reload", "restart"]
    assert running(nap) == usual and nap.show("nap", "NeedDaemonReload") == "no"


def test_a_restored_file_restarts_or_reloads_the_service_that_stays(nap: Site) -> None:
    """The process has the former settings of the file again."""
    nap.host.write("/etc/nap", "LONG=1500\n")
    nap.host.run(["systemctl", "restart", "nap"])
    usual = running(nap)
    nap.say("apply", NAPS)
    assert running(nap) == "5 sleep 2000"
    nap.say("destroy")
    assert running(nap) == usual and usual.endswith("sleep 1500")
    nap.host.write(NAP, UNIT + "ExecReload=/bin/cp /etc/nap /run/nap\n")
    nap.host.run(["systemctl", "daemon-reload"])
    reloads = NAPS.replace("    running: true", "    running: true\n    on_change: reload")
    nap.say("apply", reloads)
    before = nap.show("nap", "InvocationID")
    without = "hosts: guarded\nresources:\n  - service: nap\n    running: true\n    on_change: reload\n"
    done = nap.report("prune", without)
    nodes = {node["name"]: node for layer in done["removals"] for node in layer}
    assert ops(nodes["service:nap (stays)"])[-1] == "reload"
    assert nap.host.read("/run/nap") == "LONG=1500\n" and nap.show("nap", "InvocationID") == before
    nap.host.run(["rm", "/etc/nap", "/run/nap"])


def test_a_failed_restart_is_repeated_by_the_next_destroy(nap: Site) -> None:
    """The debt stays on the host although the service's record is gone, and it is shown until it is paid."""
    nap.say("apply", NAPS)
    nap.host.write("/run/systemd/system/nap.service.d/broken.conf", "[Service]\nExecStartPre=/bin/false\n")
    nap.host.run(["systemctl", "daemon-reload"])
    done = nap.report("destroy", code=1)
    assert done["removals"][-1][0]["outcome"] == "failed"
    nap.host.run(["rm", "-r", "/run/systemd/system/nap.service.d"])
    nap.host.run(["systemctl", "daemon-reload"])
    nap.host.run(["systemctl", "start", "nap"])
    before = nap.show("nap", "InvocationID")
    again = nap.report("destroy")
    assert {(debt["node"], debt["cause"]) for debt in again["owed"]} >= {("service:nap (stays)", "file:/etc/nap")}
    assert names(again, "removals") == [["service:nap (stays)"]]
    assert nap.show("nap", "InvocationID") != before
    assert "owed" not in nap.say("destroy").out and not nap.report("destroy")["owed"]


def test_a_restart_owed_to_a_missing_unit_is_dropped(nap: Site) -> None:
    """The debt is not shown, and there is nothing to do."""
    nap.say("apply", NAPS)
    nap.host.write("/run/systemd/system/nap.service.d/broken.conf", "[Service]\nExecStartPre=/bin/false\n")
    nap.host.run(["systemctl", "daemon-reload"])
    assert nap.report("destroy", code=1)["removals"][-1][0]["outcome"] == "failed"
    nap.host.run(["rm", "-r", "/run/systemd/system/nap.service.d", NAP])
    nap.host.run(["systemctl", "stop", "nap"])
    nap.host.run(["systemctl", "daemon-reload"])
    nap.host.run(["systemctl", "reset-failed"])
    again = nap.report("destroy")
    assert (again["removals"], again["owed"]) == ([], [])
    nap.host.write(NAP, UNIT)
    nap.host.run(["systemctl", "daemon-reload"])
    nap.host.run(["systemctl", "start", "nap"])
    assert nap.report("destroy")["removals"] == []  # a new unit of this name does not inherit the debt


def test_a_unit_that_does_not_run_owes_no_restart(nap: Site) -> None:
    nap.host.run(["systemctl", "stop", "nap"])
    nap.say("apply", NAPS.replace("    running: true\n", ""))
    assert nap.report("plan")["owed"] == []


ON_DEMAND = """
hosts: guarded
resources:
  - service: lamp.socket
    running: false
  - service: lamp
    running: true
    requires: [service:lamp.socket]
"""


def test_destroy_restores_a_socket_and_its_service(site: Site) -> None:
    """The service must stop before the socket can start again. A connection may then start the service any time."""
    units = "/usr/lib/systemd/system"
    site.host.write(f"{units}/lamp.socket", "[Socket]\nListenStream=/run/lamp\n")
    site.host.write(f"{units}/lamp.service", "[Service]\nExecStart=/bin/sleep 1000\n")
    site.host.run(["systemctl", "daemon-reload"])
    site.host.run(["systemctl", "start", "lamp.socket"])
    touch = ["python3", "-c", "import socket; socket.socket(socket.AF_UNIX).connect('/run/lamp')"]
    for touched in (False, True):
        if touched:
            site.host.run(touch)
        before = [site.show(unit, "ActiveState") for unit in ("lamp.socket", "lamp.service")]
        site.say("apply", ON_DEMAND)
        assert [site.show(unit, "ActiveState") for unit in ("lamp.socket", "lamp.service")] == ["inactive", "active"]
        site.say("destroy")
        assert [site.show(unit, "ActiveState") for unit in ("lamp.socket", "lamp.service")] == before
        site.host.run(touch)
        assert site.show("lamp.service", "ActiveState") == "active"
    site.host.run(["systemctl", "stop", "lamp.socket", "lamp.service"])


SOCKET = """
hosts: guarded
resources:
  - directory: /etc/systemd/system/ssh.socket.d
  - file: /etc/systemd/system/ssh.socket.d/port.conf
    content: "[Socket]\\nListenStream=2222\\n"
    requires: [directory:/etc/systemd/system/ssh.socket.d]
  - service: ssh.socket
    restart_on: [file:/etc/systemd/system/ssh.socket.d/port.conf]
  - file: /etc/ssh/sshd_config.d/50-site.conf
    content: "MaxAuthTries 3\\n"
  - service: ssh
    restart_on: [file:/etc/ssh/sshd_config.d/50-site.conf]
"""


def test_sshd_and_its_socket_are_restarted_one_at_a_time(site: Site) -> None:
    """Restarting the socket stops the service and starts it again: a restart of the service would be cancelled."""
    site.host.run(["systemctl", "disable", "--now", "ssh.service"])
    site.host.run(["systemctl", "enable", "--now", "ssh.socket"])
    try:
        for _ in range(3):
            site.say("apply", SOCKET)
            assert site.show("ssh.socket", "ActiveState") == "active"
            last = site.report("destroy")["removals"][-1]
            assert {node["name"]: node["outcome"] for node in last} == {
                "service:ssh (stays)": "changed", "service:ssh.socket (stays)": "changed"
            }  # fmt: skip
            assert site.show("ssh.socket", "Listen") == "[::]:22 (Stream)"
            assert site.show("ssh.socket", "ActiveState") == "active"
    finally:
        site.host.run(["systemctl", "disable", "--now", "ssh.socket", "ssh.service"])
        site.host.run(["systemctl", "enable", "--now", "ssh.service"])


# Rollback of settings that prevent logins


def settings(text: str) -> str:
    """Return a playbook that gives sshd these settings."""
    return SSHD.replace("Port 22\\nPort 2222\\n", text)


def test_sshd_settings_that_prevent_every_login_are_rolled_back(site: Site) -> None:
    """The outcome says so, and a later apply with correct settings succeeds."""
    before = site.show("ssh", "InvocationID")
    done = site.report("apply", settings("AllowUsers nobody-at-all\\n"), code=1)
    assert done["login"] == {"ok": True}  # after the former settings came back
    (file,), (service,) = done["layers"]
    assert (file["outcome"], service["outcome"]) == ("failed", "failed")
    assert file["reason"] == "undone: no new login succeeded after sshd was restarted"
    assert f"restored ({SETTINGS}), and a new login works" in service["reason"]
    assert not site.host.path(SETTINGS).exists() and site.show("ssh", "InvocationID") != before
    site.say("apply", SSHD)
    assert site.ports() == ["22", "2222"]
    site.say("destroy")


def test_sshd_settings_with_a_syntax_error_fail_in_the_plan(site: Site) -> None:
    """sshd keeps running with its old settings, and no file is written."""
    before = site.show("ssh", "InvocationID")
    done = site.report("apply", settings("AllowUsrs root\\n"), code=1)
    (file,), (service,) = done["layers"]
    assert "Bad configuration option: AllowUsrs" in service["reason"]
    assert file["reason"] == "not started: its plan fails"
    assert not site.host.path(SETTINGS).exists() and site.show("ssh", "InvocationID") == before
    site.say("destroy")


def test_a_removal_that_would_prevent_every_login_is_rolled_back(site: Site) -> None:
    """The resources stay under management, so they can be removed once the cause is repaired."""
    hand = "/etc/ssh/sshd_config.d/99-hand.conf"
    site.say("apply", settings("PubkeyAuthentication yes\\n"))
    site.host.write(hand, "PubkeyAuthentication no\n")
    done = site.report("destroy", code=1)
    assert {node["name"]: node["outcome"] for layer in done["removals"] for node in layer} == {
        "service:ssh": "failed", f"file:{SETTINGS}": "failed", "service:ssh (stays)": "failed"
    }  # fmt: skip
    assert "PubkeyAuthentication yes" in site.host.read(SETTINGS)
    site.host.run(["rm", hand])
    again = site.report("destroy")
    assert f"file:{SETTINGS}" in [name for layer in names(again, "removals") for name in layer]
    assert not site.host.path(SETTINGS).exists()
    assert site.report("destroy")["removals"] == [] and not site.report("destroy")["owed"]


def test_sshd_settings_are_rolled_back_when_the_controller_is_lost(site: Site) -> None:
    """Without the controller nobody can check whether a login works."""
    asleep = "AuthorizedKeysCommand /bin/sleep 1000\\nAuthorizedKeysCommandUser root\\nAuthorizedKeysFile none\\n"
    (site.directory / "site.yml").write_text(settings(asleep))
    before = site.show("ssh", "InvocationID")
    argv = [sys.executable, "-m", "statecfg", "apply", "site.yml", "--yes", *site.options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, cwd=site.directory, env=environment, stderr=subprocess.DEVNULL) as process:
        until(lambda: site.show("ssh", "InvocationID") != before)
        restarted = site.show("ssh", "InvocationID")
        process.kill()
    until(lambda: not site.host.path(SETTINGS).exists())
    until(lambda: site.show("ssh", "InvocationID") != restarted)
    site.say("apply", SSHD)
    site.say("destroy")


def test_sshd_settings_are_rolled_back_after_a_restart_by_a_command(site: Site) -> None:
    """A command or a package script can restart sshd, too."""
    playbook = f"""
hosts: guarded
resources:
  - file: {SETTINGS}
    content: "AllowUsers nobody-at-all\\n"
    allow_lockout: true
  - command: again
    argv: [systemctl, restart, ssh]
    requires: ["file:{SETTINGS}"]
"""
    done = site.report("apply", playbook, code=1)
    assert "previous settings were restored" in done["halted"]
    assert done["layers"][0][0]["outcome"] == "failed" and not site.host.path(SETTINGS).exists()
    site.say("destroy")


def test_a_local_run_says_that_no_new_login_was_tried(site: Site) -> None:
    local = settings("LogLevel VERBOSE\\n").replace("hosts: guarded", 'hosts: "@local"')
    site.host.write("/root/local/site.yml", local)
    for verb in ("apply", "destroy"):
        argv = [
            "sh",
            "-c",
            f"cd /root/local && exec env PYTHONPATH={ROOT} {sys.executable} -m statecfg {verb} site.yml --yes",
        ]
        said = site.host.run(argv).stdout
        assert "sshd was restarted. statecfg could not try a new login" in " ".join(said.split())


# Units that fail


def dying(site: Site) -> None:
    """Give a host a service that ends when /run/die exists, and a socket for it."""
    script = "echo last words of hunter2-token; while ! test -e /run/die; do sleep 0.1; done; exit 7"
    site.host.write("/usr/lib/systemd/system/dies.service", f"[Service]\nExecStart=/bin/sh -c '{script}'\n")
    site.host.write("/usr/lib/systemd/system/dies.socket", "[Socket]\nListenStream=/run/dies.socket\n")
    site.host.run(["systemctl", "daemon-reload"])


@pytest.mark.parametrize(
    ("unit", "cause"),
    [("dies", "restarted by its node"), ("dies.socket", "started again after its socket")],
    ids=["service", "socket"],
)
def test_a_unit_that_ends_soon_after_its_restart_has_failed(site: Site, unit: str, cause: str) -> None:
    dying(site)
    site.host.run(["systemctl", "start", "dies"])
    playbook = f"""
hosts: guarded
resources:
  - file: /etc/dies
    content: "{cause}"
  - service: {unit}
    running: true
    restart_on: ["file:/etc/dies"]
  - command: go-on
    shell: touch /run/die; while systemctl is-active --quiet dies; do sleep 0.1; done
    requires: [service:{unit}]
"""
    done = site.report("apply", playbook, code=1)
    nodes = {node["name"]: node for layer in done["layers"] for node in layer}
    assert nodes[f"service:{unit}"]["outcome"] == "failed"
    assert "dies.service is failed, result: exit-code 7" in nodes[f"service:{unit}"]["reason"]
    site.host.run(["rm", "/run/die"])
    site.say("destroy")
    site.host.run(["systemctl", "stop", "dies.socket", "dies.service"])


def test_a_unit_that_ends_soon_after_its_start_has_failed(site: Site) -> None:
    """The report contains its result and last lines without the secret, and dependents did not have to wait."""
    dying(site)
    playbook = """
hosts: guarded
vars: {token: !secret {env: LIFE_TOKEN}}
resources:
  - file: /root/token
    content: "{{ token }}"
  - service: dies
    running: true
    requires: ["file:/root/token"]
  - command: go-on
    shell: touch /run/die; while systemctl is-active --quiet dies; do sleep 0.1; done
    requires: [service:dies]
"""
    ran = site.say("apply", playbook, "--json", code=1, LIFE_TOKEN="hunter2-token")
    nodes = {node["name"]: node for layer in ran.json()["hosts"]["guarded"]["layers"] for node in layer}
    dead = nodes["service:dies"]
    assert dead["outcome"] == "failed" and "result: exit-code 7" in dead["reason"]
    assert "last words of <secret LIFE_TOKEN>" in dead["reason"] and "hunter2" not in ran.out + ran.err
    assert nodes["command:go-on"]["outcome"] == "changed"
    site.host.run(["rm", "/run/die"])
    quick = playbook.replace("running: true", "running: true\n    stable_for: 0")
    site.say("apply", quick, LIFE_TOKEN="hunter2-token")
    site.say("destroy", LIFE_TOKEN="hunter2-token")


def test_a_unit_that_does_not_start_reports_the_reason(site: Site) -> None:
    unit = "[Service]\nType=notify\nExecStart=/bin/sh -c 'echo no such port; exit 3'\n"
    site.host.write("/usr/lib/systemd/system/broken.service", unit)
    site.host.run(["systemctl", "daemon-reload"])
    done = site.report("apply", "hosts: guarded\nresources:\n  - service: broken\n    running: true\n", code=1)
    ((node,),) = done["layers"]
    assert "result: exit-code 3" in node["reason"] and "no such port" in node["reason"]
    site.say("destroy")
