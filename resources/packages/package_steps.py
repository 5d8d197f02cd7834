"""What the package managers share: the effects of their transactions, and the check just before one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, Unknown
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_units
from statecfg.resources.shared import records
from statecfg.resources.shared.paths import nearest

GONE: records.WantedPackage = {"gone": True}  # an entry of the facet `asked`: this run removes the package
TIMEOUT = 1800.0  # seconds for a command that fetches lists or changes packages
UPDATED = "now"  # instead of a time: this run fetches the lists
# Only after the scripts of a package have run is it known what else the package created.
BRINGS = ["files", "units", "users", "groups"]
EVERYTHING = ["packages", "automatic", "dependencies", *BRINGS]
OPTIONS = {
    "file": ("apt",),
    "recommends": ("apt", "dnf", "zypper"),
    "default_release": ("apt",),
    "enable_repositories": ("dnf",),
    "hold": ("apt", "dnf", "zypper"),
}


def installed(version: str | None) -> records.Fields | None:
    """Return the fields of a package that is installed in this version; None if it is removed."""
    return {"version": version, "state": None} if version is not None else None


def refuse_options(attrs: Mapping[str, Any], manager: str) -> None:
    """Check that a node has no option of another package manager.

    :param manager: the package manager of this host
    :raises CheckError: if it has one
    """
    for name, managers in OPTIONS.items():
        if attrs.get(name) is not None and manager not in managers:
            text = "%s is an option of %s, and this host has %s: remove it, or set it only for other hosts"
            known = " and ".join(word for word in (", ".join(managers[:-1]), managers[-1]) if word)
            raise CheckError(text % (name, known, manager))


def first(world: World) -> list[Action]:
    """Return the actions that a package manager needs before it can do anything: none."""
    return []


def updated(world: World, manager: str) -> Any:
    """Return when the oldest of a manager's lists was fetched, in seconds since 1970; `UPDATED`: by this run."""
    return (world.entry(manager, "lists") or {}).get("updated", 0)


def stale(world: World, manager: str, age: float | None) -> bool | None:
    """Tell whether a manager's lists are older than `age` seconds; None if an earlier node fetches them."""
    moment = updated(world, manager)
    if moment == UPDATED:
        return None
    return age is not None and time.time() - moment > age


def fetch_lists(
    machine: Machine,
    manager: str,
    age: float,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    files: Sequence[str] = (),
) -> Result:
    """Fetch a manager's lists if they are older than `age` seconds.

    :param argv: the command that fetches them
    :param files: the directories that it changes, if the manager's answers depend on them
    """
    if stale(machine, manager, age) is False:
        return ok()
    effect = {manager: {"lists": {"updated": UPDATED}}, **({"files": list(files)} if files else {})}
    return machine.run(argv, effect, env=env, timeout=TIMEOUT)


def prepare(
    machine: Machine,
    packages: Iterable[records.InstallItem],
    update_lists: Callable[[Machine, float], Result],
    lock: Callable[[Machine, bool, Sequence[str]], Result],
) -> Result:
    """Fetch the lists and release packages on hold, as far as the items of an installation ask for it."""
    ages = [age for age in (package.get("update") for package in packages) if age is not None]
    result = update_lists(machine, min(ages)) if ages else ok()
    held = sorted(package["name"] for package in packages if package.get("held"))
    return lock(machine, False, held) if held and result["status"] == "ok" else result


def unknown_name(manager: str, name: str, names: Iterable[str]) -> CheckError:
    """Return the error about a package that a manager does not know. It suggests the nearest of `names`."""
    help = nearest(name, set(names)) or "; update_cache fetches newer lists"
    return CheckError(f"{manager} does not know a package {name}{help}")


def unknown_version(manager: str, name: str, version: str | None, available: str) -> CheckError:
    """Return the error about a version that a manager does not have."""
    return CheckError(f"{manager} does not have version {version} of {name}; available: {available}")


def installation(world: World, packages: Iterable[records.InstallItem], options: Sequence[str]) -> dict[str, Any]:
    """Return the effect of an installation.

    :param world: the machine before it

    :param options: the options of the package manager for this transaction
    """
    effect: dict[str, Any] = {"packages": {}, "automatic": {}, "asked": {}, "dependencies": {}, "unknown": BRINGS}
    for package in packages:
        if options:  # without its options, the manager might not find these again
            effect["asked"].update({name: {"version": version} for name, version in package["others"].items()})
        effect["packages"].update({name: installed(version) for name, version in package["others"].items()})
        effect["automatic"].update({name: {"auto": True} for name in package["others"] if _is_new(world, name)})
        effect["packages"].update(dict.fromkeys(package.get("replaced", ())))
        effect["asked"].update(dict.fromkeys(package.get("replaced", ()), GONE))
    for package in packages:
        effect["asked"][package["name"]] = {"version": package["version"], "gone": False}
        if package.get("file"):
            effect["asked"][package["name"]]["file"] = package["file"]
        effect["automatic"][package["name"]] = None
        effect["packages"][package["name"]] = installed(package["version"] or "newest")
    return effect


def _is_new(world: World, name: str) -> bool:
    """Return whether a package is certainly not installed yet, and has no architecture in its name."""
    try:
        return ":" not in name and "version" not in (world.entry("packages", name) or {})
    except Unknown:
        return False


