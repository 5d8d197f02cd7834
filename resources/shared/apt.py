"""Debian packages: what is installed, what apt would do, and the ops that change packages."""

from __future__ import annotations

import fnmatch
import functools
import posixpath
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Unknown, error, ok
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import package_units, records, systemd
from statecfg.resources.shared.paths import nearest

STATUS = "/var/lib/dpkg/status"
LISTS = "/var/lib/apt/lists"
MARKS = "/var/lib/apt/extended_states"
UPDATED = "now"  # instead of a time: this run fetches the lists
TIMEOUT = 1800.0
LOCK = ("-o", "DPkg::Lock::Timeout=300")  # seconds to wait until another apt ends
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l"}
# Keep configuration files that were changed on the host. Nobody could answer a question about them.
KEEP = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Use-Pty=0")
GONE: records.WantedPackage = {"gone": True}  # an entry of the facet `asked`: this run removes the package
# apt's answers depend on these: the installed packages, its configuration and its lists.
INPUTS = ("packages", ("/etc/apt", "/var/lib/apt", "/var/lib/dpkg", "/etc/dpkg"))
# Only after the scripts of a package have run is it known what else the package created.
BRINGS = ["files", "units", "users", "groups"]

_FIELD = re.compile(r"^(Package|Status|Version|Architecture): (.*)$", re.M)
_MARK = re.compile(r"^(Package|Auto-Installed): (.*)$", re.M)
_NEEDS = "${db:Status-Status}\\t${Package}\\t${Pre-Depends}, ${Depends}\\t${Recommends}\\t${Provides}\\n"
_NAMED = re.compile(r"[a-z0-9][a-z0-9+.-]+")
# Packages that exclude each other: apt refuses the transaction, and newer lists would not help.
_EXCLUDED = re.compile(r"\b(Conflicts|Breaks): |remove is disabled|would remove ")
_STEP = re.compile(r"^(Inst|Remv|Purg) (\S+)(?: \[[^\]]*\])?(?: \((\S+))?", re.M)


@table("packages")
def packages(host: Any) -> dict[str, records.Fields]:
    """Load dpkg's packages: name → `version`, and `state` unless the package is installed and configured.

    :raises CheckError: if the host has no dpkg
    """
    try:
        text = host.read(STATUS).decode("utf-8", "replace")
    except OSError:
        raise CheckError("this host has no dpkg: statecfg supports only Debian and its derivatives") from None
    loaded: dict[str, records.Fields] = {}
    native = ""
    for paragraph in text.split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        state = fields.get("Status", "").rpartition(" ")[2]
        if state in ("", "not-installed"):
            continue
        name, architecture = fields["Package"], fields.get("Architecture", "all")
        if name == "dpkg":
            native = architecture
        entry = {"version": fields.get("Version", "")} if state != "config-files" else {}
        loaded["%s:%s" % (name, architecture)] = dict(entry, **({} if state == "installed" else {"state": state}))
    suffixes = (":all", ":" + native)
    return {key.rpartition(":")[0] if key.endswith(suffixes) else key: entry for key, entry in loaded.items()}


@table("automatic")
def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that apt installed only because other packages need them: name → `auto`."""
    try:
        text = host.read(MARKS).decode("utf-8", "replace")
    except OSError:
        return {}
    marked = {}
    for paragraph in text.split("\n\n"):
        fields = dict(_MARK.findall(paragraph))
        if fields.get("Auto-Installed") == "1":
            marked[fields.get("Package", "")] = {"auto": True}
    return marked


@table("asked")
def asked(host: Any) -> dict[str, records.Fields]:
    """Return an empty facet. Plans enter the installs and removals of this run here."""
    return {}


@table("dependencies")
def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages."""
    text = host.probe(["dpkg-query", "--show", "--showformat=" + _NEEDS]).text
    rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 4]
    rows = [row for row in rows if row[0] not in ("not-installed", "config-files")]
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


@table("unit_packages")
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


@table("apt")
def apt(host: Any) -> dict[str, records.Fields]:
    """Load when apt's lists were last fetched: `lists` → `updated`, in seconds since 1970 (0: never)."""
    moments = [0.0]
    for path in (LISTS, "/var/lib/apt/periodic/update-success-stamp"):
        stat = host.stat(path)
        if stat is not None and stat.identity is not None and (path != LISTS or fetched(host)):
            moments.append(stat.identity[2] / 1e9)
    return {"lists": {"updated": int(max(moments))}}


def fetched(host: World) -> bool:
    """Return whether apt has at least one list of packages."""
    return host.stat(LISTS) is not None and any("_Packages" in name for name in host.listdir(LISTS))


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch apt's lists if they are older than this many seconds."""
    moment = (machine.entry("apt", "lists") or {}).get("updated", 0)
    if moment != UPDATED and time.time() - moment <= older_than:
        return ok()
    argv = ["apt-get", "-q", *LOCK, "-o", "APT::Update::Error-Mode=any", "update"]
    return machine.run(argv, {"apt": {"lists": {"updated": UPDATED}}}, env=QUIET, timeout=TIMEOUT)


