"""dnf: what it would do, and the ops that change packages. `rpm` reads what is installed; see also `dnf_program`."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.dnf import dnf_program
from statecfg.resources.packages.managers.rpm import rpm
from statecfg.resources.packages.managers.rpm.rpm import conffiles as conffiles
from statecfg.resources.packages.managers.rpm.rpm import unit_packages as unit_packages
from statecfg.resources.packages.package_steps import GONE as GONE
from statecfg.resources.packages.package_steps import first as first
from statecfg.resources.shared import records

NAME = "dnf"
SHIPPED = None  # rpm does not write the file of the package beside one that was there before
SAVED = rpm.SAVED
VIRTUAL = "a virtual package"
LOCKS = "/etc/dnf/plugins/versionlock.list"
LOCAL = "--disablerepo=*"  # dnf then reads no repositories, and fetches nothing
WEAK = "--setopt=install_weak_deps="

# Packages that exclude each other: newer lists would not help.
EXCLUDED = re.compile(r"\b(conflicts with|obsoletes|protected packages)\b|would have to remove ")
_LOCK = re.compile(r"^([^#!\s]\S*)", re.M)


@facet("dnf")
def dnf(host: Any) -> dict[str, records.Fields]:
    """Load when the oldest of dnf's lists was fetched: `lists` → `updated`, in seconds since 1970.

    If one is missing, `updated` is 0.
    """
    return {"lists": {"updated": dnf_program.ask(host, "lists")}}


def packages(host: Any) -> dict[str, records.Fields]:
    """Load the packages of rpm. A package that dnf's plugin versionlock locks has `held`.

    :raises CheckError: if rpm fails
    """
    loaded = rpm.packages(host)
    locks = _LOCK.findall(host.read(LOCKS).decode("utf-8", "replace")) if host.stat(LOCKS) is not None else []
    for key, entry in loaded.items():
        if any(_locks(lock, key, entry["version"]) for lock in locks):
            loaded[key] = {**entry, "held": True}
    return loaded


def _locks(lock: str, key: str, version: str) -> bool:
    """Return whether an entry of the plugin's list names an installed package. Source: dnf-versionlock(8)."""
    name = key.partition(":")[0]
    epoch = version if ":" in version else "0:" + version
    forms = [name, *(f"{name}-{each}" for each in (version, epoch, epoch.partition(":")[2]))]
    locks = (lock, lock.rpartition(".")[0])  # with an architecture, and without it
    return any(fnmatch.fnmatchcase(form, each) for form in forms for each in locks)


def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that dnf installed only because other packages need them: name → `auto`."""
    return {name: {"auto": True} for name in dnf_program.ask(host, "reasons")}


def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages."""
    return {name: {"hard": hard, "soft": soft} for name, (hard, soft) in dnf_program.ask(host, "needs").items()}


def spec(name: str, version: str | None = None) -> str:
    """Return a package as an argument of dnf."""
    base, colon, arch = name.partition(":")
    return base + ("-" + version if version else "") + ("." + arch if colon else "")


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch dnf's lists if they are older than this many seconds."""
    return package_steps.fetch_lists(machine, NAME, older_than, ["dnf", "-q", "-y", "--refresh", "makecache"])


@op(mutex="dnf", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem], options: Sequence[str] = ()) -> Result:
    """Install packages in one transaction, or change them to the given versions.

    If dnf would now remove a package that these may not replace, fail and install nothing.

    :param options: options of dnf for the transaction
    """
    result = package_steps.prepare(machine, packages, update_lists, lock)
    if result["status"] != "ok":
        return result
    effect, allowed, units = package_steps.replacement(machine, packages, options)
    wanted: records.WantedPackages = {
        package["name"]: {"version": package["version"], "replaces": sorted(allowed), "options": options}
        for package in packages
    }
    named = list(dict.fromkeys(spec(package["name"], package["version"]) for package in packages))
    argv = ["dnf", "-y", dnf_program.NEVER, *options, *(["--allowerasing"] if allowed else []), "install", *named]
    simulate = functools.partial(transaction, machine, wanted)
    return package_steps.Guard(machine, NAME).run(argv, effect, simulate, units, removable=allowed)


