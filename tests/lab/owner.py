"""Owners of hosts: names with the process id of the owner, its tmpfs, and the removal of what dead owners left."""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

RUN = Path("/run/statecfg-tests")  # one directory (a tmpfs) per test process; its name is the process id
LINK = re.compile(r"(?:^|\s)(sc[bv](\d+)(?:n\d+)?)(?=[@:\s]|$)")  # bridges and veths of tests in the output of `ip`
CGROUP = re.compile(r"statecfg-tests-(\d+)-\d+")


class Unavailable(Exception):
    """This machine can't run hosts of the requested kind. The message gives the reason."""


class Stoppable(Protocol):
    """A host or a server that runs until `stop`."""

    def stop(self) -> None:
        """Stop the host or the server."""


_running: list[Stoppable] = []
_prepared = False


def remember(host: Stoppable) -> None:
    """Stop a host at the end of the test process, unless `forget` comes first."""
    _running.append(host)


def forget(host: Stoppable) -> None:
    """Note that a host has stopped."""
    if host in _running:
        _running.remove(host)


def start(
    argv: Sequence[str], *, stdin: int, stdout: int | None = None, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a process. The kernel kills it when the thread that started it ends."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    if log is None:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, start_new_session=True)
    with log.open("ab") as sink:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout or sink, stderr=sink, start_new_session=True)


def require_root_hosts() -> None:
    """Raise `Unavailable` if this machine or this user can't run hosts with separate addresses."""
    if sys.platform != "linux":
        raise Unavailable("hosts with their own address need Linux")
    if os.geteuid() != 0:
        raise Unavailable("hosts with their own address need root")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    packages = {"sshd": "openssh-server", "ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}
    missing = sorted({package for program, package in packages.items() if not shutil.which(program, path=path)})
    if missing:
        raise Unavailable(f"Debian packages are missing: {' '.join(missing)}")
    if not _prepared:
        trial = subprocess.run(["unshare", "-m", "-u", "-i", "-n", "-p", "-f", "true"], capture_output=True, text=True)
        if trial.returncode:
            raise Unavailable(f"this root may not make namespaces: {trial.stderr.strip()}")


def base() -> Path:
    """Return the directory of this process, a tmpfs. The first call creates it and removes what dead owners left."""
    global _prepared
    home = RUN / str(os.getpid())
    if not _prepared:
        RUN.mkdir(mode=0o755, exist_ok=True)
        with exclusive():
            remove_stale()
            home.mkdir(mode=0o755)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "statecfg-tests", str(home)], check=True)
        _prepared = True
    return home


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold the lock that test processes need to create or remove shared objects, such as networks and mounts."""
    with open(RUN / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_stale(*, keep_own: bool = False) -> None:
    """Remove mounts, links and cgroups of dead owners.

    Unless `keep_own` is true, also remove those with our process id, because an earlier process had the same id.
    """
    own = str(os.getpid())

    def dead(pid: str) -> bool:
        return not keep_own if pid == own else not Path("/proc", pid).exists()

    for entry in RUN.iterdir():
        if entry.name.isdigit() and dead(entry.name):
            _drop_directory(entry)
    _drop_links(dead)
    for directory in cgroup_roots():
        for entry in directory.iterdir():
            match = CGROUP.fullmatch(entry.name)
            if match and dead(match[1]):
                remove_cgroup(entry)


def close_all() -> None:
    """Stop all hosts of this process, and remove its network and its directory."""
    global _prepared
    for host in reversed(list(_running)):
        host.stop()
    if _prepared:
        mine = str(os.getpid())
        with exclusive():
            _drop_links(lambda pid: pid == mine)
            _drop_directory(RUN / mine)
        _prepared = False


def links() -> dict[str, str]:
    """Return the network links of test processes: a map from the name to the process id of the owner."""
    shown = subprocess.run(["ip", "-o", "link", "show"], check=True, capture_output=True, text=True).stdout
    return {match[1]: match[2] for match in LINK.finditer(shown)}


def cgroup_roots() -> list[Path]:
    """Return the roots of the cgroup hierarchies of systemd: that of version 2 and the named one of version 1."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(m[1]) for m in mounts if m[2] == "cgroup2" or (m[2] == "cgroup" and "name=systemd" in m[3])]


def remove_cgroup(directory: Path) -> None:
    """Remove a cgroup and the cgroups below it, which no longer contain processes."""
    for below, _, _ in os.walk(directory, topdown=False):
        os.rmdir(below)


def _drop_directory(directory: Path) -> None:
    if os.path.ismount(directory):
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
    directory.rmdir()


def _drop_links(which: Callable[[str], bool]) -> None:
    for name, pid in links().items():
        if which(pid):
            # A veth disappears with the network namespace of its host, so this one may be gone since we listed it.
            gone = subprocess.run(["ip", "link", "delete", name], capture_output=True, text=True)
            if gone.returncode and "Cannot find device" not in gone.stderr:
                raise RuntimeError(f"ip link delete {name}: {gone.stderr.strip()}")


atexit.register(close_all)
