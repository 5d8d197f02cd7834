"""The database of rpm: which packages are installed, which units they own, and their configuration files."""

from __future__ import annotations

import posixpath
from typing import Any

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd
from statecfg.resources.shared import records

DATABASES = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")  # the directories where its database may be
SAVED = ".rpmsave"  # suffix of the name that a changed configuration file of a removed package gets
_FORMAT = "%{NAME}\\t%{ARCH}\\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\t%{INSTALLTIME}\\n"
PROGRAM = "rpm"
KEYS = "gpg-pubkey"  # rpm lists the imported keys as packages
KEY_FORMAT = "%{VERSION}-%{RELEASE}\\n"


def query(world: World, argv: list[str], codes: tuple[int, ...] = (0,)) -> list[str]:
    """Return the lines that rpm prints.

    :param codes: exit statuses that mean success
    :raises CheckError: if rpm fails
    """
    probe = world.probe([PROGRAM, *argv], inputs=("packages", DATABASES))
    if probe.status not in codes:
        why = (probe.errors.decode("utf-8", "replace").strip() or f"status {probe.status}").splitlines()[-1]
        raise CheckError(f"rpm can't read its database: {why}")
    return probe.text.splitlines()


def native(host: Any) -> tuple[str, ...]:
    """Return the architectures of packages whose names need no architecture.

    :raises CheckError: if rpm fails
    """
    return ("noarch", *query(host, ["--eval", "%_target_cpu"]))


def packages(host: Any) -> dict[str, records.Fields]:
    """Load rpm's packages: name → `version`, as [EPOCH:]VERSION-RELEASE.

    Of several versions, such as those of a kernel, it is the one that was installed last; `older` has the others.

    The name of a package of a foreign architecture ends with ``:architecture``.

    :raises CheckError: if rpm fails
    """
    known = native(host)
    loaded: dict[str, records.Fields] = {}
    moments: dict[str, int] = {}
    for line in query(host, ["--query", "--all", "--queryformat", _FORMAT]):
        name, architecture, version, moment = line.split("\t")
        key = name if architecture in known else f"{name}:{architecture}"
        if name == KEYS:
            continue
        entry = loaded.get(key)
        newer = entry is None or int(moment) >= moments[key]
        others = [*entry.get("older", ()), entry["version"] if newer else version] if entry is not None else []
        shown = version if newer or entry is None else entry["version"]
        loaded[key] = {"version": shown, **({"older": others} if others else {})}
        moments[key] = max(int(moment), moments.get(key, 0))
    return loaded


def unit_packages(host: World) -> dict[str, records.Fields]:
    """Load which packages own the files of units: name of a unit's file → `packages`.

    :raises CheckError: if rpm fails
    """
    folders = [folder for folder in systemd.DIRECTORIES if folder.startswith("/usr/lib") and host.stat(folder)]
    files = [posixpath.join(folder, name) for folder in folders for name in sorted(host.listdir(folder))]
    found: dict[str, records.Fields] = {}
    if not files:
        return found
    whole = "[%{=NAME}\\t%{FILENAMES}\\n]"
    # The exit status is the number of files that no package owns.
    for line in query(host, ["--query", "--file", "--queryformat", whole, "--", *files], tuple(range(256))):
        name, tab, path = line.partition("\t")
        if tab and posixpath.dirname(path) in folders:
            owners = found.setdefault(posixpath.basename(path), {"packages": []})["packages"]
            owners += [name] if name not in owners else []
    return found


def conffiles(world: World, name: str) -> list[str]:
    """Return the paths of a package's configuration files.

    :raises CheckError: if rpm fails
    """
    lines = query(world, ["--query", "--configfiles", "--", name.replace(":", ".")])
    return [line for line in lines if line.startswith("/")]


def renamed(world: World, name: str) -> list[str]:
    """Return the names that the configuration files of a package get if they were changed."""
    try:
        paths = [path + SAVED for path in conffiles(world, name)]
        return [path for path in paths if world.stat(path) is None]
    except Unknown:  # only in a plan
        return []
