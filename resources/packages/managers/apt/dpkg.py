"""The database of dpkg: which packages are installed, what they need, and which units they own."""

from __future__ import annotations

import posixpath
import re
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd
from statecfg.resources.shared import records

STATUS = "/var/lib/dpkg/status"
MARKS = "/var/lib/apt/extended_states"

NOT_THERE = ("not-installed", "config-files")  # states without files of the package
_FIELD = re.compile(r"^(Package|Status|Version|Architecture): (.*)$", re.M)
_MARK = re.compile(r"^(Package|Auto-Installed): (.*)$", re.M)
_NEEDS = "${db:Status-Status}\\t${Package}\\t${Pre-Depends}, ${Depends}\\t${Recommends}\\t${Provides}\\n"
_NAMED = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def packages(host: Any) -> dict[str, records.Fields]:
    """Load dpkg's packages: name → `version`, `state` unless the package is installed and configured, `held`.

    :raises CheckError: if the host has no dpkg
    """
    try:
        text = host.read(STATUS).decode("utf-8", "replace")
    except OSError:
        raise CheckError(
            "statecfg finds no package manager on this host; it knows apt, dnf, zypper and pacman"
        ) from None
    loaded: dict[str, records.Fields] = {}
    native = ""
    for paragraph in text.split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        state = fields.get("Status", "").rpartition(" ")[2]
        held = fields.get("Status", "").startswith("hold ")
        if not state or (state == "not-installed" and not held):
            continue
        name, architecture = fields["Package"], fields.get("Architecture", "all")
        if name == "dpkg":
            native = architecture
        entry: dict[str, Any] = {"version": fields.get("Version", "")} if state not in NOT_THERE else {}
        if held:
            entry["held"] = True
        loaded[f"{name}:{architecture}"] = dict(entry, **({} if state == "installed" else {"state": state}))
    suffixes = (":all", ":" + native)
    return {key.rpartition(":")[0] if key.endswith(suffixes) else key: entry for key, entry in loaded.items()}


def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that apt installed only because other packages need them: name → `auto`."""
    try:
        text = host.read(MARKS).decode("utf-8", "replace")
    except OSError:
        return {}
    marked: dict[str, records.Fields] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(_MARK.findall(paragraph))
        if fields.get("Auto-Installed") == "1":
            marked[fields.get("Package", "")] = {"auto": True}
    return marked


def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages."""
    text = host.probe(["dpkg-query", "--show", "--showformat=" + _NEEDS]).text
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 4]
    rows = [row for row in rows if row[0] not in NOT_THERE]
    by_name: dict[str, set[str]] = {}
    for _, name, _, _, provides in rows:
        for provided in (name, *(part.strip().partition(" ")[0] for part in provides.split(","))):
            by_name.setdefault(provided, set()).add(name)

    def named(text: str) -> list[str]:
        names: set[str] = set()
        for alternative in text.replace("|", ",").split(","):
            match = _NAMED.match(alternative.strip())
            names |= by_name.get(match.group(), set()) if match else set()
        return sorted(names)

    return {name: {"hard": named(depends), "soft": named(recommends)} for _, name, depends, recommends, _ in rows}


def unit_packages(host: World) -> dict[str, records.Fields]:
    """Load which packages own the files of units: name of a unit's file → `packages`."""
    patterns = [
        posixpath.join(folder, "*") for folder in systemd.DIRECTORIES if folder.startswith(("/usr/lib", "/lib"))
    ]
    packages: dict[str, records.Fields] = {}
    for line in host.probe(["dpkg-query", "--search", "--", *patterns]).text.splitlines():
        owners, _, path = line.partition(": ")
        if posixpath.dirname(path) in systemd.DIRECTORIES:
            packages[posixpath.basename(path)] = {"packages": [name.partition(":")[0] for name in owners.split(", ")]}
    return packages
