"""Light hosts: complete hosts without an init system. sshd is process 1."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab import layer, login, network, owner, processes
from tests.lab.host import Host

# These scripts run in the new namespaces before the host starts: $1 name, $2 directory of its files, $3 the directories
# below them (lowerdir of overlayfs), $4 address. "ready" requests the network link. The answer says that it exists.
PREPARE = """\
set -eu
mount -t overlay "$1" -o "lowerdir=$3,upperdir=$2/upper,workdir=$2/work" "$2/root"
rm -rf "$2/root/var/lib/statecfg"  # this machine may have one
"""
NETWORK = """\
echo ready
read -r go
printf '%s\\n' 'link set lo up' "addr add $4 dev eth0" 'link set eth0 up' | ip -batch -
"""
LIGHT = (
    PREPARE
    + """\
mount -t proc proc "$2/root/proc"
mount -t sysfs sysfs "$2/root/sys"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$2/root/dev/pts"
echo "$1" > /proc/sys/kernel/hostname
"""
    + NETWORK
    + """\
exec chroot "$2/root" /usr/sbin/sshd -D -e
"""
)


@dataclass
class Begun:
    """A host that does not yet have its network link."""

    host: Host
    number: int


def light_hosts(n: int, *, prefix: str = "light", over: Path | None = None) -> list[Host]:
    """Start n hosts with the names `light1`, `light2` and so on. Wait until SSH answers on all of them. Needs root.

    Each has its own processes, network address, host name and copy-on-write view of this machine's files.
    Parameters: `over`, a layer above the one that all light hosts have.
    Errors: `Unavailable` if this machine can't run such hosts.
    """
    owner.require_root_hosts()
    unshare = ["unshare", "-m", "-u", "-i", "-n", "-p", "-f", "--kill-child"]
    begun = []
    try:
        for index in range(1, n + 1):
            begun.append(begin(f"{prefix}{index}", [*unshare, "sh", "-c", LIGHT], over=over))
        proceed(begun)
        for each in begun:
            each.host.pid = processes.children(each.host.process.pid)[0] if n < 10 else 0
        if n >= 10:
            below = {parent: child for child, parent in processes.parents().items()}
            for each in begun:
                each.host.pid = below[each.host.process.pid]
        for each in begun:
            login.await_ssh(each.host, each.host.process, each.host.log)
    except BaseException:
        for each in begun:
            with contextlib.suppress(ProcessLookupError):
                each.host.stop()
        raise
    return [each.host for each in begun]


def begin(
    name: str,
    argv: list[str],
    cgroups: list[Path] | None = None,
    bare: Path | None = None,
    over: Path | None = None,
) -> Begun:
    """Create the files of one host, and start its script.

    Parameters: `bare`, the file system that the host sees instead of this machine's; `over`, a layer above the others.
    """
    lower = f"{layer.bare_layer(bare)}:{bare}" if bare else f"{layer.lower_layer()}:/"
    lower = f"{over}:{lower}" if over else lower
    number, address = network.next_address()
    home = owner.base() / f"{name}-{number}"
    etc = home / "upper/etc"
    for directory in (etc / "ssh", home / "work", home / "root"):
        directory.mkdir(mode=0o755, parents=True)
    for directory in (home / "upper", etc):
        directory.chmod(0o755)
    login.make_key(etc / "ssh/ssh_host_ed25519_key")
    plain_address = address.partition("/")[0]
    (etc / "hostname").write_text(f"{name}\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{plain_address} {name}\n::1 localhost\n")
    (etc / "machine-id").write_text(f"{os.urandom(16).hex()}\n")
    host_key = " ".join((etc / "ssh/ssh_host_ed25519_key.pub").read_text().split()[:2])
    known_hosts = home / "known_hosts"
    known_hosts.write_text(f"{plain_address} {host_key}\n")
    log = home / "log"
    arguments = [*argv, "sh", name, str(home), lower, address, *map(str, cgroups or [])]
    process = owner.start(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, log=log)
    identity = owner.base() / "key"
    host = Host(name, plain_address, identity, known_hosts, log, process, cgroups=cgroups or [], home=home)
    owner.remember(host)
    return Begun(host, number)


def proceed(begun: list[Begun]) -> None:
    """Wait for the namespaces of hosts, create their network links, and let them start."""
    for each in begun:
        process = each.host.process
        assert process.stdin
        assert process.stdout
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"{each.host.name} could not be prepared:\n{each.host.log.read_text(errors='replace')}")
    network.connect([(each.number, each.host.process.pid) for each in begun])
    for each in begun:
        assert each.host.process.stdin
        each.host.process.stdin.write(b"go\n")
        each.host.process.stdin.close()
