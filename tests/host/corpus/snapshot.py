"""Records a host's files, accounts, packages, units, processes and sysctls, and compares two such snapshots."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import Host

# File systems that the kernel or systemd creates again at each boot.
SKIPPED = ("/proc", "/sys", "/dev", "/run", "/tmp")
# Differences that are allowed after a destroy: (kind, pattern of the name, reason). The name of a file is its path.
MAY_DIFFER = (
    ("file", r"/var/lib/statecfg(/.*)?", "the ledger; it records the runs"),
    ("file", r"/var/cache/statecfg(/.*)?", "the executor, cached for the next run"),
    ("file", r"/var/log/(journal/.*|wtmp|btmp|lastlog)", "systemd and logins write these logs all the time"),
    ("file", r"/var/log/(dpkg\.log|alternatives\.log|apt/.*)", "logs of apt and dpkg"),
    ("file", r"/var/lib/dpkg/(status|available|diversions|statoverride)-old", "dpkg's copies of its former databases"),
    ("file", r"/var/backups/(apt|dpkg|alternatives).*", "Debian's copies of package databases"),
    ("file", r"/var/lib/dpkg/(lock|lock-frontend|triggers/Lock|triggers/Unincorp)", "locks and queues of dpkg"),
    ("file", r"/var/lib/dpkg/status", "the order of packages in it; the packages themselves are compared"),
    ("file", r"/var/lib/dpkg/info/[^/]*", "maintainer scripts of packages; the packages themselves are compared"),
    ("file", r"/var/lib/apt/(extended_states|lists(/.*)?|periodic(/.*)?|mirrors(/.*)?)", "apt's lists and marks"),
    ("file", r"/var/cache/(apt|debconf|ldconfig|man|fontconfig)(/.*)?|/etc/ld\.so\.cache", "caches, made anew"),
    ("file", r"/var/lib/systemd/(random-seed|timers(/.*)?|deb-systemd-.*|catalog/.*)", "systemd's seed and notes"),
    ("file", r"/var/lib/(ucf(/.*)?|pam(/.*)?)", "notes of ucf and pam-auth-update about configuration files"),
    ("file", r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)", "their lines are compared as accounts, in any order"),
    ("file", r"/etc/(passwd|group|shadow|gshadow)-|/etc/\.pwd\.lock|/etc/sub[ug]id-", "copies made by the user tools"),
    ("file", r"(/.*)?/__pycache__(/.*)?", "Python's compiled modules"),
    ("file", r"/var/www(/html(/index\.nginx-debian\.html)?)?", "nginx's own page, which its purge leaves"),
    ("unit", r"user(-runtime-dir)?@0\.service", "root's session, for as long as the login lasts"),
    ("unit", r".*\.target", "a target that a unit wanted stays reached until the next boot"),
)


@dataclass(frozen=True)
class Snapshot:
    """The state of a host at one moment; each field maps names to the text that is compared."""

    file: Mapping[str, str]
    account: Mapping[str, str]
    package: Mapping[str, str]
    unit: Mapping[str, str]
    process: Mapping[str, str]
    sysctl: Mapping[str, str]


def take(host: Host) -> Snapshot:
    """Take a snapshot of a host."""
    return Snapshot(_files(host), _accounts(host), _packages(host), _units(host), _processes(host), _sysctls(host))


def differences(before: Snapshot, after: Snapshot, leaves: Sequence[tuple[str, str, str]] = ()) -> list[str]:
    """Return a line for each forbidden difference; `leaves` allows differences for one playbook, as MAY_DIFFER does."""
    found = []
    allowed = (*MAY_DIFFER, *leaves)
    for kind in ("package", "unit", "process", "sysctl", "account", "file"):
        old, new = getattr(before, kind), getattr(after, kind)
        for name in sorted({*old, *new}):
            was, now = old.get(name), new.get(name)
            if was != now and not any(k == kind and re.fullmatch(p, name) for k, p, _ in allowed):
                found.append(f"{kind} {name}: {was or 'absent'} -> {now or 'absent'}")
    return found


def _files(host: Host) -> dict[str, str]:
    found: dict[str, str] = {}
    root = str(host.root)
    stack = [""]
    while stack:
        above = stack.pop()
        for entry in os.scandir(root + above + "/"):
            name = f"{above}/{entry.name}"
            if name in SKIPPED or name == "/srv/debian":
                continue
            status = entry.stat(follow_symlinks=False)
            kind = stat.S_IFMT(status.st_mode)
            is_directory = stat.S_ISDIR(kind)
            if stat.S_ISLNK(kind):
                content = f"link to {os.readlink(entry.path)}"
            elif is_directory:
                content = "directory"
                stack.append(name)
            elif stat.S_ISREG(kind):
                content = _digest(entry.path, name, status)
            else:
                content = f"special {kind:o}"
            mode = "" if stat.S_ISLNK(kind) else f" {stat.S_IMODE(status.st_mode):04o}"
            lists = [x for x in os.listxattr(entry.path, follow_symlinks=False) if not x.startswith("trusted.overlay")]
            found[name] = f"{content}{mode} {status.st_uid}:{status.st_gid}" + "".join(f" {x}" for x in sorted(lists))
    return found


def _accounts(host: Host) -> dict[str, str]:
    """Return the lines of /etc/passwd, group, shadow, gshadow, subuid and subgid, by file and account."""
    found = {}
    for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid"):
        for line in host.read(f"/etc/{name}").splitlines():
            found[f"{name} {line.partition(':')[0]}"] = line.partition(":")[2]
    return found


_DIGESTS: dict[tuple[str, int, int, int], str] = {}


def _digest(path: str, name: str, status: os.stat_result) -> str:
    """Return a file's digest; a file of the bare Debian is read only once for all hosts."""
    key = (name, status.st_ino, status.st_ctime_ns, status.st_size)
    if key not in _DIGESTS:
        _DIGESTS[key] = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    return _DIGESTS[key]


