"""The test hosts keep the promises of their fixtures and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import ROOT, lab
from tests.lab import owner, processes

Hosts = Callable[[int], list[lab.Host]]


def page(host: lab.Host, path: str = "/") -> str:
    """Return the answer of webd on a host to a request from this machine."""
    with urllib.request.urlopen(f"http://{host.address}:8080{path}", timeout=30) as response:
        return str(response.read().decode().strip())


def test_a_process_with_a_connection_to_a_host_is_found(light_host: lab.Host) -> None:
    address = light_host.address, light_host.port
    assert not processes.connected(os.getpid(), *address)
    with socket.create_connection(address, 30):
        assert processes.connected(os.getpid(), *address)
        assert not processes.connected(os.getpid(), light_host.address, light_host.port + 1)
        assert not processes.connected(os.getppid(), *address)
    assert not processes.connected(os.getpid(), *address)


def test_sshd_runs_the_command_it_receives(sshd: lab.PlainSshd) -> None:
    """A loopback sshd accepts its own key and needs no user's SSH settings."""
    assert sshd.ssh(["echo", "a  b"]).stdout == "a  b\n"
    processes.wait_until(lambda: sshd.sessions() == [], 20, "the session to end")


def test_sshd_runs_a_forced_command_instead(make_sshd: Callable[..., lab.PlainSshd]) -> None:
    """A forced command replaces the requested one, quotes included. Extra configuration lines take precedence."""
    server = make_sshd(forced_command='printf "%s" "$SSH_ORIGINAL_COMMAND"', config=["LogLevel DEBUG1"])
    assert server.ssh(["true"]).stdout == "true"
    assert "debug1" in server.log.read_text()


