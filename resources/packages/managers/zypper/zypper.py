"""zypper: what it would do, and the ops that change packages. `rpm` reads what is installed; see `zypper_program`."""

from __future__ import annotations

import fnmatch
import functools
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.rpm import rpm
from statecfg.resources.packages.managers.rpm.rpm import conffiles as conffiles
from statecfg.resources.packages.managers.rpm.rpm import unit_packages as unit_packages
from statecfg.resources.packages.managers.rpm.rpm_needs import dependencies as dependencies
from statecfg.resources.packages.managers.zypper import zypper_program
from statecfg.resources.packages.managers.zypper.zypper_program import (
    AUTO,
    CALL,
    ERASE,
    INSTALL,
    LOCAL,
    LOCKS,
    PLAIN,
    spec,
)
from statecfg.resources.packages.package_steps import GONE as GONE
from statecfg.resources.packages.package_steps import first as first
from statecfg.resources.shared import records

NAME = "zypper"
SHIPPED = None  # rpm does not write the file of the package beside one that was there before
SAVED = rpm.SAVED
VIRTUAL = "a virtual package"
CODES = (0, 102, 103)  # 102: the host should reboot; 103: zypper has updated itself
KEEP = "--no-clean-deps"

# Packages that exclude each other: newer lists would not help.
EXCLUDED = re.compile(r"\b(conflicts with|obsoletes|conflicting requests)\b|would have to remove ")
_FIELD = re.compile(r"^(\w+):[ \t]*(.*?)[ \t]*$", re.M)


@facet("zypper")
def zypper(host: Any) -> dict[str, records.Fields]:
    """Load when the oldest of zypper's lists was fetched: `lists` → `updated`, in seconds since 1970.

    If one is missing, `updated` is 0.
    """
    moments = [zypper_program.fetched(host, alias) for alias in zypper_program.repositories(host)]
    return {"lists": {"updated": min(moments) if moments else int(time.time())}}


def locks(world: World) -> list[str]:
    """Return the names and patterns that zypper locks in all versions and repositories. Source: zypper's locks file."""
    text = world.read(LOCKS).decode("utf-8", "replace") if world.stat(LOCKS) is not None else ""
    entries = [dict(_FIELD.findall(part)) for part in re.split(r"\n[ \t]*\n", text)]
    whole = [entry for entry in entries if entry.get("type", "package") == "package"]
    return [
        entry["solvable_name"] for entry in whole if "solvable_name" in entry and not {"repo", "version"} & {*entry}
    ]


def packages(host: Any) -> dict[str, records.Fields]:
    """Load the packages of rpm. A package that zypper locks has `held`.

    :raises CheckError: if rpm fails
    """
    loaded, patterns = rpm.packages(host), locks(host)
    for name, entry in loaded.items():
        if any(fnmatch.fnmatchcase(name.partition(":")[0], pattern) for pattern in patterns):
            loaded[name] = {**entry, "held": True}
    return loaded


def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that zypper installed only because other packages need them: name → `auto`."""
    text = host.read(AUTO).decode("utf-8", "replace") if host.stat(AUTO) is not None else ""
    return {line: {"auto": True} for line in text.split("\n") if line and not line.startswith("#") and ":" not in line}


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch zypper's lists if they are older than this many seconds."""
    argv = ["zypper", "--non-interactive", "refresh"]
    return package_steps.fetch_lists(machine, NAME, older_than, argv, PLAIN, [zypper_program.CACHE])


def fetching(machine: Machine) -> bool:
    """Return whether this is a plan in which an action fetches the lists before, so that their content is unknown."""
    return bool(package_steps.updated(machine, NAME) == package_steps.UPDATED)


def _request(
    world: World, present: Mapping[str, str | None], gone: Sequence[str], options: Sequence[str], erase: bool
) -> list[str]:
    """Return the command of zypper for a transaction.

    :raises CheckError: if a version is not available
    """
    if not present:
        return [LOCAL, "remove", KEEP, "--", *map(spec, gone)]
    zypper_program.require_lists(world)
    names = [*zypper_program.chosen(world, present), *("!" + spec(name) for name in gone)]
    return [*INSTALL, *options, *([ERASE] if erase else []), "--", *names]


@op(mutex="zypper", batch="packages")
def install(machine: Machine, packages: list[records.InstallItem], options: Sequence[str] = ()) -> Result:
    """Install packages in one transaction, or change them to the given versions.

    If zypper would now remove a package that these may not replace, fail and install nothing.

    :param options: options of zypper for the transaction
    """
    result = package_steps.prepare(machine, packages, update_lists, lock)
    if result["status"] != "ok":
        return result
    effect, allowed, units = package_steps.replacement(machine, packages, options)
    present = {package["name"]: package["version"] for package in packages}
    wanted: records.WantedPackages = {
        name: {"version": version, "replaces": sorted(allowed), "options": options} for name, version in present.items()
    }
    request = [*INSTALL, *options, *([ERASE] if allowed else []), "--", *sorted(map(spec, present))]
    try:
        if not fetching(machine):
            request = _request(machine, present, [], options, bool(allowed))
    except Unknown:  # only in a plan
        pass
    except CheckError as problem:
        return error(str(problem))
    simulate = functools.partial(transaction, machine, wanted)
    guard = package_steps.Guard(machine, NAME, PLAIN, CODES)
    return guard.run([*CALL, *request], effect, simulate, units, removable=allowed)


