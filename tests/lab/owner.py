"""Who made which host: names that carry our process id, the tmpfs hosts live on, and removal of what others left."""

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

RUN = Path("/run/statecfg-tests")  # one directory (a tmpfs) per test process, named by its id
LINK = re.compile(r"(?:^|\s)(sc[bv](\d+)(?:n\d+)?)(?=[@:\s]|$)")  # our bridges and veths, in the output of `ip`
CGROUP = re.compile(r"statecfg-tests-(\d+)-\d+")


class Unavailable(Exception):
    """Says why this machine can't give a host of the wanted kind."""


class Stoppable(Protocol):
    """What runs until it is stopped."""

    def stop(self) -> None:
        """End it."""


_running: list[Stoppable] = []
_prepared = False


def remember(host: Stoppable) -> None:
    """Have a host stopped at the end of the test process, unless it is stopped before."""
    _running.append(host)


def forget(host: Stoppable) -> None:
    """Note that a host is stopped."""
    if host in _running:
        _running.remove(host)


def start(
    argv: Sequence[str], *, stdin: int, stdout: int | None = None, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that the kernel kills when the thread that started it ends."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
    if log is None:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, start_new_session=True)
    with log.open("ab") as sink:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout or sink, stderr=sink, start_new_session=True)


def require_root_hosts() -> None:
    """Raise `Unavailable` unless this machine, and who runs the tests, can have hosts of their own address."""
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
    """Return this process's directory on a tmpfs of its own, made at the first call; removes what dead runs left."""
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
    """Hold the lock that test processes take to make or remove what all of them see (networks, mounts)."""
    with open(RUN / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_stale(*, keep_own: bool = False) -> None:
    """Remove mounts, links and cgroups whose owner is dead; also ours, unless kept: its process id was used before."""
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
    """Stop every host of this process, and remove its network and its directory."""
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
    """Return the network links that test processes made: name to the owner's process id."""
    shown = subprocess.run(["ip", "-o", "link", "show"], check=True, capture_output=True, text=True).stdout
    return {match[1]: match[2] for match in LINK.finditer(shown)}


def cgroup_roots() -> list[Path]:
    """Return the roots of the cgroup hierarchies that systemd uses: version 2's, and version 1's named one."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(m[1]) for m in mounts if m[2] == "cgroup2" or (m[2] == "cgroup" and "name=systemd" in m[3])]


def remove_cgroup(directory: Path) -> None:
    """Remove a cgroup and those below it; they have no processes any more."""
    for below, _, _ in os.walk(directory, topdown=False):
        os.rmdir(below)


def _drop_directory(directory: Path) -> None:
    if os.path.ismount(directory):
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
    directory.rmdir()


def _drop_links(which: Callable[[str], bool]) -> None:
    for name, pid in links().items():
        if which(pid):
            # A veth goes with its host's network namespace, maybe between our look and this: then it isn't there.
            gone = subprocess.run(["ip", "link", "delete", name], capture_output=True, text=True)
            if gone.returncode and "Cannot find device" not in gone.stderr:
                raise RuntimeError(f"ip link delete {name}: {gone.stderr.strip()}")


atexit.register(close_all)