def replacement(
    world: World, packages: Iterable[records.InstallItem], options: Sequence[str]
) -> tuple[records.Effect, set[str], list[str]]:
    """Return the effect of an installation, the packages that it may replace, and the units that it stops."""
    effect = installation(world, packages, options)
    replaced = {other for package in packages for other in package.get("replaces", ())}
    units = [unit for package in packages for unit in package.get("units", ())]
    if units:
        effect["units"] = {unit: {"active": "inactive"} for unit in units}
    return effect, replaced, units


def removal(packages: Iterable[records.RemoveItem]) -> records.Effect:
    """Return the effect of a removal."""
    effect: dict[str, Any] = {"packages": {}, "asked": {}, "dependencies": {}, "unknown": BRINGS}
    for package in packages:
        package_names = (package["name"], *package["others"])
        effect["packages"].update(dict.fromkeys(package_names))
        effect["asked"].update(dict.fromkeys(package_names, GONE))
        effect["packages"].update({name: installed(version) for name, version in package.get("instead", {}).items()})
    for package in packages:
        back = package.get("back", {})
        effect["packages"].update({name: installed(version) for name, version in back.items()})
        effect["asked"].update({name: {"version": version, "gone": False} for name, version in back.items()})
    effect["units"] = package_units.effect(packages)
    return effect


def changes(steps: records.Steps | None) -> records.Effect:
    """Return the effect of a command that changes these packages; None: it is not known which."""
    if steps is None:
        return {"unknown": EVERYTHING}
    changed = {name: installed(version) for name, version in steps.items()}
    return {"packages": changed, "automatic": {}, "dependencies": {}, "unknown": BRINGS}


def replaceable(wanted: records.WantedPackages) -> set[str]:
    """Return the packages that a transaction may remove."""
    return {name for entry in wanted.values() for name in entry.get("replaces", ())}


def refuse_removals(steps: records.Steps, wanted: records.WantedPackages, manager: str) -> records.Steps:
    """Return the steps of a transaction that removes only packages marked as `gone` or in `replaces`.

    :raises CheckError: if it would remove another package
    """
    removed = sorted(name for name, version in steps.items() if version is None)
    allowed = replaceable(wanted)
    removed = [name for name in removed if not wanted.get(name, {}).get("gone") and name not in allowed]
    if removed:
        raise CheckError(f"{manager} would have to remove {', '.join(removed)}; `replaces` allows it")
    return steps


def held_among(world: World, names: Iterable[str]) -> list[str]:
    """Return which of these packages are on hold."""
    return sorted(name for name in names if (world.entry("packages", name) or {}).get("held"))


class Guard:
    """Runs a package manager, unless it would now do something else than planned.

    :param machine: the machine
    :param manager: the name of the package manager, for messages
    :param env: its environment
    :param codes: its exit statuses that mean success
    """

    def __init__(
        self, machine: Machine, manager: str, env: Mapping[str, str] | None = None, codes: tuple[int, ...] = (0,)
    ) -> None:
        self.machine, self.manager, self.env, self.codes = machine, manager, env, codes

    def run(
        self,
        argv: Sequence[str],
        effect: records.Effect,
        simulate: Callable[[], records.Steps],
        units: Sequence[str] = (),
        foreseen: set[str] | None = None,
        removable: set[str] | None = None,
        begin: Callable[[], object] | None = None,
    ) -> Result:
        """Run it. If it fails, start the stopped units again.

        :param argv: the program with its arguments
        :param simulate: returns what it would do
        :param units: the units to stop just before
        :param foreseen: the packages that it may change; None: all
        :param removable: the packages that it may remove; None: all
        :param begin: a function to call just before it starts
        """
        stopped: list[str] = []

        def first() -> Result | None:
            refused = self._ready(simulate, units, foreseen, removable, stopped)
            if refused is None and begin is not None:
                begin()
            return refused

        result = self.machine.run(
            argv, effect, env=self.env, timeout=TIMEOUT, codes=self.codes, interruptible=False, first=first
        )
        if result["status"] != "ok" and stopped:
            package_units.start_again(self.machine, stopped)
        return result

    def _ready(
        self,
        simulate: Callable[[], records.Steps],
        units: Sequence[str],
        foreseen: set[str] | None,
        removable: set[str] | None,
        stopped: list[str],
    ) -> Result | None:
        """Stop the units of packages that are about to be removed.

        :param stopped: receives the units that this function began to stop
        :returns: an error if the package manager must not do this, otherwise None
        """
        refused = self._unforeseen(simulate, foreseen, removable)
        if refused is None and units:
            stopped += units
            result = package_units.stop(self.machine, units)
            refused = result if result["status"] != "ok" else None
        return refused

    def _unforeseen(
        self, simulate: Callable[[], records.Steps], foreseen: set[str] | None, removable: set[str] | None
    ) -> Result | None:
        """Return an error if it would now do something that the plan does not name, otherwise None."""
        try:
            steps = simulate()
        except CheckError as problem:
            return error(str(problem))
        others = sorted(set(steps) - foreseen) if foreseen is not None else []
        if others:
            text = "nothing was changed: %s would also change %s, which was not planned; plan again"
            return error(text % (self.manager, ", ".join(others)))
        removed = {name for name, version in steps.items() if version is None}
        others = sorted(removed - removable) if removable is not None else []
        if others:
            text = "nothing was installed: %s would also remove %s; add it to replaces"
            return error(text % (self.manager, ", ".join(others)))
        return None
