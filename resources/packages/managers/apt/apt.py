"""apt: what it would do, and the ops that change packages. `dpkg` reads what is installed."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.apt.apt_settings import LISTS, LOCK, QUIET, TIMEOUT
from statecfg.resources.packages.managers.apt.dpkg import automatic as automatic
from statecfg.resources.packages.managers.apt.dpkg import dependencies as dependencies
from statecfg.resources.packages.managers.apt.dpkg import packages as packages
from statecfg.resources.packages.managers.apt.dpkg import unit_packages as unit_packages
from statecfg.resources.packages.package_steps import GONE as GONE
from statecfg.resources.shared import records

NAME = "apt"
SHIPPED = ".dpkg-dist"
VIRTUAL = "a virtual package"
SAVED = None  # a removal leaves the configuration; a purge removes it
# Keep configuration files that were changed on the host. apt must not ask about them.
KEEP = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Use-Pty=0")
CALL = ["apt-get", "-qy", *LOCK, *KEEP]
# apt's answers depend on these: the installed packages, its configuration and its lists.
INPUTS = ("packages", ("/etc/apt", "/var/lib/apt", "/var/lib/dpkg", "/etc/dpkg"))

# Packages that exclude each other: apt refuses the transaction, and newer lists would not help.
EXCLUDED = re.compile(r"\b(Conflicts|Breaks): |remove is disabled|would remove ")
_STEP = re.compile(r"^(Inst|Remv|Purg) (\S+)(?: \[[^\]]*\])?(?: \((\S+))?", re.M)


@facet("apt")
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
    argv = ["apt-get", "-q", *LOCK, "-o", "APT::Update::Error-Mode=any", "update"]
    return package_steps.fetch_lists(machine, NAME, older_than, argv, QUIET)


@op(mutex="apt", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem], options: Sequence[str] = ()) -> Result:
    """Install packages in one transaction, or change them to the given versions.

    If apt would now remove a package that these may not replace, fail and install nothing.

    :param options: options of apt-get for the transaction
    """
    result = package_steps.prepare(machine, packages, update_lists, lock)
    if result["status"] != "ok":
        return result
    effect, allowed, units = package_steps.replacement(machine, packages, options)
    named = [
        package.get("file") or package["name"] + ("=" + package["version"] if package["version"] else "")
        for package in packages
    ]
    chosen = ["--allow-downgrades", *options, "install", "--", *dict.fromkeys(named)]
    if not allowed:
        return machine.run([*CALL, "--no-remove", *chosen], effect, env=QUIET, timeout=TIMEOUT, interruptible=False)
    return guarded(machine, chosen, effect, units, removable=allowed)


def guarded(
    machine: Machine,
    argv: Sequence[str],
    effect: records.Effect,
    units: Sequence[str],
    foreseen: set[str] | None = None,
    removable: set[str] | None = None,
) -> Result:
    """Run apt-get, unless it would now do something else than planned. If it fails, start the stopped units again.

    :param argv: its arguments
    :param units: the units to stop just before
    :param foreseen: the packages that it may change
    :param removable: the packages that it may remove
    """
    simulation = functools.partial(simulate, machine, argv)
    guard = package_steps.Guard(machine, NAME, QUIET)
    return guard.run([*CALL, *argv], effect, simulation, units, foreseen, removable)


@op(mutex="apt", batch="packages")
def remove(machine: Machine, packages: list[records.RemoveItem]) -> Result:
    """Remove packages, and the packages that depend on them, in one transaction.

    If apt would now change a package that the plan does not name, fail and remove nothing. If apt fails, start the
    stopped units again.
    """
    effect = package_steps.removal(packages)
    foreseen = set(effect["packages"])
    held = sorted(name for package in packages for name in package.get("held", ()))
    result = lock(machine, False, held) if held else ok()
    for verb, purge in (("remove", False), ("purge", True)):
        some = [package for package in packages if package["purge"] is purge]
        if some and result["status"] == "ok":
            names = [package["name"] for package in some]
            back = {name: version for package in some for name, version in package.get("back", {}).items()}
            again = ["%s=%s+" % item for item in sorted(back.items())]
            units = [unit for package in some for unit in package.get("units", ())]
            allow = ["--allow-downgrades"] if again else []
            result = guarded(machine, [*allow, verb, "--", *names, *again], effect, units, foreseen=foreseen)
    return result


@op(mutex="apt")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Tell apt that a package is installed only because other packages need it."""
    return machine.run(["apt-mark", "-q", "auto", "--", name], {"automatic": {name: {"auto": True}}})


@op(mutex="apt")
def mark_manual(machine: Machine, name: str) -> Result:
    """Tell apt that a package must stay if nothing needs it."""
    return machine.run(["apt-mark", "-q", "manual", "--", name], {"automatic": {name: None}})


