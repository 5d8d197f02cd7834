"""What an upgrade changed: recorded by its op, kept in the ledger, and compared with the host before the undo."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import package_transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    Changes = Mapping[str, list[str]]  # package → former and new version, "" for none


def versions(world: World) -> dict[str, str]:
    """Return the version of each installed package."""
    return {name: entry["version"] for name, entry in world.table("packages").items() if "version" in entry}


class Recorder:
    """Compares the packages before and after one command. A plan does not run the command and records nothing."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.before: dict[str, str] | None = None

    def begin(self) -> None:
        """Record the versions just before the command starts."""
        self.before = versions(self.machine)

    def add_to(self, result: Result) -> Result:
        """Return the command's result with what it changed, even if it failed in the middle."""
        if self.before is None:
            return result
        was, now = self.before, versions(self.machine)
        names = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        said = {name: "%s %s" % (was.get(name, ""), now.get(name, "")) for name in names}
        return dict(result, said=said) if said else result


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
            done = "installed %s" % new if new else "removed it"
            messages.append("%s stays at %s: others installed it after this node %s" % (name, there, done))
        elif was and new and not there:
            messages.append("%s is not installed again: others removed it" % name)
    names = [name for name, version in sorted(before.items()) if now.get(name, version) != version]
    others = ["%s (%s)" % (name, now[name]) for name in names if name not in changed]
    if others:
        shown, more = others[: package_transaction.SHOWN], len(others) - package_transaction.SHOWN
        shown += ["%d more" % more] if more > 0 else []
        stays = "stay: the ledger has no record that this node upgraded them"
        stays = stays if len(others) > 1 else "stays: the ledger has no record that this node upgraded it"
        messages.append("%s %s" % (" and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])), stays))
    return messages
