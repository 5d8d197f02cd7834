"""Settings of ufw: their check, the snapshot, the undo, and the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import World
from statecfg.remote.wire.channel import Channel
from statecfg.resources.shared import firewall_guard, records, ufw

# The state comes last: a firewall that is switched on has its defaults already.
NAMES = (*ufw.DIRECTIONS, "logging", "state")


def _value(world: World, name: str) -> str | None:
    entry = world.entry("ufw", name)
    return entry["value"] if entry is not None else None


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the settings with the wanted ones.

    :raises CheckError: if ufw is not installed
    """
    ufw.families(world)
    wanted = [(name, node.attrs[name]) for name in NAMES if node.attrs.get(name) is not None]
    return [ufw.change_setting(name, value) for name, value in wanted if _value(world, name) != value]


def remember(node: HostNode, world: World) -> records.Fields:
    """Record the settings that the node sets."""
    ufw.families(world)
    return {"settings": {name: _value(world, name) for name in NAMES if node.attrs.get(name) is not None}}


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Restore the former settings. Those that others have changed since then stay."""
    spec = ActionSpec()
    if world.stat(ufw.CONFIG) is None:
        return spec
    for name in reversed(NAMES):  # a firewall that is switched off again is off first
        was, now = memory["settings"].get(name), _value(world, name)
        if was == now:
            continue
        if was in (None, ""):
            spec.left.append(f"{name} of ufw stays {now}: its former value was unknown")
            continue
        if now != node.attrs[name]:
            spec.left.append(f"others set {name} of ufw to {now}: it stays")
        elif name == "state" and was not in ("enabled", "disabled"):
            spec.left.append(f"the state of ufw was: {was}. It stays {now}")
        else:
            spec.actions.append(ufw.change_setting(name, was))
    return spec


def guard(
    machine: RealMachine, channel: Channel, remote: bool, warnings: list[str], nodes: Sequence[HostNode]
) -> firewall_guard.ChangeGuard:
    """Return the guard of ufw (see `NodeType.guard`)."""

    def state() -> str:
        entry = machine.entry("ufw", "state")
        return str(entry["value"]) if entry is not None else "disabled"

    def filters() -> bool:
        try:
            return state() != "disabled"
        except CheckError:  # ufw does not answer: only a login can tell
            return True

    def record() -> Callable[[], list[str]]:
        before = state() in ("enabled", "active until the next boot")
        put_back = firewall_guard.files(machine, [*ufw.FILES.values(), ufw.CONFIG, ufw.DEFAULTS])

        def restore() -> list[str]:
            problems = firewall_guard.run(machine, "ufw", "--force", "disable") + put_back()
            if before:
                problems += firewall_guard.run(machine, "ufw", "--force", "enable") + put_back()
            return problems

        return restore

    watched = firewall_guard.Watched(("ufw", "ufw_rule"), record, filters)
    return firewall_guard.ChangeGuard(channel, remote, warnings, watched)