def installed(version: str | None) -> records.Fields | None:
    """Return the fields of a package that is installed in this version; None if it is removed."""
    return {"version": version, "state": None} if version is not None else None


@op(turn="apt", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem]) -> Result:
    """Install packages in one transaction, or change them to the given versions."""
    ages = [age for age in (package.get("update") for package in packages) if age is not None]
    if ages:
        updated = update_lists(machine, min(ages))
        if updated["status"] != "ok":
            return updated
    effect: records.Effect = {"packages": {}, "automatic": {}, "asked": {}, "dependencies": {}, "unknown": BRINGS}
    for package in packages:
        effect["asked"][package["name"]] = {"version": package["version"], "gone": False}
        effect["automatic"][package["name"]] = None
        effect["packages"].update({name: installed(version) for name, version in package["others"].items()})
    for package in packages:
        effect["packages"][package["name"]] = installed(package["version"] or "newest")
    named = [package["name"] + ("=" + package["version"] if package["version"] else "") for package in packages]
    argv = ["apt-get", "-qy", *LOCK, *KEEP, "--no-remove", "--allow-downgrades", "install", "--", *dict.fromkeys(named)]
    return machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False)


@op(turn="apt", batch="packages")
def remove(machine: Machine, packages: list[records.RemoveItem]) -> Result:
    """Remove packages, and the packages that depend on them, in one transaction.

    If apt would now change a package that the plan does not name, fail and remove nothing. If apt fails, start the
    stopped units again.
    """
    effect: records.Effect = {"packages": {}, "asked": {}, "dependencies": {}, "unknown": BRINGS}
    for package in packages:
        package_names = (package["name"], *package["others"])
        effect["packages"].update(dict.fromkeys(package_names))
        effect["asked"].update(dict.fromkeys(package_names, GONE))
        effect["packages"].update({name: installed(version) for name, version in package.get("instead", {}).items()})
    foreseen = set(effect["packages"])
    effect["units"] = package_units.effect(packages)
    result = ok()
    for verb, purge in (("remove", False), ("purge", True)):
        names = [package["name"] for package in packages if package["purge"] is purge]
        units = [unit for package in packages if package["purge"] is purge for unit in package.get("units", ())]
        if names:
            argv = ["apt-get", "-qy", *LOCK, *KEEP, verb, "--", *names]
            stopped: list[str] = []
            check = functools.partial(ready, machine, [verb, "--", *names], foreseen, units, stopped)
            result = machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False, first=check)
            if result["status"] != "ok":
                if stopped:
                    package_units.start_again(machine, stopped)
                return result
    return result


def ready(
    machine: Machine, argv: Sequence[str], foreseen: set[str], units: Sequence[str], stopped: list[str]
) -> Result | None:
    """Stop the units of packages that are about to be removed.

    :param argv: the arguments of apt-get
    :param foreseen: the packages that the plan names
    :param stopped: receives the units that this function began to stop
    :returns: an error if the packages must not be removed, otherwise None
    """
    refused = unforeseen(machine, argv, foreseen)
    if refused is None and units:
        stopped += units
        result = package_units.stop(machine, units)
        refused = result if result["status"] != "ok" else None
    return refused


def unforeseen(machine: Machine, argv: Sequence[str], foreseen: set[str]) -> Result | None:
    """Return an error if apt would now change a package that the plan does not name, otherwise None."""
    try:
        others = sorted(set(simulate(machine, argv)) - foreseen)
    except CheckError as problem:
        return error(str(problem))
    if not others:
        return None
    return error("nothing was removed: apt would also change %s, which was not planned; plan again" % ", ".join(others))