@op(mutex="dnf", batch="packages")
def remove(machine: Machine, packages: list[records.RemoveItem]) -> Result:
    """Remove packages, and the packages that depend on them. What these had replaced is installed again before.

    If dnf would now change a package that the plan does not name, fail and remove nothing. If dnf fails, start the
    stopped units again. With `purge`, also remove changed configuration files, which rpm renames.
    """
    effect = package_steps.removal(packages)
    foreseen = set(effect["packages"])
    held = sorted(name for package in packages for name in package.get("held", ()))
    result = lock(machine, False, held) if held else ok()
    units = [unit for package in packages for unit in package.get("units", ())]
    back = {name: version for package in packages for name, version in package.get("back", {}).items()}
    guard = package_steps.Guard(machine, NAME)
    saved = [path for package in packages if package["purge"] for path in rpm.renamed(machine, package["name"])]
    if back and result["status"] == "ok":
        again: records.WantedPackages = {name: {"version": version} for name, version in back.items()}
        erased: records.WantedPackages = {package["name"]: GONE for package in packages}
        argv = ["dnf", "-y", dnf_program.NEVER, "--allowerasing", "install"]
        argv += [spec(name, version) for name, version in sorted(back.items())]
        both = functools.partial(transaction, machine, {**again, **erased})
        result = guard.run(argv, {**effect, "units": {}}, both, units, foreseen)
    if result["status"] == "ok":
        gone = sorted(package["name"] for package in packages)
        argv = ["dnf", "-y", LOCAL, "--noautoremove", "remove", *map(spec, gone)]
        simulate = functools.partial(transaction, machine, dict.fromkeys(gone, GONE))
        result = guard.run(argv, effect, simulate, units, foreseen)
    if saved and result["status"] == "ok":
        result = machine.run(["rm", "-f", "--", *saved], {"files": saved})
    return result


@op(mutex="dnf")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Tell dnf that a package is installed only because other packages need it."""
    return machine.run(["dnf", "-q", "-y", LOCAL, "mark", "remove", spec(name)], {"automatic": {name: {"auto": True}}})


@op(mutex="dnf")
def mark_manual(machine: Machine, name: str) -> Result:
    """Tell dnf that a package must stay if nothing needs it."""
    return machine.run(["dnf", "-q", "-y", LOCAL, "mark", "install", spec(name)], {"automatic": {name: None}})


@op(mutex="dnf")
def hold(machine: Machine, name: str, held: bool) -> Result:
    """Put a package on hold, so that only this node changes its version, or release it."""
    return lock(machine, held, [name])


def lock(machine: Machine, held: bool, names: Sequence[str]) -> Result:
    """Put installed packages on hold, or release them."""
    if machine.apparent(LOCKS) is None:
        return error("hold needs dnf's plugin versionlock: install python3-dnf-plugin-versionlock")
    effect: records.Effect = {"packages": {name: {"held": True if held else None} for name in names}}
    return machine.run(
        ["dnf", "-q", "-y", LOCAL, "versionlock", "add" if held else "delete", *map(spec, names)], effect
    )


def transaction(world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
    """Return what dnf would do in one transaction, including the removals that follow from it.

    :param wanted: name → its `version` (None: dnf's choice) or `gone`
    :raises CheckError: if dnf refuses
    """
    packages = world.facet("packages")
    gone = sorted(name for name, entry in wanted.items() if entry.get("gone"))
    present = {name: entry.get("version") for name, entry in wanted.items() if not entry.get("gone")}
    options = next((list(entry["options"]) for entry in wanted.values() if entry.get("options")), [])
    erase = bool(gone or package_steps.replaceable(wanted))
    # An installation releases these, so the plugin that locks packages must not run. The others stay locked.
    released = [name for name in wanted if packages.get(name, {}).get("held")]
    keep = (
        sorted(name for name, entry in packages.items() if entry.get("held") and name not in wanted) if released else []
    )
    question = {"install": present, "remove": gone, "options": options, "locks": not released, "keep": keep}
    found: records.Steps = dnf_program.planned(world, "solve", erase=erase, **question)
    return found


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed, and these."""
    steps = dnf_program.ask(world, "solve", remove=sorted(names), clean=True, erase=True)
    return {name for name, version in steps.items() if version is None}


def unknown_package(world: World, name: str, version: str | None, problem: str) -> CheckError | None:
    """Return the error if dnf refuses because it does not know the package or the version; otherwise None."""
    if not re.search(r": no (package|version|lists)\b", problem):
        return None
    if "no lists: " in problem or not package_steps.updated(world, NAME):
        text = "dnf lacks lists of its repositories; update_cache: 86400 fetches them"
        return CheckError(text + ", and fetch: true those of a disabled dnf_repository")
    if "no version: " in problem:
        return package_steps.unknown_version(NAME, name, version, problem.partition("no version: ")[2])
    return package_steps.unknown_name(NAME, name, dnf_program.ask(world, "names", start=name[:2]))


def options(attrs: Mapping[str, Any]) -> list[str]:
    """Return the options of dnf for the transaction that installs a node's package.

    :raises CheckError: if an attribute of the node is an option of another package manager
    """
    package_steps.refuse_options(attrs, NAME)
    found = ["--enablerepo=" + name for name in attrs.get("enable_repositories") or ()]
    if attrs.get("recommends") is not None:
        found.append(WEAK + ("1" if attrs["recommends"] else "0"))
    return found
