"""pacman: the ops that change packages. `pacman_database` reads what is installed, and `pacman_steps` plans."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.pacman import pacman_database, pacman_steps
from statecfg.resources.packages.managers.pacman.pacman_database import automatic as automatic
from statecfg.resources.packages.managers.pacman.pacman_database import conffiles as conffiles
from statecfg.resources.packages.managers.pacman.pacman_database import dependencies as dependencies
from statecfg.resources.packages.managers.pacman.pacman_database import packages as packages
from statecfg.resources.packages.managers.pacman.pacman_database import unit_packages as unit_packages
from statecfg.resources.packages.package_steps import GONE as GONE
from statecfg.resources.packages.package_steps import first as first
from statecfg.resources.shared import records

NAME = "pacman"
SHIPPED = None  # pacman refuses to install over a file that belongs to no package
SAVED = pacman_database.SAVED
VIRTUAL = "a group or a virtual package"
CONFLICTS = ("--ask", "4")  # answer yes to the question whether a conflicting package may be removed

EXCLUDED = re.compile(r"\bconflicts\b|would have to remove |it would remove ")


@facet("pacman")
def pacman(host: Any) -> dict[str, records.Fields]:
    """Load when pacman's lists were made: `lists` → `updated`, in seconds since 1970 (0: there are none)."""
    names = host.listdir(pacman_steps.SYNC) if host.stat(pacman_steps.SYNC) is not None else []
    stats = [host.stat(f"{pacman_steps.SYNC}/{name}") for name in names if name.endswith(".db")]
    moments = [stat.identity[2] / 1e9 for stat in stats if stat is not None and stat.identity is not None]
    return {"lists": {"updated": int(min(moments)) if moments else 0}}


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch pacman's lists if they are older than this many seconds."""
    return package_steps.fetch_lists(machine, NAME, older_than, pacman_steps.FETCH)


@op(mutex="pacman", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem], options: Sequence[str] = ()) -> Result:
    """Install packages in one transaction, or change them to the given versions.

    Versions that only pacman's cache has need a separate transaction. If pacman would now remove a package that
    these may not replace, fail and install nothing.
    """
    result = package_steps.prepare(machine, packages, update_lists, lock)
    if result["status"] != "ok":
        return result
    effect, allowed, units = package_steps.replacement(machine, packages, options)
    wanted = {package["name"]: package["version"] for package in packages}
    simulate = functools.partial(pacman_steps.installation, machine, wanted)
    try:
        names, files = pacman_steps.sources(machine, wanted)
    except Unknown:  # only in a plan
        names, files = sorted(wanted), []
    except CheckError as problem:
        return error(str(problem))
    answers = [*(CONFLICTS if allowed else ()), "--noconfirm", "--"]
    guard = package_steps.Guard(machine, NAME)
    if files:
        result = guard.run(["pacman", "-U", *answers, *files], effect, simulate, units, removable=allowed)
    if names and result["status"] == "ok":
        argv = ["pacman", "-S", "--needed", *answers, *names]
        result = guard.run(argv, effect, simulate, units, removable=allowed)
    return result


@op(mutex="pacman", batch="packages")
def remove(machine: Machine, packages: list[records.RemoveItem]) -> Result:
    """Remove packages, and the packages that depend on them. What these had replaced is installed again before.

    If pacman would now change a package that the plan does not name, fail and remove nothing. If pacman fails, start
    the stopped units again. With `purge`, also remove changed configuration files, which pacman would rename.
    """
    effect = package_steps.removal(packages)
    foreseen = set(effect["packages"])
    result = ok()
    units = [unit for package in packages for unit in package.get("units", ())]
    back = {name: version for package in packages for name, version in package.get("back", {}).items()}
    guard = package_steps.Guard(machine, NAME)
    if back:
        simulate = functools.partial(pacman_steps.installation, machine, back)
        argv = ["pacman", "-S", "--needed", *CONFLICTS, "--noconfirm", "--", *sorted(back)]
        result = guard.run(argv, {**effect, "units": {}}, simulate, units, foreseen)
    for verb, purge in (("-Rc", False), ("-Rcn", True)):
        names = sorted(package["name"] for package in packages if package["purge"] is purge)
        there = [name for name in names if not back or _there(machine, name)]
        if there and result["status"] == "ok":
            simulate = functools.partial(pacman_steps.removal, machine, there)
            result = guard.run(["pacman", verb, "--noconfirm", "--", *there], effect, simulate, units, foreseen)
    return result


def _there(machine: Machine, name: str) -> bool:
    """Return whether a package is still installed; a package that is installed again may have replaced it."""
    return bool(machine.entry("packages", name))


@op(mutex="pacman")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Tell pacman that a package is installed only because other packages need it."""
    return machine.run(["pacman", "-D", "--asdeps", "--", name], {"automatic": {name: {"auto": True}}})


@op(mutex="pacman")
def mark_manual(machine: Machine, name: str) -> Result:
    """Tell pacman that a package must stay if nothing needs it."""
    return machine.run(["pacman", "-D", "--asexplicit", "--", name], {"automatic": {name: None}})


@op(mutex="pacman")
def hold(machine: Machine, name: str, held: bool) -> Result:
    """Fail: pacman has no packages on hold (see `options`)."""
    return lock(machine, held, [name])


def lock(machine: Machine, held: bool, names: Sequence[str]) -> Result:
    """Fail: pacman has no packages on hold."""
    return error(f"pacman can't put {', '.join(names)} on hold")


def transaction(world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
    """Return what pacman would do, including the removals that follow from it.

    :param wanted: name → its `version` (None: pacman's choice) or `gone`
    :raises CheckError: if pacman refuses
    """
    gone = [name for name, entry in wanted.items() if entry.get("gone")]
    present = {name: entry.get("version") for name, entry in wanted.items() if not entry.get("gone")}
    steps = pacman_steps.installation(world, present) if present else {}
    return {**pacman_steps.removal(world, [name for name in gone if name not in steps]), **steps}


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed, and these."""
    return set(pacman_steps.removal(world, names, unneeded=True))


def unknown_package(world: World, name: str, version: str | None, problem: str) -> CheckError | None:
    """Return the error if pacman refuses because it does not know the package; otherwise None."""
    return pacman_steps.unknown_package(world, name) if f"target not found: {name}" in problem else None


def options(attrs: Mapping[str, Any]) -> list[str]:
    """Return no options: pacman has none for the installation of a node's package.

    :raises CheckError: if an attribute of the node is an option of another package manager
    """
    package_steps.refuse_options(attrs, NAME)
    return []
