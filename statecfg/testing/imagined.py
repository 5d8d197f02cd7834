"""Imagined hosts: the state of a machine as data, on which a plan can act."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.model import Blob
from statecfg.remote.machine.memory import Nothing
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.world import Probe
from statecfg.resources.services.systemd import unit_name
from statecfg.resources.services.unit_managers import facet_of, split

# The directories of every host that matter for definitions.
DIRECTORIES = (
    "/bin", "/boot", "/dev", "/etc/apt/sources.list.d", "/etc/cron.d", "/etc/default", "/etc/logrotate.d",
    "/etc/sudoers.d", "/etc/sysctl.d", "/etc/systemd/system", "/home", "/mnt", "/opt", "/root", "/run/systemd/system",
    "/sbin", "/srv", "/tmp", "/usr/bin", "/usr/lib/systemd/system", "/usr/local/bin", "/usr/local/sbin",  # noqa: S108  # names
    "/usr/sbin", "/usr/share", "/var/backups", "/var/cache", "/var/lib", "/var/log", "/var/mail", "/var/spool",
    "/var/tmp",  # noqa: S108  # the name of an imagined directory
)  # fmt: skip
VERSION = "imagined"  # of packages for which the host names no version
_MOMENT = 4_000_000_000  # the package lists are always new
_FIRST_ID = 1000
_SHELL = ("/bin/sh", "-c")

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class ImaginedHost:
    """The state of a host. Everything that is not named does not exist, except the usual directories and root.

    :param files: path → text or bytes, or None for a directory. Directories above it are created
    :param modes: path → permission bits as octal text, of files and directories
    :param links: path → target
    :param users: name → fields that differ from the usual ones: `uid`, `gid`, `home`, `shell`, `comment`, `groups`,
        and `linger`
    :param groups: name → `gid` and `members`
    :param packages: installed packages: name → version
    :param available: packages that can be installed: name → version; None for every name
    :param units: name → `active` (such as "active" or "inactive") and `enabled` (such as "enabled" or "disabled").
        `deploy/app` is a unit of the user `deploy`
    :param commands: command line of a guard, or its script → exit status, or a pair of exit status and output. All
        other programs are unknown, which guards treat as failure
    :param facts: the name of a built-in set (`debian-12`, `ubuntu-24.04`, `alma-9`), a file that `statecfg facts HOST
        --record` wrote, relative to the project, or name → value. The facts don't change the other parts of the host
    """

    files: Mapping[str, str | bytes | None] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[str, Fields] = field(default_factory=dict)
    groups: Mapping[str, Fields] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    available: Mapping[str, str] | None = None
    units: Mapping[str, Fields] = field(default_factory=dict)
    commands: Mapping[str, int | tuple[int, str]] = field(default_factory=dict)
    facts: str | Fields = field(default_factory=dict)

    def machine(self) -> Planned:
        """Return a new machine in this state."""
        machine = ImaginedMachine(_Base(self))
        machine.turn("")
        for path in DIRECTORIES:
            machine.mkdir(path, parents=True)
        machine.chmod("/tmp", 0o1777)  # noqa: S108  # the imagined directory
        machine.chmod("/root", 0o700)
        for path, content in self.files.items():
            machine.mkdir(path if content is None else posixpath.dirname(path), parents=True)
            if content is not None:
                machine.write(path, Blob.of(content))
        for path, target in self.links.items():
            machine.mkdir(posixpath.dirname(path), parents=True)
            machine.symlink(path, target)
        for path, mode in self.modes.items():
            machine.chmod(path, int(mode, 8))
        return machine


class ImaginedMachine(Planned):
    """The machine of an imagined host, on which everything runs as root, and the plans on top of it.

    :param base: the state below it
    """

    def __init__(self, base: Any) -> None:
        super().__init__(base, root=True)

    def _me(self) -> Any:
        return "root", "root"

    def target(self, path: str) -> str:
        """Return the target of the link at a canonical path, for a plan on top of this machine."""
        stat = self.stat(path)
        return stat.target if stat is not None else ""


class _Base(Nothing):
    """An empty machine with the facets of an imagined host, and its answers to read-only programs."""

    def __init__(self, host: ImaginedHost) -> None:
        super().__init__(dict(_facets(host)))
        self.host = host

    def probe(self, argv: Sequence[str], timeout: float = 60.0, **options: Any) -> Probe:
        line = argv[2] if tuple(argv[:2]) == _SHELL else " ".join(argv)
        answer = self.host.commands.get(line)
        if answer is not None:
            status, text = (answer, "") if isinstance(answer, int) else answer
            return Probe(status, text.encode())
        if argv[0] == "apt-get":
            return _apt_get(self.host, argv)
        if argv[0] == "apt-cache":
            return Probe(0, "".join(_apt_cache(self.host, argv)).encode())
        return Probe(0, b"") if argv[0] == "dpkg-query" else super().probe(argv, timeout, **options)


def _facets(host: ImaginedHost) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    users: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {}
    for count, (name, fields) in enumerate(host.groups.items()):
        groups[name] = {"gid": _FIRST_ID + 1000 + count, "members": [], **fields}
    lingering = {name: {"starts": "at boot"} for name, fields in host.users.items() if fields.get("linger")}
    for count, (name, fields) in enumerate(host.users.items()):
        fields = {field: value for field, value in fields.items() if field != "linger"}
        uid = fields.get("uid", _FIRST_ID + count)
        users[name] = {
            "uid": uid, "gid": uid, "home": f"/home/{name}", "shell": "/bin/sh", "comment": "", "groups": [], **fields,
        }  # fmt: skip
        groups.setdefault(name, {"gid": users[name]["gid"], "members": []})
    yield "users", users
    yield "groups", groups
    yield "passwords", {}
    yield "lingering", lingering
    yield "packages", {name: {"version": version} for name, version in host.packages.items()}
    yield "apt", {"lists": {"updated": _MOMENT}}
    stopped: dict[str, Any] = {"active": "inactive", "enabled": "disabled"}
    units: dict[str, dict[str, Any]] = {"units": {}}
    for name, fields in host.units.items():
        user, unit = split(name)
        units.setdefault(facet_of(user), {})[unit_name(unit)] = {**stopped, **fields}
    yield from units.items()


def _apt_get(host: ImaginedHost, argv: Sequence[str]) -> Probe:
    """Return what a simulation of apt prints. Imagined packages need no others."""
    at = list(argv).index("--")
    lines: list[str] = []
    for item in argv[at + 1 :]:
        name, _, version = item.partition("=")
        if argv[at - 1] != "install" or name.endswith("-"):
            name = name.removesuffix("-")
            lines += [f"Remv {name} [{host.packages[name]}]"] if name in host.packages else []
            continue
        found = _version(host, name, version)
        if found is None:
            return Probe(100, b"", f"E: Unable to locate package {name}".encode())
        if not fnmatch.fnmatchcase(found, version or "*"):
            return Probe(100, b"", f"E: Version '{version}' for '{name}' was not found".encode())
        if found != host.packages.get(name):
            lines.append(f"Inst {name} ({found} imagined [all])")
    return Probe(0, "".join(f"{line}\n" for line in lines).encode())


def _apt_cache(host: ImaginedHost, argv: Sequence[str]) -> Iterator[str]:
    name = argv[-1]
    version = _version(host, name)
    if argv[1] == "pkgnames":
        yield from (f"{known}\n" for known in {**(host.available or {}), **host.packages} if known.startswith(name))
    elif version is not None:
        yield f"{name} | {version} | imagined\n" if argv[1] == "madison" else f"{name}:\n  Candidate: {version}\n"


def _version(host: ImaginedHost, name: str, wanted: str = "") -> str | None:
    """Return the version of a package that apt chooses; None if it does not know the package.

    :param wanted: a version or pattern; "" for any
    """
    installed = host.packages.get(name)
    if installed is not None and fnmatch.fnmatchcase(installed, wanted or "*"):
        return installed
    if host.available is not None:
        return host.available.get(name, installed)
    return wanted.replace("*", "0") or VERSION
