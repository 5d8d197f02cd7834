"""The database of pacman: which packages are installed, what they need, and their configuration files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd
from statecfg.resources.shared import records

CACHE = "/var/cache/pacman/pkg"
LOCAL = "/var/lib/pacman/local"
SAVED = ".pacsave"  # suffix of the name that a changed configuration file of a removed package gets
_BACKUP = re.compile(r"(?:^|\t|: )(/.*?)(?: \[\w+\])?$", re.M)
_NAME = re.compile(r"[^<>=:\s]+")


@facet("pacman_local", volatile=True)
def pacman_local(host: Any) -> dict[str, records.Fields]:
    """Load the records of the installed packages: name → field → lines."""
    found: dict[str, records.Fields] = {}
    for folder in sorted(host.listdir(LOCAL)):
        path = posixpath.join(LOCAL, folder, "desc")
        if host.stat(path) is not None:
            fields = sections(host.read(path).decode("utf-8", "replace"))
            found[fields["NAME"][0]] = fields
    return found


@facet("pacman_cache", volatile=True)
def pacman_cache(host: Any) -> dict[str, records.Fields]:
    """Load the files of packages that pacman keeps: name of the file → name and version of the package."""
    found: dict[str, records.Fields] = {}
    for file in sorted(host.listdir(CACHE) if host.stat(CACHE) is not None else ()):
        parts = file.rsplit("-", 3)  # NAME-VERSION-RELEASE-ARCHITECTURE.pkg.tar.zst
        if len(parts) == 4 and ".pkg.tar" in parts[3] and not file.endswith(".sig"):
            found[file] = {"name": parts[0], "version": "-".join(parts[1:3])}
    return found


def sections(text: str) -> dict[str, list[str]]:
    """Return the fields of a record. Each begins with a line `%FIELD%` and ends with an empty line."""
    parts = (part.strip("\n").split("\n") for part in text.split("\n\n") if part.strip())
    return {lines[0].strip("%"): lines[1:] for lines in parts}


def packages(host: Any) -> dict[str, records.Fields]:
    """Load pacman's packages: name → `version`, as [EPOCH:]VERSION-RELEASE. Their directories have these names."""
    parts = [folder.rsplit("-", 2) for folder in sorted(host.listdir(LOCAL))]
    return {part[0]: {"version": "-".join(part[1:])} for part in parts if len(part) == 3}


def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that pacman installed only because other packages need them: name → `auto`."""
    return {name: {"auto": True} for name, fields in pacman_local.load(host).items() if fields.get("REASON") == ["1"]}


def named(entry: str) -> str:
    """Return the name in a dependency, such as `glibc>=2.38` or `tk: for the user interface`."""
    match = _NAME.match(entry)
    return match.group() if match else entry


def provides(fields: records.Fields) -> set[str]:
    """Return the names under which other packages can need a package."""
    return {fields["NAME"][0], *map(named, fields.get("PROVIDES", ()))}


def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages."""
    there = pacman_local.load(host)
    providers: dict[str, set[str]] = {}
    for name, fields in there.items():
        for provided in provides(fields):
            providers.setdefault(provided, set()).add(name)

    def installed(entries: list[str]) -> list[str]:
        return sorted({name for entry in entries for name in providers.get(named(entry), ())})

    return {
        name: {"hard": installed(fields.get("DEPENDS", [])), "soft": installed(fields.get("OPTDEPENDS", []))}
        for name, fields in there.items()
    }


def unit_packages(host: World) -> dict[str, records.Fields]:
    """Load which packages own the files of units: name of a unit's file → `packages`.

    :raises CheckError: if pacman fails
    """
    folders = [folder for folder in systemd.DIRECTORIES if folder.startswith("/usr/lib") and host.stat(folder)]
    files = [posixpath.join(folder, name) for folder in folders for name in sorted(host.listdir(folder))]
    if not files:
        return {}
    probe = host.probe(["pacman", "-Qo", "--", *files], inputs=("packages", (LOCAL,)))
    if probe.status not in (0, 1):  # 1: no package owns one of them
        raise CheckError(f"pacman can't read its database: {probe.errors.decode('utf-8', 'replace').strip()}")
    found: dict[str, records.Fields] = {}
    for line in probe.text.splitlines():
        path, _, owner = line.partition(" is owned by ")
        if owner:
            found.setdefault(posixpath.basename(path), {"packages": []})["packages"].append(owner.split()[0])
    return found


def conffiles(world: World, name: str) -> list[str]:
    """Return the paths of a package's configuration files.

    :raises CheckError: if pacman fails
    """
    probe = world.probe(["pacman", "-Qii", "--", name], inputs=("packages", (LOCAL,)), env={"LC_ALL": "C"})
    if probe.status != 0:
        message = probe.errors.decode("utf-8", "replace").strip()
        raise CheckError("pacman can't read its database: %s" % (message or "status %d" % probe.status))
    return _BACKUP.findall(probe.text.partition("Backup Files")[2])
