"""Booted hosts: each is a complete Debian with systemd as process 1 in a container."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.lab import login, owner, processes
from tests.lab.host import Host
from tests.lab.light import NETWORK, PREPARE, begin, proceed

# The container survives a kill of systemd-nspawn, so systemd-nspawn runs in a separate process tree that ends with it.
# Each host has separate cgroups ($5 and the following), so that the services of two hosts can't share cgroups. Without
# the two capabilities, no host can set the clock of this machine or load modules into its kernel.
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
# When the host reboots, systemd-nspawn ends with this status. Each boot gets a new boot id and new
# mounts. Its console goes to the log: no process reads stdout, so a few boots would fill the pipe.
status=133
while [ "$status" = 133 ]; do
    status=0
    unshare -m systemd-nspawn --quiet --keep-unit --register=no --network-namespace-path=/proc/self/ns/net \\
        --capability=all --drop-capability=CAP_SYS_TIME,CAP_SYS_MODULE --console=passive --resolv-conf=off \\
        --timezone=off --link-journal=no --machine="$name" --directory="$root" --boot < /dev/null >&2 || status=$?
    while [ -e "$root.off" ]; do
        sleep 0.1
    done
done
exit "$status"
"""
)
_count = 0


def _find(host: Host) -> None:
    """Find process 1 of a host that has booted."""
    (shell,) = processes.children(host.process.pid)
    (container,) = processes.children(shell)
    (host.pid,) = processes.children(container)


def await_boot(host: Host, seconds: float = 60) -> None:
    """Wait until SSH answers on a host, also after a reboot, and until systemd has started all services."""
    login.await_ssh(host, host.process, host.log, seconds)
    _find(host)
    state = host.run(["systemctl", "is-system-running", "--wait"], check=False, seconds=seconds).stdout.strip()
    if state not in ("running", "degraded"):
        raise RuntimeError(f"{host.name} is {state or 'without systemd'}:\n{host.log.read_text(errors='replace')}")


def booted_host(name: str = "booted", *, seconds: float = 60, bare: Path | None = None) -> Host:
    """Boot a host. Wait until SSH answers and systemd has started all services. Needs root.

    The host can reboot: call `await_boot` afterwards. The file `root.off` in
    `host.home` keeps it off.

    Parameters: `name`, the host name; `seconds`, the time limit; `bare`, a directory with a complete Debian. The host
    sees its files (read-only) instead of this machine's. Errors: `Unavailable` if this machine can't boot hosts.
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
        await_boot(host, seconds)
    except BaseException:
        host.stop()
        raise
    return host
