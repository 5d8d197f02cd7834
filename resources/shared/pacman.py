"""pacman: the ops that change packages. `pacman_database` reads what is installed, and `pacman_steps` plans."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Unknown, error, ok
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import package_steps, pacman_database, pacman_steps, records
from statecfg.resources.shared.package_steps import GONE as GONE
from statecfg.resources.shared.pacman_database import automatic as automatic
from statecfg.resources.shared.pacman_database import conffiles as conffiles
from statecfg.resources.shared.pacman_database import dependencies as dependencies
from statecfg.resources.shared.pacman_database import packages as packages
from statecfg.resources.shared.pacman_database import unit_packages as unit_packages

NAME = "pacman"
SHIPPED = None  # pacman refuses to install over a file that belongs to no package
SAVED = pacman_database.SAVED
CONFLICTS = ("--ask", "4")  # answer yes to the question whether a conflicting package may be removed

_EXCLUDED = re.compile(r"\bconflicts\b|would have to remove |it would remove ")


@table("pacman")
def pacman(host: Any) -> dict[str, records.Fields]:
    """Load when pacman's lists were made: `lists` → `updated`, in seconds since 1970 (0: there are none)."""
    names = host.listdir(pacman_steps.SYNC) if host.stat(pacman_steps.SYNC) is not None else []
    stats = [host.stat("%s/%s" % (pacman_steps.SYNC, name)) for name in names if name.endswith(".db")]
    moments = [stat.identity[2] / 1e9 for stat in stats if stat is not None and stat.identity is not None]
    return {"lists": {"updated": int(min(moments)) if moments else 0}}


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch pacman's lists if they are older than this many seconds."""
    moment = (machine.entry("pacman", "lists") or {}).get("updated", 0)
    if moment != package_steps.UPDATED and time.time() - moment <= older_than:
        return ok()
    effect = {"pacman": {"lists": {"updated": package_steps.UPDATED}}}
    return machine.run(["pacman", "-Sy", "--noconfirm"], effect, timeout=package_steps.TIMEOUT)


@op(turn="pacman", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem], options: Sequence[str] = ()) -> Result:
    """Install packages in one transaction, or change them to the given versions.

    Versions that only pacman's cache has need a separate transaction. If pacman would now remove a package that
    these may not replace, fail and install nothing.
    """
    ages = [age for age in (package.get("update") for package in packages) if age is not None]
    result = update_lists(machine, min(ages)) if ages else ok()
    if result["status"] != "ok":
        return result
    allowed = {other for package in packages for other in package.get("replaces", ())}
    units = [unit for package in packages for unit in package.get("units", ())]
    effect = package_steps.installation(packages, options)
    effect["units"] = {unit: {"active": "inactive"} for unit in units}
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


@op(turn="pacman", batch="packages")
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


@op(turn="pacman")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Tell pacman that a package is installed only because other packages need it."""
    return machine.run(["pacman", "-D", "--asdeps", "--", name], {"automatic": {name: {"auto": True}}})


@op(turn="pacman")
def hold(machine: Machine, name: str, held: bool) -> Result:
    """Fail: pacman has no packages on hold (see `options`)."""
    return error("pacman can't put %s on hold" % name)


def first(world: World) -> list[Action]:
    """Return the actions that pacman needs before it can do anything: none."""
    return []


def transaction(world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
    """Return what pacman would do, including the removals that follow from it.

    :param wanted: name → its `version` (None: pacman's choice) or `gone`
    :raises CheckError: if pacman refuses
    """
    gone = [name for name, entry in wanted.items() if entry.get("gone")]
    present = {name: entry.get("version") for name, entry in wanted.items() if not entry.get("gone")}
    steps = pacman_steps.installation(world, present) if present else {}
    return {**pacman_steps.removal(world, [name for name in gone if name not in steps]), **steps}


def together(world: World, wanted: records.WantedPackages) -> records.Steps:
    """Return what pacman would do in one transaction that removes only packages marked as `gone` or in `replaces`.

    :raises CheckError: if pacman refuses, or would remove another package
    """
    return package_steps.refuse_removals(transaction(world, wanted), wanted, NAME)


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed, and these."""
    return set(pacman_steps.removal(world, names, unneeded=True))


def stale(world: World, age: int | None) -> bool | None:
    """Tell whether pacman's lists are older than `age` seconds; None if an earlier node fetches them."""
    moment = (world.entry("pacman", "lists") or {}).get("updated", 0)
    if moment == package_steps.UPDATED:
        return None
    return age is not None and time.time() - moment > age


def excluded(problem: CheckError) -> bool:
    """Tell whether pacman refuses because packages exclude each other, and not because a package is missing."""
    return _EXCLUDED.search(str(problem)) is not None


def choice(
    world: World, name: str, wanted: records.WantedPackage, unpacked: str | None, before: records.WantedPackages
) -> records.Steps:
    """Return what pacman would do to install a package.

    :param wanted: its `version` and `replaces`
    :param unpacked: the version of the package if it is already there
    :param before: what pacman has done before in this run, see `transaction`
    :raises CheckError: if pacman refuses, or would remove another package
    """
    try:
        steps = together(world, {**before, name: wanted})
    except CheckError as problem:
        if "target not found: %s" % name in str(problem):
            raise pacman_steps.unknown_package(world, name) from None
        raise
    if name not in steps and unpacked is None:
        alone = ", ".join(sorted(together(world, {name: wanted}))) or "an installed package"
        raise CheckError("%s is a group or a virtual package, provided by %s; use that name" % (name, alone))
    return steps


def options(attrs: Mapping[str, Any]) -> list[str]:
    """Return no options: pacman has none for the installation of a node's package.

    :raises CheckError: if an attribute of the node is an option of another package manager
    """
    package_steps.refuse_options(attrs, NAME)
    return []