@op(mutex="zypper", batch="packages")
def remove(machine: Machine, packages: list[records.RemoveItem]) -> Result:
    """Remove packages, and the packages that depend on them. What these had replaced is installed in the same step.

    If zypper would now change a package that the plan does not name, fail and remove nothing. If zypper fails, start
    the stopped units again. With `purge`, also remove changed configuration files, which rpm renames.
    """
    effect = package_steps.removal(packages)
    foreseen = set(effect["packages"])
    held = sorted(name for package in packages for name in package.get("held", ()))
    result = lock(machine, False, held) if held else ok()
    if result["status"] != "ok":
        return result
    units = [unit for package in packages for unit in package.get("units", ())]
    back = {name: version for package in packages for name, version in package.get("back", {}).items()}
    saved = [path for package in packages if package["purge"] for path in rpm.renamed(machine, package["name"])]
    gone = sorted(package["name"] for package in packages)
    request = [*INSTALL, ERASE, "--", *sorted(map(spec, back)), *("!" + spec(name) for name in gone)]
    try:
        if not back or not fetching(machine):
            request = _request(machine, back, gone, [], True)
    except Unknown:  # only in a plan
        pass
    except CheckError as problem:
        return error(str(problem))
    again: records.WantedPackages = {name: {"version": version} for name, version in back.items()}
    wanted = {**again, **dict.fromkeys(gone, GONE)}
    simulate = functools.partial(transaction, machine, wanted)
    guard = package_steps.Guard(machine, NAME, PLAIN, CODES)
    result = guard.run([*CALL, *request], effect, simulate, units, foreseen)
    if saved and result["status"] == "ok":
        result = machine.run(["rm", "-f", "--", *saved], {"files": saved})
    return result


@op(mutex="zypper")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Record that a package is installed only because other packages need it. zypper has no command for this."""
    argv = ["sed", "-i", "$a " + name.partition(":")[0], AUTO]
    return machine.run(argv, {"automatic": {name: {"auto": True}}})


@op(mutex="zypper")
def mark_manual(machine: Machine, name: str) -> Result:
    """Record that a package must stay if nothing needs it. zypper has no command for this."""
    argv = ["sed", "-i", f"/^{re.escape(name.partition(':')[0])}$/d", AUTO]
    return machine.run(argv, {"automatic": {name: None}})


@op(mutex="zypper")
def hold(machine: Machine, name: str, held: bool) -> Result:
    """Put a package on hold, so that only this node changes its version, or release it."""
    return lock(machine, held, [name])


def lock(machine: Machine, held: bool, names: Sequence[str]) -> Result:
    """Put installed packages on hold, or release them."""
    plain = sorted({name.partition(":")[0] for name in names})
    for pattern in () if held else locks(machine):
        found = [name for name in plain if fnmatch.fnmatchcase(name, pattern) and name != pattern]
        if found:
            return error(f"the lock {pattern} of zypper holds {', '.join(found)}: remove that lock")
    effect: records.Effect = {"packages": {name: {"held": True if held else None} for name in names}}
    return machine.run([*CALL, "addlock" if held else "removelock", "--", *plain], effect, env=PLAIN)


def transaction(world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
    """Return what zypper would do in one transaction, including the removals that follow from it.

    :param wanted: name → its `version` (None: zypper's choice) or `gone`
    :raises CheckError: if zypper refuses
    """
    there = rpm.packages(world)
    gone = sorted(name for name, entry in wanted.items() if entry.get("gone") and name in there)
    present = {name: entry.get("version") for name, entry in wanted.items() if not entry.get("gone")}
    if not gone and not present:
        return {}
    options = next((list(entry["options"]) for entry in wanted.values() if entry.get("options")), [])
    erase = bool(gone or package_steps.replaceable(wanted))
    request = _request(world, present, gone, options, erase)
    if request[-1] == "--":  # everything is installed, in versions that no repository has
        return {}
    # An installation releases these, so zypper must ignore its locks. The others stay locked.
    released = package_steps.held_among(world, wanted)
    found = zypper_program.steps(world, request, unlocked=bool(released))
    kept = package_steps.held_among(world, [name for name in found if name not in wanted])
    if released and kept:
        raise CheckError(f"zypper can't do this: it would change {', '.join(kept)}, which is on hold")
    return found


def unneeded(world: World, names: Iterable[str]) -> set[str]:
    """Return the packages that nothing needs once these are removed, and these."""
    there = rpm.packages(world)
    present = sorted(name for name in names if name in there)
    if not present:
        return set()
    request = [LOCAL, "remove", "--clean-deps", "--", *map(spec, present)]
    steps = zypper_program.steps(world, request, unlocked=bool(package_steps.held_among(world, present)))
    return {name for name, version in steps.items() if version is None}


def unknown_package(world: World, name: str, version: str | None, problem: str) -> CheckError | None:
    """Return the error if zypper refuses because it does not know the package; otherwise None."""
    missing = zypper_program.NO_PROVIDER % spec(name) in problem
    return zypper_program.unknown_package(world, name) if missing else None


def options(attrs: Mapping[str, Any]) -> list[str]:
    """Return the options of zypper for the transaction that installs a node's package.

    :raises CheckError: if an attribute of the node is an option of another package manager
    """
    package_steps.refuse_options(attrs, NAME)
    if attrs.get("recommends") is None:
        return []
    return ["--recommends" if attrs["recommends"] else "--no-recommends"]
