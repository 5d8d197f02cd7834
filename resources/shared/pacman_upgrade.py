"""Upgrade all packages with pacman."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from statecfg.remote.graph.model import Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import (
    package_changes,
    package_steps,
    package_transaction,
    pacman,
    pacman_steps,
    records,
)


def upgrades(world: World, full: bool, clean: bool, keep: Sequence[str]) -> records.Steps:
    """Return what an upgrade changes, except for the packages that earlier layers install and remove.

    :param full: whether it may remove packages
    :param clean: whether it removes packages that are no longer needed
    :param keep: packages that keep their versions
    :raises CheckError: if pacman refuses, or if a safe upgrade would remove a package
    """
    before = package_transaction.asked(world)
    steps = _solve(world, full, clean, [*keep, *before])
    return {name: version for name, version in steps.items() if name not in before and name not in keep}


def _solve(world: World, full: bool, clean: bool, keep: Sequence[str]) -> records.Steps:
    ignored = [word for name in sorted(keep) for word in ("--ignore", name)]
    new: dict[str, str | None] = {**pacman_steps.printed(world, ["-Su", *ignored, *pacman_steps.PRINT])}
    steps = pacman_steps.with_conflicts(world, new)
    if not full:
        package_steps.refuse_removals(steps, {}, pacman.NAME)
    orphans = _orphans(world, keep) if clean else []
    return {**(pacman_steps.removal(world, orphans, unneeded=True) if orphans else {}), **steps}


def _orphans(world: World, keep: Sequence[str]) -> list[str]:
    probe = pacman_steps.run(world, ["-Qdtq"])
    if probe.status != 0 and (probe.status != 1 or probe.errors):  # 1 without a message: there are none
        raise pacman_steps.refused(probe)
    return [name for name in probe.text.split() if name not in keep]


def _left_over(machine: Machine, keep: Sequence[str]) -> list[str]:
    try:
        return _orphans(machine, keep)
    except Unknown:  # only in a plan
        return []


@op(turn="pacman")
def upgrade(
    machine: Machine, steps: records.Steps | None, full: bool, clean: bool, keep: Sequence[str], update: int | None
) -> Result:
    """Upgrade all packages. If pacman would change other packages than planned, fail and change nothing.

    :param steps: what it changes; None if that was not known
    :param keep: packages that keep their versions
    :param update: the maximum age of pacman's lists in seconds; None: any age
    """
    if update is not None:
        updated = pacman.update_lists(machine, update)
        if updated["status"] != "ok":
            return updated
    effect: records.Effect = {"unknown": package_steps.EVERYTHING}
    if steps is not None:
        changed = {name: package_steps.installed(version) for name, version in steps.items()}
        effect = {"packages": changed, "automatic": {}, "dependencies": {}, "unknown": package_steps.BRINGS}
    foreseen = {*steps, *keep} if steps is not None else None
    ignored = [word for name in sorted(keep) for word in ("--ignore", name)]
    simulate = functools.partial(_solve, machine, full, clean, keep)
    guard, recorder = package_steps.Guard(machine, pacman.NAME), package_changes.Recorder(machine)
    answers = [*(pacman.CONFLICTS if full else ()), "--noconfirm"]
    argv = ["pacman", "-Su", *ignored, *answers]
    result = guard.run(argv, effect, simulate, foreseen=foreseen, begin=recorder.begin)
    if clean and result["status"] == "ok":
        gone = _left_over(machine, keep)
        if gone:
            result = guard.run(["pacman", "-Rs", "--noconfirm", "--", *gone], effect, simulate, foreseen=foreseen)
    return recorder.add_to(result)
