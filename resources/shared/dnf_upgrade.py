"""Upgrade all packages with dnf."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import dnf, dnf_program, package_changes, package_steps, package_transaction, records


def upgrades(world: World, full: bool, clean: bool, keep: Sequence[str]) -> records.Steps:
    """Return what an upgrade changes after everything that earlier layers install and remove.

    :param full: whether it may remove packages
    :param clean: whether it removes packages that are no longer needed
    :param keep: packages that keep their versions
    :raises CheckError: if dnf refuses
    """
    before = package_transaction.asked(world)
    steps = _solve(world, full, clean, [*keep, *before], before)
    return {name: version for name, version in steps.items() if name not in before and name not in keep}


def _solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    try:
        found: records.Steps = dnf_program.ask(
            world,
            "solve",
            upgrade=True,
            erase=full,
            unneeded=clean,
            keep=sorted(keep),
            install={name: entry.get("version") for name, entry in before.items() if not entry.get("gone")},
            remove=sorted(name for name, entry in before.items() if entry.get("gone")),
        )
    except dnf_program.Refusal as problem:
        raise CheckError("dnf can't do this: %s" % problem) from None
    return found


@op(turn="dnf")
def upgrade(
    machine: Machine, steps: records.Steps | None, full: bool, clean: bool, keep: Sequence[str], update: int | None
) -> Result:
    """Upgrade all packages. If dnf would change other packages than planned, fail and change nothing.

    :param steps: what it changes; None if that was not known
    :param keep: packages that keep their versions
    :param update: the maximum age of dnf's lists in seconds; None: any age
    """
    if update is not None:
        updated = dnf.update_lists(machine, update)
        if updated["status"] != "ok":
            return updated
    effect: records.Effect = {"unknown": package_steps.EVERYTHING}
    if steps is not None:
        changed = {name: package_steps.installed(version) for name, version in steps.items()}
        effect = {"packages": changed, "automatic": {}, "dependencies": {}, "unknown": package_steps.BRINGS}
    foreseen = {*steps, *keep} if steps is not None else None
    allow = ["--allowerasing"] if full else ["--setopt=obsoletes=0"]
    excludes = ["--exclude=" + dnf.spec(name) for name in keep]
    argv = ["dnf", "-y", dnf_program.NEVER, *allow, *excludes, "upgrade"]
    simulate = functools.partial(_solve, machine, full, clean, keep, {})
    guard = package_steps.Guard(machine, dnf.NAME)
    recorder = package_changes.Recorder(machine)
    result = guard.run(argv, effect, simulate, foreseen=foreseen, begin=recorder.begin)
    if clean and result["status"] == "ok":
        result = guard.run(["dnf", "-y", dnf.LOCAL, "autoremove"], effect, simulate, foreseen=foreseen)
    return recorder.add_to(result)
