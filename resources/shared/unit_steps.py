"""The steps that bring a unit of systemd to its wanted state, and back to its former one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Node
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sshd, systemd
from statecfg.resources.shared.paths import nearest

UP = systemd.UP


# Units that other units start or that are created at boot. Enabling them has no meaning.
STARTED_ANYWAY = ("enabled", "static", "generated", "transient", "alias", "indirect")


NOT_STARTED = ("disabled", "static", "indirect", "masked", "masked-runtime", "transient", "generated", "")


MASKED = ("masked", "masked-runtime")


def missing(node: Node, world: World, name: str) -> list[Action]:
    """Return the actions for a unit that does not exist: none, unless the node masks it.

    :raises CheckError: if the node wants it to run or to start at boot
    """
    attrs = node.attrs
    if attrs.get("masked"):
        return [systemd.mask(name)]
    if not attrs.get("running") and not attrs.get("enabled"):
        return []
    near = nearest(name, systemd.known_names(world))
    raise CheckError("there is no unit %s on this host%s; does a package bring it? Then require it" % (name, near))


def steps(attrs: Mapping[str, Any], state: dict[str, Any], triggered: bool) -> list[Action]:
    """Return the steps from a unit's state to the wanted one.

    :param state: `name`, `active` and `enabled` (missing: unknown), and optionally `reload`, `served` and `alias`
    :param triggered: whether a node in `restart_on` changes
    :raises CheckError: if the unit is masked and the node does not allow to unmask it
    """
    name, active, boot = state["name"], state.get("active"), state.get("enabled")
    running, enabled, masked = attrs.get("running"), attrs.get("enabled"), attrs.get("masked")
    actions: list[Action] = [systemd.daemon_reload(name)] if state.get("reload") else []
    if boot in MASKED and not masked:
        if masked is False:
            actions.append(systemd.unmask(name))
            boot = None
        elif running or enabled:
            raise CheckError("%s is masked; masked: false lets it be started again" % name)
    if enabled is True and boot not in STARTED_ANYWAY:
        actions.append(systemd.enable(name))
    elif enabled is False and boot not in NOT_STARTED:
        actions.append(systemd.disable(name))
    if running is False and (active is None or active in UP):
        actions.append(systemd.stop(name))
    elif triggered and (active in UP or (active is None and running)):
        actions += again(name, attrs, state)
    elif running and active not in UP:
        actions += [*looked_at(name), *around(state.get("served") or (), systemd.start(name))]
    if masked and (boot not in MASKED or "alias" in state):
        actions.append(systemd.mask(state.get("alias", name)))
    return actions


def again(name: str, attrs: Mapping[str, Any], state: Mapping[str, Any]) -> list[Action]:
    """Return the steps that make a unit use changed settings: a reload or a restart."""
    if attrs.get("on_change") == "reload" and state.get("active") is not None:
        return [*looked_at(name), systemd.reload(name)]
    return [*looked_at(name), *around(state.get("served") or (), systemd.restart(name))]


def looked_at(name: str) -> list[Action]:
    """Return what to check before a unit reads its settings again."""
    return [sshd.check_config(name)] if sshd.guarded(name) else []


def around(services: Sequence[str], action: Action) -> list[Action]:
    """Return an action on a socket between the stop and the start of its services, because systemd requires it."""
    return [*map(systemd.stop, services), action, *map(systemd.start, services)]


def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Restore the unit's state, as far as the node sets it."""
    attrs, name = node.attrs, systemd.unit_name(node.attrs["name"])
    state = systemd.find(world, name)
    if state is None:
        return ActionSpec()
    if not memory:  # a unit that did not exist could still be masked
        masks = attrs.get("masked") and state["enabled"] in MASKED
        return ActionSpec([systemd.unmask_nothing(name)] if masks else [])
    if "target" in memory and state["enabled"] in MASKED and "alias" not in state:
        return ActionSpec([systemd.unmask_alias(name, memory["target"])])
    boot = memory["enabled"]
    if state["enabled"] in MASKED and boot not in MASKED and not attrs.get("masked"):
        return ActionSpec(left=["%s is masked by now: it stays as it is" % name])
    wanted: dict[str, Any] = {}
    if attrs.get("running") is not None:
        wanted["running"] = memory["active"] in UP
    if attrs.get("enabled") is not None and boot in ("enabled", "disabled", *MASKED):
        wanted["enabled"] = boot == "enabled"
    if attrs.get("masked") is not None:
        wanted["masked"] = boot in MASKED
    if world.acted and wanted.get("running") is False and systemd.listening(world, state):
        del wanted["running"]  # a connection has started it again after the stop, as it did before the node
    state["served"] = systemd.served(world, state)
    if state["enabled"] not in MASKED or boot in MASKED:
        return ActionSpec(steps(wanted, state, False))
    # Unmasking restores the former boot state, unless the node also sets `enabled`.
    state["enabled"] = boot if attrs.get("enabled") is None else "disabled"
    return ActionSpec([systemd.unmask(state["name"], state["enabled"]), *steps(wanted, state, False)])


def remember(node: Node, world: World) -> dict[str, Any]:
    """Record the unit's state."""
    state = systemd.find(world, systemd.unit_name(node.attrs["name"]))
    if state is None:
        return {}
    memory = {"active": state["active"], "enabled": state["enabled"]}
    return dict(memory, target=state["name"]) if "alias" in state and node.attrs.get("masked") else memory
