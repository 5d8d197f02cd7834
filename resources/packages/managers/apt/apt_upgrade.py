"""Upgrade all packages with apt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_changes
from statecfg.resources.packages.managers.apt import apt
from statecfg.resources.packages.managers.apt.apt_settings import QUIET
from statecfg.resources.shared import records


def arguments(full: bool, clean: bool, named: Sequence[str]) -> list[str]:
    """Return the arguments of apt-get.

    :param named: packages with the versions that they keep
    """
    return [
        *(["--auto-remove"] if clean else []),
        *([] if full else ["--with-new-pkgs", "--no-remove"]),
        "dist-upgrade" if full else "upgrade",
        *(["--", *named] if named else []),
    ]


def solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    """Return what an upgrade changes, see `package_changes.upgrade_op`.

    :raises CheckError: if apt refuses
    """
    return apt.simulate(world, arguments(full, clean, _named(world, keep, before)))


def _named(world: World, keep: Sequence[str], before: records.WantedPackages) -> list[str]:
    named = []
    for name, entry in sorted(before.items()):
        version = "=" + (entry.get("version") or "") if entry.get("version") else ""
        named.append(name + ("-" if entry.get("gone") else version))
    entries = {name: world.entry("packages", name) or {} for name in keep if name not in before}
    return [*named, *(f"{name}={entry['version']}" for name, entry in entries.items() if "version" in entry)]


def commands(machine: Machine, full: bool, clean: bool, keep: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of an upgrade, see `package_changes.upgrade_op`."""
    yield [*apt.CALL, *arguments(full, clean, _named(machine, keep, {}))]


upgrade = package_changes.upgrade_op(apt, solve, commands, QUIET)
