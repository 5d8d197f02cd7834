"""Upgrade all packages with dnf."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import dnf, dnf_program, package_changes, package_steps, records


def solve(world: World, full: bool, clean: bool, keep: Sequence[str], before: records.WantedPackages) -> records.Steps:
    """Return what an upgrade changes after everything that earlier layers install and remove.

    :param full: whether it may remove packages
    :param clean: whether it removes packages that are no longer needed
    :param keep: packages that keep their versions
    :param before: what the earlier layers install and remove
    :raises CheckError: if dnf refuses
    """
    try:
        found: records.Steps = dnf_program.ask(
            world,
            "solve",
            upgrade=True,
            erase=full,
            unneeded=clean,
            keep=sorted([*keep, *before]),
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

    def commands() -> Iterator[list[str]]:
        allow = ["--allowerasing"] if full else ["--setopt=obsoletes=0"]
        excludes = ["--exclude=" + dnf.spec(name) for name in keep]
        yield ["dnf", "-y", dnf_program.NEVER, *allow, *excludes, "upgrade"]
        if clean:
            yield ["dnf", "-y", dnf.LOCAL, "autoremove"]

    simulate = functools.partial(solve, machine, full, clean, keep, {})
    guard = package_steps.Guard(machine, dnf.NAME)
    return package_changes.run(guard, dnf.update_lists, update, steps, keep, simulate, commands)
