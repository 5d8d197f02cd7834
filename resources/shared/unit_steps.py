"""The steps that bring a systemd unit to its wanted state, and back to its former one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.shared import records, sshd, systemd
from statecfg.resources.shared.paths import nearest

if TYPE_CHECKING:
    from statecfg.resources.shared import init_scripts

    class UnitMemory(init_scripts.ScriptMemory, total=False):
        """The memory of a `service`. `target` is the unit behind an alias. It is empty if there was no such unit."""

        target: str


# Units that other units start or that are created at boot. Enabling them has no meaning.
STARTED_ANYWAY = ("enabled", "static", "generated", "transient", "alias", "indirect")
NOT_STARTED = ("disabled", "static", "indirect", "masked", "masked-runtime", "transient", "generated", "")
MASKED = ("masked", "masked-runtime")


def check(world: World, name: str, attrs: records.Attrs, reload: bool) -> list[Action]:
    """Return the steps that bring a unit to the state that a node wants.

    :param reload: whether this run changes the unit's file
    :raises CheckError: if this is not possible
    """
    try:
        state = systemd.find(world, name)
    except Unknown:
        if attrs.get("masked") is False or (attrs.get("running") is None and world.triggered_by):
            raise
        # A required package brings the unit and may start it with a configuration that is outdated by then. Each step
        # achieves its result from any state of the unit.
        return steps(attrs, systemd.ServiceState(name, reload=reload), bool(world.triggered_by))
    if state is None:
        return missing(world, name, attrs)
    if world.acted and attrs.get("running") is False and state.up:
        sockets = systemd.listening(world, state)
        if sockets:
            text = "%s started it again: declare %s with running: false, too"
            raise CheckError(text % (sockets[0], sockets[0]))
    state.reload = state.reload or reload
    state.served = systemd.served(world, state)
    return steps(attrs, state, bool(world.triggered_by))


def after_removal(world: World, name: str, attrs: records.Attrs, removed: Iterable[HostNode]) -> list[Action]:
    """Return the steps for a unit that stays after the removal of nodes that it required.

    :raises CheckError: if the unit failed after these steps
    """
    if systemd.is_removed(world, name):
        return []
    state = systemd.find(world, name)
    if state is None:
        return []
    if world.acted:
        if state.active == "failed":
            raise CheckError(f"{name} is {state.active}")
        return []
    actions: list[Action] = []
    if state.reload or systemd.file_is_removed(name, removed):
        actions.append(systemd.daemon_reload(state.name))
    if state.up and world.triggered_by:
        state.served = systemd.served(world, state)
        actions += again(attrs, state)
    return actions


def missing(world: World, name: str, attrs: records.Attrs) -> list[Action]:
    """Return the actions for a unit that does not exist: none, unless the node masks it.

    :raises CheckError: if the node wants it to run or to start at boot
    """
    if attrs.get("masked"):
        return [systemd.mask(name)]
    if not attrs.get("running") and not attrs.get("enabled"):
        return []
    near = nearest(name, systemd.known_names(world))
    text = "unit %s does not exist on this host%s; if a package provides it, require that package"
    raise CheckError(text % (name, near))


def steps(attrs: records.Attrs, state: systemd.ServiceState, triggered: bool) -> list[Action]:
    """Return the steps from a unit's state to the wanted one.

    :param triggered: whether a node in `restart_on` changes
    :raises CheckError: if the unit is masked and the node does not allow to unmask it
    """
    name, active, boot = state.name, state.active, state.enabled
    running, enabled, masked = attrs.get("running"), attrs.get("enabled"), attrs.get("masked")
    actions: list[Action] = [systemd.daemon_reload(name)] if state.reload else []
    if boot in MASKED and not masked:
        if masked is False:
            actions.append(systemd.unmask(name))
            boot = None
        elif running or enabled:
            raise CheckError(f"{name} is masked; masked: false unmasks it")
    if enabled is True and boot not in STARTED_ANYWAY:
        actions.append(systemd.enable(name))
    elif enabled is False and boot not in NOT_STARTED:
        actions.append(systemd.disable(name))
    if running is False and (active is None or state.up):
        actions.append(systemd.stop(name))
    elif triggered and (state.up or (active is None and running)):
        actions += again(attrs, state)
    elif running and not state.up:
        actions += [*looked_at(name), *around(state.served, systemd.start(name))]
    if masked and (boot not in MASKED or state.alias is not None):
        actions.append(systemd.mask(state.alias or name))
    return actions


def again(attrs: records.Attrs, state: systemd.ServiceState) -> list[Action]:
    """Return the steps that make a unit use changed settings: a reload or a restart."""
    if attrs.get("on_change") == "reload" and state.active is not None:
        return [*looked_at(state.name), systemd.reload(state.name)]
    return [*looked_at(state.name), *around(state.served, systemd.restart(state.name))]


def looked_at(name: str) -> list[Action]:
    """Return what to check before a unit reads its settings again."""
    return [sshd.check_config(name)] if sshd.guarded(name) else []


def around(services: Sequence[str], action: Action) -> list[Action]:
    """Return an action on a socket between the stop and the start of its services, because systemd requires it."""
    return [*map(systemd.stop, services), action, *map(systemd.start, services)]


def undo(node: HostNode, memory: UnitMemory, world: World) -> ActionSpec:
    """Restore the unit's state, as far as the node sets it."""
    attrs, name = node.attrs, systemd.unit_name(node.attrs["name"])
    state = systemd.find(world, name)
    if state is None:
        return ActionSpec()
    if systemd.scripts(world):
        spec: ActionSpec = systemd.scripts(world).undo(attrs, memory, world, state, steps)
        return spec
    if not memory:  # a unit that did not exist could still be masked
        masks = attrs.get("masked") and state.enabled in MASKED
        return ActionSpec([systemd.unmask_nothing(name)] if masks else [])
    if "target" in memory and state.enabled in MASKED and state.alias is None:
        return ActionSpec([systemd.unmask_alias(name, memory["target"])])
    boot = memory["enabled"]
    if state.enabled in MASKED and boot not in MASKED and not attrs.get("masked"):
        return ActionSpec(left=[f"{name} is now masked: it stays as it is"])
    wanted: dict[str, bool] = {}
    if attrs.get("running") is not None:
        wanted["running"] = memory["active"] in systemd.UP
    if attrs.get("enabled") is not None and boot in ("enabled", "disabled", *MASKED):
        wanted["enabled"] = boot == "enabled"
    if attrs.get("masked") is not None:
        wanted["masked"] = boot in MASKED
    if world.acted and wanted.get("running") is False and systemd.listening(world, state):
        del wanted["running"]  # a connection has started it again after the stop, as it did before the node
    state.served = systemd.served(world, state)
    if state.enabled not in MASKED or boot in MASKED:
        return ActionSpec(steps(wanted, state, False))
    # Unmasking restores the former boot state, unless the node also sets `enabled`.
    state.enabled = boot if attrs.get("enabled") is None else "disabled"
    return ActionSpec([systemd.unmask(state.name, state.enabled), *steps(wanted, state, False)])


def remember(node: HostNode, world: World) -> UnitMemory:
    """Record the unit's state."""
    state = systemd.find(world, systemd.unit_name(node.attrs["name"]))
    if state is None:
        return {}
    memory: UnitMemory = {"active": state.active, "enabled": state.enabled}
    if state.alias is not None and node.attrs.get("masked"):
        memory["target"] = state.name
    if systemd.scripts(world):
        memory.update(systemd.scripts(world).remember(world, state.name))
    return memory
