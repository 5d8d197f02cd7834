"""Upgrade all packages with pacman."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_changes, package_steps
from statecfg.resources.packages.managers.pacman import pacman, pacman_steps
from statecfg.resources.shared import records


def solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    """Return what an upgrade changes, see `package_changes.upgrade_op`.

    :raises CheckError: if pacman refuses, or if a safe upgrade would remove a package
    """
    keep = [*keep, *before]
    new: dict[str, str | None] = {**pacman_steps.printed(world, ["-Su", *_ignored(keep), *pacman_steps.PRINT])}
    steps = pacman_steps.with_conflicts(world, new)
    if not full:
        package_steps.refuse_removals(steps, {}, pacman.NAME)
    orphans = _orphans(world, keep) if clean else []
    return {**(pacman_steps.removal(world, orphans, unneeded=True) if orphans else {}), **steps}


def _ignored(keep: Iterable[str]) -> list[str]:
    return [word for name in sorted(keep) for word in ("--ignore", name)]


def _orphans(world: World, keep: Sequence[str]) -> list[str]:
    probe = pacman_steps.run(world, ["-Qdtq"])
    if probe.status != 0 and (probe.status != 1 or probe.errors):  # 1 without a message: there are none
        raise pacman_steps.refused(probe)
    return [name for name in probe.text.split() if name not in keep]


def commands(machine: Machine, full: bool, clean: bool, keep: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of an upgrade, see `package_changes.upgrade_op`."""
    yield ["pacman", "-Su", *_ignored(keep), *(pacman.CONFLICTS if full else ()), "--noconfirm"]
    gone = package_changes.left_over(_orphans, machine, keep) if clean else []
    if gone:
        yield ["pacman", "-Rs", "--noconfirm", "--", *gone]


upgrade = package_changes.upgrade_op(pacman, solve, commands)