@op(turn="apt")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Tell apt that a package is installed only because other packages need it."""
    return machine.run(["apt-mark", "-q", "auto", "--", name], {"automatic": {name: {"auto": True}}})


@op(turn="apt")
def configure(machine: Machine) -> Result:
    """Complete the work of an interrupted dpkg; until then, apt refuses to work."""
    effect = {"unknown": ["packages", *BRINGS]}
    argv = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"]
    return machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False)


def interrupted(world: World) -> bool:
    """Return whether dpkg was interrupted, so that its work must be completed first."""
    try:
        return any(name.isdigit() for name in world.listdir("/var/lib/dpkg/updates"))
    except (OSError, Unknown):
        return False


def first(world: World) -> list[Action]:
    """Return the actions that apt needs before it can do anything."""
    return [configure()] if interrupted(world) else []


def simulate(world: World, argv: Sequence[str]) -> records.Steps:
    """Return what apt would do: name → installed version, None if it removes the package.

    :param argv: the arguments of apt-get
    :raises CheckError: with apt's own message, if apt refuses
    """
    command = ["apt-get", "-s", "-q", "-o", "APT::Get::Show-User-Simulation-Note=false", *argv]
    probe = world.probe(command, inputs=INPUTS)
    if probe.status != 0:
        lines = (probe.text + probe.errors.decode("utf-8", "replace")).splitlines()
        errors = [line.strip() for line in lines if line.strip() and not line.endswith("...")]
        errors.sort(key=lambda line: not line.startswith("E:"))  # errors first, then the lines that explain them
        raise CheckError("apt can't do this: %s" % " ".join(errors[:12]))
    return {name: version or None for verb, name, version in _STEP.findall(probe.text)}


def conffiles(world: World, name: str) -> list[str]:
    """Return the paths of a package's configuration files."""
    text = world.probe(["dpkg-query", "--show", "--showformat=${Conffiles}\\n", name], inputs=INPUTS).text
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def unknown_package(world: World, name: str, version: str | None) -> CheckError | None:
    """Return why apt cannot find a package, or None if it can.

    Either the name is unknown (the error suggests the nearest) or the version is.
    """
    madison = world.probe(["apt-cache", "madison", "--", name], inputs=INPUTS).text
    versions = [line.split("|")[1].strip() for line in madison.splitlines() if line.count("|") >= 2]
    if any(fnmatch.fnmatchcase(available, version or "*") for available in versions):
        return None
    if versions:
        return CheckError("apt does not have version %s of %s; it has: %s" % (version, name, ", ".join(versions)))
    if not fetched(world):
        return CheckError("apt has no package lists yet; update_cache: 86400 fetches them")
    names: set[str] = set(world.probe(["apt-cache", "pkgnames", "--", name[:2]], inputs=INPUTS).text.split())
    help = nearest(name, names) or "; update_cache fetches newer lists"
    return CheckError("apt does not know a package %s%s" % (name, help))


def candidate(world: World, name: str) -> bool:
    """Return whether apt can install something under this name."""
    text = world.probe(["apt-cache", "policy", "--", name], inputs=INPUTS).text
    return "Candidate: " in text and "Candidate: (none)" not in text


def transaction(world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
    """Return what apt would do in one transaction, including the removals that follow from it (see `simulate`).

    :param wanted: name → its `version` (None: apt's choice) or `gone`
    :raises CheckError: if apt refuses
    """
    unwanted = sorted(name for name, entry in wanted.items() if entry.get("gone"))
    present = [(name, entry.get("version")) for name, entry in sorted(wanted.items()) if not entry.get("gone")]
    named = [name + ("=" + version if version else "") for name, version in present]
    if not named:
        return simulate(world, ["purge" if purge else "remove", "--", *unwanted]) if unwanted else {}
    if not unwanted:
        return simulate(world, ["--no-remove", "--allow-downgrades", "install", "--", *named])
    return simulate(world, ["--allow-downgrades", "install", "--", *named, *(name + "-" for name in unwanted)])


def together(world: World, wanted: records.WantedPackages) -> records.Steps:
    """Return what apt would do in one transaction that removes only packages marked as `gone`.

    :raises CheckError: if apt refuses, or would remove another package
    """
    steps = transaction(world, wanted)
    removed = sorted(name for name, version in steps.items() if version is None)
    removed = [name for name in removed if not wanted.get(name, {}).get("gone")]
    if removed:
        raise CheckError("apt would have to remove %s" % ", ".join(removed))
    return steps


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed. Packages that nothing needs today are included."""
    # A package that is only suggested by another one counts as unneeded.
    argv = ["-o", "APT::AutoRemove::SuggestsImportant=false", "purge", "--auto-remove", "--", *sorted(names)]
    return {name for name, version in simulate(world, argv).items() if version is None}


def stale(world: World, age: int | None) -> bool | None:
    """Tell whether apt's lists are older than `age` seconds; None if an earlier node fetches them."""
    moment = (world.entry("apt", "lists") or {}).get("updated", 0)
    if moment == UPDATED:
        return None
    return age is not None and time.time() - moment > age


def excluded(problem: CheckError) -> bool:
    """Tell whether apt refuses because packages exclude each other, and not because a package is missing."""
    return _EXCLUDED.search(str(problem)) is not None


def choice(
    world: World, name: str, version: str | None, unpacked: str | None, before: records.WantedPackages
) -> records.Steps:
    """Return what apt would do to install a package.

    :param unpacked: the version of the package if it is already unpacked
    :param before: what apt has done before in this run, see `transaction`
    :raises CheckError: if apt refuses, or would remove another package
    """
    wanted: records.WantedPackage = {"version": version}
    try:
        steps = together(world, {**before, name: wanted})
    except CheckError as problem:
        if "virtual package" in str(problem):
            raise
        if version or not candidate(world, name):
            why = unknown_package(world, name, version)
            if why is not None:
                raise why from None
        raise
    if name not in steps and unpacked is None:
        alone = sorted(together(world, {name: wanted}))
        if alone:
            raise CheckError("%s is a virtual package, provided by %s; use that name" % (name, ", ".join(alone)))
        raise CheckError("%s is a virtual package, provided by an installed package; use that package's name" % name)
    return steps
