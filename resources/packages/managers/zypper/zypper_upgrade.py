"""Upgrade all packages with zypper."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_changes, package_steps
from statecfg.resources.packages.managers.zypper import zypper, zypper_program
from statecfg.resources.packages.managers.zypper.zypper_program import CALL, ERASE, LOCAL, PLAIN
from statecfg.resources.shared import records

UPDATE = ["update", "--auto-agree-with-licenses"]
_ROW = re.compile(r"^i\S*\s*\|[^|]*\|\s*([^|\s]+)\s*\|[^|]*\|\s*([^|\s]+)\s*$", re.M)


def solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    """Return what an upgrade changes, see `package_changes.upgrade_op`.

    :raises CheckError: if zypper refuses, or if a safe upgrade would remove a package
    """
    keep = [*keep, *before]
    request = _request(world, full, keep)
    steps = zypper_program.steps(world, request) if request else {}
    changed = sorted(name for name in keep if name in steps)
    if changed:
        raise CheckError(f"the upgrade would change {', '.join(changed)}, which other nodes install")
    if not full:
        package_steps.refuse_removals(steps, {}, zypper.NAME)
    orphans = _orphans(world, keep) if clean else []
    return {**(dict.fromkeys(zypper.unneeded(world, orphans)) if orphans else {}), **steps}


def _request(world: World, full: bool, keep: Sequence[str]) -> list[str]:
    """Return the command. zypper can't leave out packages, so if there are such, the command names all others."""
    zypper_program.require_lists(world)
    argv = [*UPDATE, *([ERASE] if full else [])]
    kept = {*keep}
    if not kept & {*zypper_program.steps(world, argv)}:
        return argv
    names = sorted(
        name
        for name in zypper_program.steps(world, [*UPDATE, ERASE])
        if name not in kept and world.entry("packages", name)
    )
    return [*argv, "--", *map(zypper_program.spec, names)] if names else []


def _orphans(world: World, keep: Sequence[str]) -> list[str]:
    probe = zypper_program.run(world, [LOCAL, "packages", "--unneeded"])
    if probe.status != 0:
        raise CheckError(f"zypper can't list its packages: {zypper_program.refused(probe)}")
    named = zypper_program.key(world)
    found = [named({"name": name, "arch": architecture}) for name, architecture in _ROW.findall(probe.text)]
    return sorted({name for name in found if name not in keep and not package_steps.held_among(world, [name])})


def commands(machine: Machine, full: bool, clean: bool, keep: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of an upgrade, see `package_changes.upgrade_op`."""
    request = [*UPDATE, *([ERASE] if full else [])]
    try:
        if not zypper.fetching(machine):
            request = _request(machine, full, keep)
    except Unknown:  # only in a plan
        pass
    if request:
        yield [*CALL, *request]
    gone = package_changes.left_over(_orphans, machine, keep) if clean else []
    if gone:
        yield [*CALL, LOCAL, "remove", "--clean-deps", "--", *map(zypper_program.spec, gone)]


upgrade = package_changes.upgrade_op(zypper, solve, commands, PLAIN, zypper.CODES)
