"""Booted hosts: a whole Debian with systemd as process 1, in a container of its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.lab import login, owner, processes
from tests.lab.host import Host
from tests.lab.light import NETWORK, PREPARE, begin, proceed

# systemd-nspawn has a process tree of its own around it, as what it boots outlives it when it is killed.
# The host's own cgroups ($5 and on) keep systemd from sharing names of services with another host's. Without the two
# capabilities no host can set this machine's clock or load modules into its kernel.
BOOTED = (
    PREPARE
    + NETWORK
    + """\
mount -t proc proc /proc
name=$1 root=$2/root
shift 4
for group; do
    echo $$ > "$group/cgroup.procs"
done
exec systemd-nspawn --quiet --keep-unit --register=no --network-namespace-path=/proc/self/ns/net \\
    --capability=all --drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE --console=passive --resolv-conf=off \\
    --timezone=off --link-journal=no --machine="$name" --directory="$root" --boot
"""
)
_count = 0


def booted_host(name: str = "booted", *, seconds: float = 60, bare: Path | None = None) -> Host:
    """Boot a host and wait until it answers on SSH and systemd has started everything; needs root.

    Parameters: `name`, its host name; `seconds`, how long to wait; `bare`, a directory with a whole Debian whose files
    the host sees (read only) instead of this machine's. Errors: `Unavailable` if this machine can't.
    """
    global _count
    owner.require_root_hosts()
    if not shutil.which("systemd-nspawn"):
        raise owner.Unavailable("there is no systemd-nspawn (Debian: systemd-container)")
    if not os.path.exists("/usr/lib/systemd/systemd"):
        raise owner.Unavailable("there is no systemd to boot (Debian: systemd-sysv)")
    owner.base()
    _count += 1
    cgroups = [root / f"statecfg-tests-{os.getpid()}-{_count}" for root in owner.cgroup_roots()]
    for directory in cgroups:
        directory.mkdir()
    begun = begin(name, ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "sh", "-c", BOOTED], cgroups, bare)
    host = begun.host
    try:
        proceed([begun])
        login.await_ssh(host, host.process, host.log, seconds)
        (container,) = processes.children(host.process.pid)
        (host.pid,) = processes.children(container)
        state = host.run(["systemctl", "is-system-running", "--wait"], check=False, seconds=seconds).stdout.strip()
        if state not in ("running", "degraded"):
            raise RuntimeError(f"{name} is {state or 'without systemd'}:\n{host.log.read_text(errors='replace')}")
    except BaseException:
        host.stop()
        raise
    return host
