"""Upgrade all packages with apt."""

from __future__ import annotations

from collections.abc import Sequence

from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import apt, package_changes, package_steps, package_transaction, records


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


def upgrades(world: World, full: bool, clean: bool, keep: Sequence[str]) -> records.Steps:
    """Return what an upgrade changes after everything that earlier layers install and remove.

    :param full: whether it may remove packages
    :param clean: whether it removes packages that are no longer needed
    :param keep: packages that keep their versions
    :raises CheckError: if apt refuses
    """
    before = package_transaction.asked(world)
    steps = apt.simulate(world, arguments(full, clean, _named(world, keep, before)))
    return {name: version for name, version in steps.items() if name not in before and name not in keep}


def _named(world: World, keep: Sequence[str], before: records.WantedPackages) -> list[str]:
    named = []
    for name, entry in sorted(before.items()):
        version = "=" + (entry.get("version") or "") if entry.get("version") else ""
        named.append(name + ("-" if entry.get("gone") else version))
    entries = {name: world.entry("packages", name) or {} for name in keep if name not in before}
    return [*named, *("%s=%s" % (name, entry["version"]) for name, entry in entries.items() if "version" in entry)]


@op(turn="apt")
def upgrade(
    machine: Machine, steps: records.Steps | None, full: bool, clean: bool, keep: Sequence[str], update: int | None
) -> Result:
    """Upgrade all packages. If apt would change other packages than planned, fail and change nothing.

    :param steps: what it changes; None if that was not known
    :param keep: packages that keep their versions
    :param update: the maximum age of apt's lists in seconds; None: any age
    """
    if update is not None:
        updated = apt.update_lists(machine, update)
        if updated["status"] != "ok":
            return updated
    effect: records.Effect = {"unknown": package_steps.EVERYTHING}
    if steps is not None:
        changed = {name: package_steps.installed(version) for name, version in steps.items()}
        effect = {"packages": changed, "automatic": {}, "dependencies": {}, "unknown": package_steps.BRINGS}
    named = _named(machine, keep, {})
    foreseen = {*steps, *keep} if steps is not None else None
    recorder = package_changes.Recorder(machine)
    argv = arguments(full, clean, named)
    return recorder.add_to(apt.guarded(machine, argv, effect, [], foreseen=foreseen, begin=recorder.begin))
