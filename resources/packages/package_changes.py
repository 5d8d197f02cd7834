"""Upgrades: run them, record what they changed for the ledger, and compare that with the host before the undo."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.graph.ops import Op, op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_steps, package_transaction
from statecfg.resources.shared import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    Changes = Mapping[str, list[str]]  # package → former and new version, "" for none


def versions(world: World) -> dict[str, str]:
    """Return the version of each installed package."""
    return {name: entry["version"] for name, entry in world.facet("packages").items() if "version" in entry}


class Recorder:
    """Compares the packages before and after commands. A plan does not run them and records nothing."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.before: dict[str, str] | None = None

    def begin(self) -> None:
        """Record the versions just before the first command starts."""
        if self.before is None:
            self.before = versions(self.machine)

    def add_to(self, result: Result) -> Result:
        """Return the result with what the commands changed, even if one failed in the middle."""
        if self.before is None:
            return result
        was, now = self.before, versions(self.machine)
        names = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        said = {name: f"{was.get(name, '')} {now.get(name, '')}" for name in names}
        return {**result, "said": said} if said else result


def upgrade_op(
    manager: Any,
    solve: Callable[[World, bool, bool, Sequence[str], records.WantedPackages], records.Steps],
    commands: Callable[[Machine, bool, bool, Sequence[str]], Iterable[Sequence[str]]],
    env: Mapping[str, str] | None = None,
    codes: tuple[int, ...] = (0,),
) -> Op:
    """Return the op that upgrades all packages. If that would change other packages than planned, it changes nothing.

    :param manager: the module of the package manager
    :param solve: returns what an upgrade changes: (world, full, clean, keep, before). `before` is what the earlier
        layers install and remove; for the other arguments see the op
    :param commands: yields the commands of an upgrade: (machine, full, clean, keep). A later one may depend on what the
        earlier ones did
    :param env: the environment of the commands
    :param codes: their exit statuses that mean success
    """

    @op(mutex=manager.NAME)
    def upgrade(
        machine: Machine, steps: records.Steps | None, full: bool, clean: bool, keep: Sequence[str], update: int | None
    ) -> Result:
        """Upgrade all packages.

        :param steps: what it changes; None if that was not known
        :param full: whether it may remove packages
        :param clean: whether it also removes packages that nothing needs
        :param keep: packages that keep their versions
        :param update: the maximum age of the lists in seconds; None: any age
        """
        result: Result = manager.update_lists(machine, update) if update is not None else ok()
        if result["status"] != "ok":
            return result
        guard, recorder = package_steps.Guard(machine, manager.NAME, env, codes), Recorder(machine)
        simulate = functools.partial(solve, machine, full, clean, keep, {})
        effect, foreseen = package_steps.changes(steps), {*steps, *keep} if steps is not None else None
        try:
            for argv in commands(machine, full, clean, keep):
                result = guard.run(argv, effect, simulate, foreseen=foreseen, begin=recorder.begin)
                if result["status"] != "ok":
                    break
        except CheckError as problem:
            result = error(str(problem))
        return recorder.add_to(result)

    return upgrade


def left_over(orphans: Callable[[World, Sequence[str]], list[str]], machine: Machine, keep: Sequence[str]) -> list[str]:
    """Return the packages that nothing needs after the upgrade."""
    try:
        return orphans(machine, keep)
    except Unknown:  # only in a plan
        return []


def merged(changed: Changes, said: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what a node changed in all its runs, with what its last run said.

    If others changed a package between two runs of the node, only the node's last change counts.
    """
    result = dict(changed)
    for name, text in said.items():
        was, _, new = text.partition(" ")
        earlier = result.get(name)
        if earlier is None or earlier[1] not in (was, new):
            result[name] = [was, new]
        elif earlier[1] == was:
            result[name] = [earlier[0], new]
    return result


def kept(world: World, before: Mapping[str, str], changed: Changes) -> list[str]:
    """Return messages about the packages that others changed since the first apply.

    :param before: package → version before the first apply
    :param changed: what the node changed
    """
    now = versions(world)
    messages = []
    for name, (was, new) in sorted(changed.items()):
        there = now.get(name, "")
        if there and there not in (was, new):
            done = f"installed {new}" if new else "removed it"
            messages.append(f"{name} stays at {there}: others installed it after this node {done}")
        elif was and new and not there:
            messages.append(f"{name} is not installed again: others removed it")
    names = [name for name, version in sorted(before.items()) if now.get(name, version) != version]
    others = [f"{name} ({now[name]})" for name in names if name not in changed]
    if others:
        shown, more = others[: package_transaction.SHOWN], len(others) - package_transaction.SHOWN
        shown += [f"{more} more"] if more > 0 else []
        stays = "stay: the ledger has no record that this node upgraded them"
        stays = stays if len(others) > 1 else "stays: the ledger has no record that this node upgraded it"
        messages.append(f"{' and '.join(filter(None, [', '.join(shown[:-1]), shown[-1]]))} {stays}")
    return messages
