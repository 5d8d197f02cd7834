"""Upgrade all packages with dnf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_changes
from statecfg.resources.packages.managers.dnf import dnf, dnf_program
from statecfg.resources.shared import records


def solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    """Return what an upgrade changes, see `package_changes.upgrade_op`.

    :raises CheckError: if dnf refuses
    """
    found: records.Steps = dnf_program.planned(
        world,
        "solve",
        upgrade=True,
        erase=full,
        unneeded=clean,
        keep=sorted([*keep, *before]),
        install={name: entry.get("version") for name, entry in before.items() if not entry.get("gone")},
        remove=sorted(name for name, entry in before.items() if entry.get("gone")),
    )
    return found


def commands(machine: Machine, full: bool, clean: bool, keep: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of an upgrade, see `package_changes.upgrade_op`."""
    allow = ["--allowerasing"] if full else ["--setopt=obsoletes=0"]
    excludes = ["--exclude=" + dnf.spec(name) for name in keep]
    yield ["dnf", "-y", dnf_program.NEVER, *allow, *excludes, "upgrade"]
    if clean:
        yield ["dnf", "-y", dnf.LOCAL, "autoremove"]


upgrade = package_changes.upgrade_op(dnf, solve, commands)