@op(mutex="apt")
def hold(machine: Machine, name: str, held: bool) -> Result:
    """Put a package on hold, so that only this node changes its version, or release it."""
    return lock(machine, held, [name])


def lock(machine: Machine, held: bool, names: Sequence[str]) -> Result:
    """Put installed packages on hold, or release them."""
    effect: records.Effect = {"packages": {name: {"held": True if held else None} for name in names}}
    return machine.run(["apt-mark", "-q", "hold" if held else "unhold", "--", *names], effect)


@op(mutex="apt")
def configure(machine: Machine) -> Result:
    """Complete the work of an interrupted dpkg; until then, apt refuses to work."""
    effect = {"unknown": ["packages", *package_steps.BRINGS]}
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
        raise CheckError(f"apt can't do this: {' '.join(errors[:12])}")
    return {name: version or None for verb, name, version in _STEP.findall(probe.text)}


def conffiles(world: World, name: str) -> list[str]:
    """Return the paths of a package's configuration files."""
    text = world.probe(["dpkg-query", "--show", "--showformat=${Conffiles}\\n", name], inputs=INPUTS).text
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def unknown_package(world: World, name: str, version: str | None, problem: str) -> CheckError | None:
    """Return the error if apt refuses because it does not know the package or the version; otherwise None."""
    if "virtual package" in problem or (not version and candidate(world, name)):
        return None
    madison = world.probe(["apt-cache", "madison", "--", name], inputs=INPUTS).text
    versions = [line.split("|")[1].strip() for line in madison.splitlines() if line.count("|") >= 2]
    if any(fnmatch.fnmatchcase(available, version or "*") for available in versions):
        return None
    if versions:
        return package_steps.unknown_version(NAME, name, version, ", ".join(versions))
    if not fetched(world):
        return CheckError("apt has no package lists yet; update_cache: 86400 fetches them")
    names = world.probe(["apt-cache", "pkgnames", "--", name[:2]], inputs=INPUTS).text.split()
    return package_steps.unknown_name(NAME, name, names)


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
    present = [(name, entry) for name, entry in sorted(wanted.items()) if not entry.get("gone")]
    named = [_argument(world, name, entry) for name, entry in present]
    if not named:
        return simulate(world, ["purge" if purge else "remove", "--", *unwanted]) if unwanted else {}
    options = next((entry["options"] for _, entry in present if entry.get("options")), ())
    keep = [] if unwanted or package_steps.replaceable(wanted) else ["--no-remove"]
    argv = [*keep, "--allow-downgrades", *options, "install", "--", *named]
    return simulate(world, [*argv, *(name + "-" for name in unwanted)])


def _argument(world: World, name: str, entry: records.WantedPackage) -> str:
    """Return the arguments that tell apt-get which packages to install.

    :raises Unknown: if an earlier node brings the file of the package
    """
    if entry.get("file"):
        file_version(world, entry["file"], name)
        return entry["file"]
    return name + ("=" + (entry["version"] or "") if entry.get("version") else "")


def file_version(world: World, path: str, name: str) -> str:
    """Return the version of the package in a file.

    :param name: the name that the package must have
    :raises Unknown: if an earlier node brings the file
    :raises CheckError: if there is no such file, or if it contains something else
    """
    if world.stat(path) is None:
        raise CheckError(f"{path} does not exist; a node that brings it is required automatically")
    probe = world.probe(["dpkg-deb", "--show", "--showformat=${Package} ${Version}", path], inputs=("settings", [path]))
    found, _, version = probe.text.partition(" ")
    if probe.status or not version:
        said = probe.errors.decode("utf-8", "replace").strip().splitlines()[:1] or ["no output"]
        raise CheckError(f"dpkg can't read the package {path}: {said[0]}")
    if found != name.partition(":")[0]:
        raise CheckError(f"{path} contains the package {found}, and this node is about {name}; name the node {found}")
    return version


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed. Packages that nothing needs today are included."""
    # A package that is only suggested by another one counts as unneeded.
    argv = ["-o", "APT::AutoRemove::SuggestsImportant=false", "purge", "--auto-remove", "--", *sorted(names)]
    return {name for name, version in simulate(world, argv).items() if version is None}


def options(attrs: Mapping[str, Any]) -> list[str]:
    """Return the options of apt-get for the transaction that installs a node's package.

    :raises CheckError: if an attribute of the node is an option of another package manager
    """
    package_steps.refuse_options(attrs, NAME)
    found = ["-t", attrs["default_release"]] if attrs.get("default_release") else []
    if attrs.get("recommends") is not None:
        found.append(f"--{'' if attrs['recommends'] else 'no-'}install-recommends")
    return found