def test_stopping_sshd_ends_its_open_sessions(make_sshd: Callable[..., lab.PlainSshd]) -> None:
    """Open sessions are children of the listener. Stopping the listener ends their commands."""
    server = make_sshd(forced_command="echo $$; exec sleep 600")
    argv = ["ssh", "-F", "/dev/null", "-o", f"UserKnownHostsFile={server.known_hosts}", "-i", str(server.identity)]
    with subprocess.Popen(
        [*argv, "-p", str(server.port), f"{server.user}@127.0.0.1"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as client:
        assert client.stdout
        sleeping = int(client.stdout.readline())
        assert len(server.sessions()) == 1
        server.stop()
        processes.wait_until(lambda: not processes.alive(sleeping), 20, "the session's command to end")
        assert client.wait(60) == 255


ORDINARY = """
from pathlib import Path
from tests import lab
server = lab.plain_sshd(Path("scratch"))
print(server.ssh(["id", "-un"]).stdout, end="")
server.stop()
try:
    lab.light_hosts(1)
except lab.Unavailable as reason:
    print(reason)
"""


def test_sshd_works_for_ordinary_users(light_host: lab.Host) -> None:
    """A user who isn't root can run a loopback sshd. An error says that other hosts need root."""
    lab.add_user(light_host, "ann")
    shutil.copytree(ROOT / "tests/lab", light_host.path("/home/ann/tests/lab"))
    light_host.write("/home/ann/tests/__init__.py", "")
    shown = light_host.ssh(["/usr/bin/python3", "-B", "-c", ORDINARY], user="ann").stdout
    assert shown == "ann\nhosts with their own address need root\n"


def test_light_hosts_are_isolated_from_each_other(make_light_hosts: Hosts, tmp_path: Path) -> None:
    """Light hosts have their own names, keys, files and processes, and a fresh home of root."""
    one, two = make_light_hosts(2)
    assert [host.ssh(["hostname"]).stdout for host in (one, two)] == ["light1\n", "light2\n"]
    assert one.known_hosts.read_text() != two.known_hosts.read_text()
    one.write("/etc/only-one", "1")
    assert one.ssh(["cat", "/etc/only-one"]).stdout == one.read("/etc/only-one") == "1"
    assert two.run(["test", "-e", "/etc/only-one"], check=False).returncode == 1
    assert not Path("/etc/only-one").exists()
    for hidden in ("/root/.bashrc", "/var/lib/statecfg", "/var/cache/statecfg", "/usr/sbin/policy-rc.d"):
        assert not one.path(hidden).exists()
    config = lab.write_ssh_config(tmp_path / "config", [one, two])
    asked = subprocess.run(["ssh", "-F", str(config), "light2", "hostname"], capture_output=True, text=True, check=True)
    assert asked.stdout == "light2\n"


def test_light_host_has_python_and_terminals(light_host: lab.Host) -> None:
    """A light host has a Python, a null device and pseudo-terminals."""
    script = "import pty, sys; pty.openpty(); open('/dev/null', 'w').write('x'); print(sys.version_info[:2] >= (3, 8))"
    assert light_host.ssh(["python3", "-I", "-S", "-c", script]).stdout == "True\n"


@pytest.mark.parametrize(("sudo", "code"), [("nopasswd", 0), ("password", 1), (None, 1)])
def test_users_get_only_the_sudo_rights_they_were_given(light_host: lab.Host, sudo: str | None, code: int) -> None:
    """A user added with a kind of sudo right has exactly that right."""
    name = f"user-{sudo}".lower()
    lab.add_user(light_host, name, sudo=sudo, password="open sesame")
    assert light_host.ssh(["sudo", "-n", "id", "-u"], user=name, check=False).returncode == code
    asked = light_host.ssh(["sudo", "-S", "-p", "", "id", "-u"], user=name, stdin="open sesame\n", check=False)
    assert (asked.stdout == "0\n") == (sudo is not None)


def test_booted_host_runs_systemd(booted: lab.Host) -> None:
    """A booted host has systemd as process 1, all units up, and an sshd whose sessions can be found."""
    assert booted.read("/proc/1/comm") == "systemd\n"
    assert booted.run(["systemctl", "is-system-running"]).stdout == "running\n"
    with socket.create_connection((booted.address, 22), timeout=30):
        processes.wait_until(lambda: len(booted.sessions()) == 1, 20, "a session of the listener")
    assert booted.listener in processes.descendants(booted.pid)


def test_package_installs_serves_upgrades_and_purges(booted: lab.Host) -> None:
    """A package starts its service, reloads it, upgrades, keeps a changed conffile and can be purged."""
    apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy"]
    booted.run([*apt, "install", "webd=1.0"])
    assert booted.run(["systemctl", "is-active", "webd"]).stdout == "active\n"
    assert booted.run(["systemctl", "is-enabled", "webd"]).stdout == "enabled\n"
    processes.wait_until(lambda: booted.run(["ss", "-Hltn", "sport = :8080"]).stdout != "", 30, "webd to listen")
    assert (page(booted), page(booted, "/version")) == ("hello", "1.0")
    booted.write("/etc/webd/webd.conf", "message = changed\n")
    assert booted.run(["webd", "--check", "/etc/webd/webd.conf"]).returncode == 0
    booted.run(["systemctl", "reload", "webd"])
    processes.wait_until(lambda: page(booted) == "changed", 30, "webd to reload")
    booted.run([*apt, "-o", "Dpkg::Options::=--force-confold", "install", "webd"])
    processes.wait_until(lambda: booted.run(["ss", "-Hltn", "sport = :8080"]).stdout != "", 30, "webd to listen")
    assert (page(booted), page(booted, "/version")) == ("changed", "1.1")
    booted.run([*apt, "purge", "webd"])
    assert not booted.path("/etc/webd/webd.conf").exists()


def test_booted_hosts_are_isolated_from_each_other(booted: lab.Host, make_booted_host: Callable[[], lab.Host]) -> None:
    """A service of one booted host keeps running when another host stops the same service."""
    other = make_booted_host()
    unit = "[Service]\nExecStart=/bin/sleep infinity\n"
    for host in (booted, other):
        host.write("/etc/systemd/system/same.service", unit)
        host.run(["systemctl", "daemon-reload"])
        host.run(["systemctl", "start", "same"])
    other.run(["systemctl", "kill", "--signal=KILL", "same"])
    other.stop()
    assert booted.run(["systemctl", "is-active", "same"]).stdout == "active\n"


def test_apt_follows_dependencies_and_broken_packages_fail(
    light_host: lab.Host, apt_packages: lab.AptRepository
) -> None:
    """Dependencies are followed, versions can be chosen, and the broken package's postinst fails."""
    apt_packages.use(light_host)
    light_host.run(["apt-get", "-qy", "install", "tool-b", "tool-a=1.0"])
    assert light_host.run(["tool-b"]).stdout == "1.0\n"
    assert light_host.run(["apt-get", "-qy", "install", "broken"], check=False).returncode == 100
    light_host.write("/etc/broken-works", "")
    light_host.run(["dpkg", "--configure", "-a"])


def left_behind(pid: int) -> list[str]:
    """Return the mounts, network links, directories and cgroups of a test process."""
    cgroups = [entry for root in owner.cgroup_roots() for entry in root.glob(f"statecfg-tests-{pid}-*")]
    directory = owner.RUN / str(pid)
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(directory) in line]
    links = [name for name, owner_id in owner.links().items() if owner_id == str(pid)]
    return [*map(str, cgroups), *mounts, *links, *([str(directory)] if directory.exists() else [])]


CHILD = """
import sys
from tests import lab
started = [lab.booted_host(), *lab.light_hosts(2)]
print(*[pid for host in started for pid in (host.process.pid, host.pid)], flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("killed", [False, True], ids=["ends normally", "is killed"])
def test_ended_or_killed_processes_leave_nothing_behind(light_host: lab.Host, killed: bool) -> None:
    """A test process that ends leaves nothing. A killed one leaves no process, and the next run removes the rest."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin
        assert child.stdout
        started = [int(pid) for pid in child.stdout.readline().split()]
        assert len(started) == 6
        assert len(left_behind(child.pid)) >= 4
        if killed:
            os.kill(child.pid, signal.SIGKILL)
        else:
            child.stdin.close()
        child.wait(30)
    processes.wait_until(lambda: not any(processes.alive(pid) for pid in started), 30, "the hosts to end")
    if killed:
        owner.base()
        with owner.exclusive():
            owner.remove_stale(keep_own=True)
    assert left_behind(child.pid) == []


def test_stopping_a_host_removes_its_processes_link_and_files(make_light_hosts: Hosts) -> None:
    """Stopping a host ends its processes, its link and its files at once."""
    (host,) = make_light_hosts(1)
    before = owner.links()
    host.stop()
    processes.wait_until(lambda: len(owner.links()) == len(before) - 1, 20, "the network link to disappear")
    assert not processes.alive(host.pid)
    assert not host.home.exists()