def _packages(host: Host) -> dict[str, str]:
    form = "${binary:Package}\\t${Version} ${db:Status-Abbrev}\\n"
    rows = host.run(["dpkg-query", "--show", f"--showformat={form}"]).stdout.splitlines()
    by_hand = set(host.run(["apt-mark", "showmanual"]).stdout.split())
    found = dict(row.split("\t", 1) for row in rows)
    return {
        name: text + ("manual" if name.partition(":")[0] in by_hand or name in by_hand else "")
        for name, text in found.items()
    }


def _units(host: Host) -> dict[str, str]:
    found: dict[str, str] = {}
    argv = ["systemctl", "list-unit-files", "--no-legend", "--no-pager", "--plain"]
    for line in host.run(argv).stdout.splitlines():
        name, state = line.split()[:2]
        found[name] = state
    argv = ["systemctl", "list-units", "--all", "--no-legend", "--no-pager", "--plain"]
    for line in host.run(argv).stdout.splitlines():
        name, _, active, sub = line.split()[:4]
        if name.endswith((".service", ".socket", ".timer", ".path", ".target")) and active in ("active", "failed"):
            found[name] = f"{found.get(name, '')} {active} {sub}"
    return found


def _processes(host: Host) -> dict[str, str]:
    """Return the number of service processes for each user and command line."""
    rows = host.run(["ps", "-e", "-o", "user:32=,cgroup:200=,args:400="]).stdout.splitlines()
    found: dict[str, int] = {}
    for row in rows:
        user, group, arguments = row.split(None, 2)
        if ".service" in group and "/user" not in group and not arguments.startswith("ps "):
            name = f"{user} {arguments.strip()}"
            found[name] = found.get(name, 0) + 1
    return {name: str(count) for name, count in found.items()}


def _sysctls(host: Host) -> dict[str, str]:
    """Return the network sysctls; the host shares all others with this machine."""
    shown = host.run(["sysctl", "-a", "-r", r"^net\."]).stdout.splitlines()
    found: dict[str, str] = {}
    for line in shown:
        name, _, value = line.partition(" = ")
        found[name] = f"{found[name]}|{value}" if name in found else value
    return found
