"""The steps that bring a systemd unit to its wanted state, and back to its former one."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.services import sshd, systemd, unit_install, unit_managers
from statecfg.resources.shared import records
from statecfg.resources.shared.paths import nearest

if TYPE_CHECKING:
    from statecfg.resources.services import init_scripts

    class UnitMemory(init_scripts.ScriptMemory, total=False):
        """The memory of a `service`. It is empty if there was no such unit.

        :ivar target: the unit behind an alias
        :ivar also: the units that are enabled together with this one → whether they started at boot
        """

        target: str
        also: dict[str, bool]


MASKED = ("masked", "masked-runtime")


def check(world: World, name: str, attrs: records.Attrs, reload: bool, nodes: Mapping[str, HostNode]) -> list[Action]:
    """Return the steps that bring a unit to the state that a node wants.

    :param reload: whether this run changes the unit's file
    :param nodes: all nodes of the host
    :raises CheckError: if this is not possible
    """
    try:
        state = systemd.find(world, name)  # first: it fails on hosts without systemd
        unit_managers.require(world, name, attrs)
    except Unknown:
        unit_managers.require(world, name, attrs)
        if attrs.get("masked") is False or (attrs.get("running") is None and world.triggered_by):
            raise
        # A required package brings the unit and may start it with a configuration that is outdated by then. Each step
        # achieves its result from any state of the unit.
        return steps(world, attrs, systemd.ServiceState(name, reload=reload), bool(world.triggered_by))
    if state is None:
        return missing(world, name, attrs)
    if attrs.get("running") is False and not attrs.get("masked") and state.enabled not in MASKED:
        unit_install.refuse_started(world, state, nodes)
    state.reload = state.reload or reload
    state.served = systemd.served(world, state)
    return steps(world, attrs, state, bool(world.triggered_by))


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
            raise CheckError(f"{unit_managers.called(name)} is {state.active}")
        return []
    actions: list[Action] = []
    reads = not systemd.scripts(world) and unit_managers.will_run(world, unit_managers.split(name)[0])
    if state.reload or (reads and systemd.file_is_removed(world, name, removed)):
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
        return [unit_install.masked(world, name)]
    if not attrs.get("running") and not attrs.get("enabled"):
        return []
    user, unit = unit_managers.split(name)
    near = nearest(unit, systemd.known_names(world, user))
    text = "unit %s does not exist on this host%s; if a package provides it, require that package"
    raise CheckError(text % (unit_managers.called(name), near))


def steps(world: World, attrs: records.Attrs, state: systemd.ServiceState, triggered: bool) -> list[Action]:
    """Return the steps from a unit's state to the wanted one.

    :param triggered: whether a node in `restart_on` changes
    :raises CheckError: if the unit is masked and the node does not allow to unmask it, or it can't be enabled
    """
    name, active = state.name, state.active
    running, enabled, masked = attrs.get("running"), attrs.get("enabled"), attrs.get("masked")
    was_masked = state.enabled in MASKED
    actions: list[Action] = [systemd.daemon_reload(name)] if state.reload else []
    if was_masked and not masked:
        if masked is False:
            unmasked = unit_install.unmask_runtime(name, True) if state.enabled == MASKED[1] else systemd.unmask(name)
            actions.append(unmasked)
            state.enabled = "disabled"
        elif running or enabled:
            raise CheckError(f"{unit_managers.called(name)} is masked; masked: false unmasks it")
    if enabled is not None and state.enabled not in MASKED and not (masked and enabled is False):
        actions += boot(world, state, enabled)
    if running is False and (active is None or state.up):
        actions.append(systemd.stop(name))
    elif triggered and (state.up or (active is None and running)):
        actions += again(attrs, state)
    elif running and not state.up:
        actions += [*looked_at(name), *around(state.served, systemd.start(name))]
    if masked and (state.enabled != MASKED[0] or state.alias is not None):
        actions.append(unit_install.masked(world, state.alias or name))
    return actions


def boot(world: World, state: systemd.ServiceState, enabled: bool) -> list[Action]:
    """Return the steps after which a unit starts at boot, or does not.

    :raises CheckError: if it can't be enabled or disabled
    """
    name = state.name
    now = unit_install.require(world, state, enabled)
    if now is None:  # it is not there yet
        return [systemd.enable(name, True) if enabled else systemd.disable(name, True)]
    others = unit_install.also(world, state, enabled) if now == "indirect" or (now == "enabled") is not enabled else []
    if now == "indirect" and not others and unit_install.read(world, name) is not None:
        return []
    if enabled and now != "enabled":
        return [unit_install.enable_also(name, others, now == "indirect") if others else systemd.enable(name)]
    if not enabled and now == "enabled-runtime":
        return [unit_install.disable_runtime(name, True)]
    if not enabled and now in ("enabled", "indirect"):
        return [unit_install.disable_also(name, others, now == "indirect") if others else systemd.disable(name)]
    return []


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
    attrs, name = node.attrs, systemd.full_name(node.attrs)
    state = systemd.find(world, name)
    if state is None:
        return ActionSpec()
    if systemd.scripts(world) and "/" not in name:
        spec: ActionSpec = systemd.scripts(world).undo(attrs, memory, world, state, functools.partial(steps, world))
        return spec
    if not memory:  # a unit that did not exist could still be masked
        masks = attrs.get("masked") and state.enabled in MASKED
        return ActionSpec([systemd.unmask_nothing(name)] if masks else [])
    if "target" in memory and state.enabled in MASKED and state.alias is None:
        return ActionSpec([systemd.unmask_alias(name, memory["target"])])
    boot = memory["enabled"]
    if state.enabled in MASKED and boot not in MASKED and not attrs.get("masked"):
        return ActionSpec(left=[f"{unit_managers.called(name)} is now masked: it stays as it is"])
    wanted: dict[str, bool] = {}
    if attrs.get("running") is not None:
        wanted["running"] = memory["active"] in systemd.UP
    if attrs.get("masked") is not None and boot != MASKED[1]:
        wanted["masked"] = boot in MASKED
    if world.acted and wanted.get("running") is False and systemd.listening(world, state):
        del wanted["running"]  # a connection has started it again after the stop, as it did before the node
    state.served = systemd.served(world, state)
    actions: list[Action] = []
    if state.enabled in MASKED and boot not in MASKED:
        # Unmasking restores the former boot state, unless the node also sets `enabled`.
        known = attrs.get("enabled") is not None and boot in ("disabled", *unit_install.ON)
        state.enabled = "disabled" if known else boot
        actions.append(systemd.unmask(state.name, state.enabled))
    elif boot == MASKED[1] and attrs.get("masked") is not None and state.enabled != boot:
        actions += [systemd.unmask(state.name)] if state.enabled == MASKED[0] else []
        actions.append(unit_install.mask_runtime(state.name, True))
    if attrs.get("enabled") is not None:
        actions += _boot_again(world, state, memory)
    return ActionSpec([*actions, *steps(world, wanted, state, False)])


def _boot_again(world: World, state: systemd.ServiceState, memory: UnitMemory) -> list[Action]:
    """Return the steps after which a unit, and those that are enabled with it, start at boot as before the node."""
    name, was, now = state.name, memory["enabled"], state.enabled
    on = unit_install.ON
    actions: list[Action] = []
    if was == "enabled" and now in ("disabled", "enabled-runtime"):
        actions = [systemd.enable(name)]
    elif was == "enabled-runtime" and now in ("disabled", "enabled"):
        actions = [*([systemd.disable(name)] if now == "enabled" else []), unit_install.enable_runtime(name, True)]
    elif was in ("disabled", *MASKED) and now in on:
        actions = [systemd.disable(name) if now == "enabled" else unit_install.disable_runtime(name, True)]
    ended = any(action.op == "disable" for action in actions)  # this also disables the other units
    began = any(action.op == "enable" for action in actions)
    for other, started in sorted((memory.get("also") or {}).items()):
        there = systemd.find(world, other)
        if there is not None and there.enabled in (*on, "disabled"):
            starts = not ended and (began or there.enabled in on)
            if starts is not started:
                actions.append(systemd.enable(other) if started else systemd.disable(other))
    return actions


def remember(node: HostNode, world: World) -> UnitMemory:
    """Record the unit's state."""
    state = systemd.find(world, systemd.full_name(node.attrs))
    if state is None:
        return {}
    memory: UnitMemory = {"active": state.active, "enabled": state.enabled}
    if state.alias is not None and node.attrs.get("masked"):
        memory["target"] = state.name
    if systemd.scripts(world) and "/" not in state.name:
        memory.update(systemd.scripts(world).remember(world, state.name))
    elif node.attrs.get("enabled") is not None:
        others = unit_install.companions(world, state)
        if others:
            memory["also"] = others
    return memory
