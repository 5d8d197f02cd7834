"""Services and all other kinds of systemd units."""

from __future__ import annotations

from statecfg.remote.graph.model import ActionSpec, CheckError, Unknown
from statecfg.remote.graph.nodetype import node_type
from statecfg.resources import _lasting, _sshd, _systemd
from statecfg.resources._paths import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, Node
    from statecfg.remote.graph.values import Name, NodeOptions, Pause
    from statecfg.remote.machine.world import World

UP = _systemd.UP
# Units that are started by others or made at boot, and for which enabling has no meaning.
STARTED_ANYWAY = ("enabled", "static", "generated", "transient", "alias", "indirect")
NOT_STARTED = ("disabled", "static", "indirect", "masked", "masked-runtime", "transient", "generated", "")
MASKED = ("masked", "masked-runtime")


@node_type
def service(
    name: Name,
    *,
    running: Optional[bool] = None,
    enabled: Optional[bool] = None,
    masked: Optional[bool] = None,
    on_change: Literal["restart", "reload"] = "restart",
    stable_for: Pause = 3.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a systemd unit: whether it runs, and whether it starts at boot.

    If you omit an attribute, that part of the unit stays as it is. A running unit is restarted when a node in
    `restart_on` changes. If its unit file or a drop-in changes, systemd reads it first. Before a socket starts, its
    services are stopped, because systemd requires this; those that ran are started again. To get rid of a service, set
    ``running: false`` and ``enabled: false``.

    Undo: statecfg restores whether the unit runs, starts at boot and is masked, as far as the node sets these. If the
    unit no longer exists, there is nothing to undo. A unit that stays is restarted when a node in its `restart_on` is
    removed.

    :param name: the name of the unit; without a suffix such as ``.timer``, it is a service
    :param running: true: the unit must run; false: it must be stopped
    :param enabled: true: the unit must start at boot; false: it must not
    :param masked: true prevents every start of the unit, false allows it again; if a package provides the name as an
        alias, such as `ctrl-alt-del.target`, only the alias is masked
    :param on_change: what to do when a node in `restart_on` changes: ``restart``, or ``reload`` (a unit that cannot
        reload is restarted)
    :param stable_for: seconds that the unit must keep running after its start. statecfg checks this at the end of the
        run, and the node fails if the unit has ended by then. 0 disables the check

    In YAML::

        - service: nginx
          running: true
          enabled: true
          restart_on: [file:/etc/nginx/nginx.conf]

    In Python::

        service("apt-daily.timer", running=False, enabled=False)
    """


@service.claims
def claims(attrs: Dict[str, Any]) -> List[str]:
    """Claim the unit by its whole name."""
    return ["unit:" + _systemd.unit_name(attrs["name"])]


@service.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse a masked unit that is to run or to be started at boot."""
    for name in ("running", "enabled"):
        if attrs.get("masked") and attrs.get(name):
            raise ValueError("a masked unit can't be %s" % name)


@service.check
def check(node: Node, nodes: Mapping[str, Node], actions: List[Mapping[str, Any]], world: World) -> List[Action]:
    """Compare how the unit stands with what is wanted."""
    name = _systemd.unit_name(node.attrs["name"])
    _systemd.require_file(name, node, nodes)
    reload = not world.acted and _file_changes(name, node, nodes, actions, world)
    try:
        state = _systemd.find(world, name)
    except Unknown:
        if node.attrs.get("masked") is False or (node.attrs.get("running") is None and world.triggered_by):
            raise
        # A required package brings it, and may start it with a configuration that is old by then. Each step makes
        # sure of its end, wherever the unit stands when its turn comes.
        return steps(node.attrs, {"name": name, "reload": reload}, bool(world.triggered_by))
    if state is None:
        return missing(node, world, name)
    if world.acted and node.attrs.get("running") is False and state["active"] in UP:
        sockets = _systemd.listening(world, state)
        if sockets:
            text = "%s started it again: give %s a node with running: false, too"
            raise CheckError(text % (sockets[0], sockets[0]))
    state = dict(state, reload=reload or state.get("reload"), served=_systemd.served(world, state))
    return steps(node.attrs, state, bool(world.triggered_by))


def _file_changes(
    name: str, node: Node, nodes: Mapping[str, Node], actions: List[Mapping[str, Any]], world: World
) -> bool:
    """Return whether this run changes the unit's own files, by a node that it requires or by one that goes."""
    if _systemd.file_changes(name, node, nodes, actions):
        return True
    try:
        gone = set(world.triggered_by).difference(node.triggers)
    except Unknown:
        return False
    return _systemd.file_goes(name, (nodes[cause] for cause in gone if cause in nodes))


def missing(node: Node, world: World, name: str) -> List[Action]:
    """Return what to do where there is no such unit: nothing where none is wanted. Raises CheckError else."""
    attrs = node.attrs
    if attrs.get("masked"):
        return [_systemd.mask(name)]
    if not attrs.get("running") and not attrs.get("enabled"):
        return []
    near = nearest(name, _systemd.known_names(world))
    raise CheckError("there is no unit %s on this host%s; does a package bring it? Then require it" % (name, near))


def steps(attrs: Mapping[str, Any], state: Dict[str, Any], triggered: bool) -> List[Action]:
    """Return the steps from how a unit stands (`active`, `enabled`; missing: not known) to what is wanted."""
    name, active, boot = state["name"], state.get("active"), state.get("enabled")
    running, enabled, masked = attrs.get("running"), attrs.get("enabled"), attrs.get("masked")
    actions: List[Action] = [_systemd.daemon_reload(name)] if state.get("reload") else []
    if boot in MASKED and not masked:
        if masked is False:
            actions.append(_systemd.unmask(name))
            boot = None
        elif running or enabled:
            raise CheckError("%s is masked; masked: false lets it be started again" % name)
    if enabled is True and boot not in STARTED_ANYWAY:
        actions.append(_systemd.enable(name))
    elif enabled is False and boot not in NOT_STARTED:
        actions.append(_systemd.disable(name))
    if running is False and (active is None or active in UP):
        actions.append(_systemd.stop(name))
    elif triggered and (active in UP or (active is None and running)):
        actions += _again(name, attrs, state)
    elif running and active not in UP:
        actions += [*_looked_at(name), *_around(state.get("served") or (), _systemd.start(name))]
    if masked and (boot not in MASKED or "alias" in state):
        actions.append(_systemd.mask(state.get("alias", name)))
    return actions


def _again(name: str, attrs: Mapping[str, Any], state: Mapping[str, Any]) -> List[Action]:
    """Return the steps that let a unit take on changed settings."""
    if attrs.get("on_change") == "reload" and state.get("active") is not None:
        return [*_looked_at(name), _systemd.reload(name)]
    return [*_looked_at(name), *_around(state.get("served") or (), _systemd.restart(name))]


def _looked_at(name: str) -> List[Action]:
    """Return what comes before a unit reads its settings again."""
    return [_sshd.check_config(name)] if _sshd.guarded(name) else []


def _around(services: Sequence[str], action: Action) -> List[Action]:
    """Return an action on a socket, with its services stopped meanwhile: systemd would refuse it."""
    return [*map(_systemd.stop, services), action, *map(_systemd.start, services)]


@service.on_removal
def on_removal(node: Node, near: Mapping[str, Node], world: World) -> List[Action]:
    """Restart or reload a unit that stays while something goes that its `restart_on` named."""
    name = _systemd.unit_name(node.attrs["name"])
    if _systemd.goes(world, name):
        return []
    state = _systemd.find(world, name)
    if state is None:
        return []
    if world.acted:
        if state["active"] == "failed":
            raise CheckError("%s is %s" % (name, state["active"]))
        return []
    reload = state.get("reload") or _systemd.file_goes(name, near.values())
    actions: List[Action] = [_systemd.daemon_reload(state["name"])] if reload else []
    if state["active"] in UP and world.triggered_by:
        actions += _again(state["name"], node.attrs, dict(state, served=_systemd.served(world, state)))
    return actions


@service.lasting
def lasting(node: Node, ops: Sequence[str]) -> Any:
    """Look again at a unit that was started, as some die a second later."""
    seconds = node.attrs.get("stable_for")
    seconds = 3.0 if seconds is None else seconds
    if not {"start", "restart", "reload"}.intersection(ops):
        return None
    name, wanted = _systemd.unit_name(node.attrs["name"]), bool(node.attrs.get("running"))
    return seconds, lambda world, since: _lasting.died(world, name, since, wanted)


@service.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down how the unit stands."""
    state = _systemd.find(world, _systemd.unit_name(node.attrs["name"]))
    if state is None:
        return {}
    memory = {"active": state["active"], "enabled": state["enabled"]}
    return dict(memory, target=state["name"]) if "alias" in state and node.attrs.get("masked") else memory


@service.undo
def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Bring back how the unit stood, as far as the node was given it."""
    attrs, name = node.attrs, _systemd.unit_name(node.attrs["name"])
    state = _systemd.find(world, name)
    if state is None:
        return ActionSpec()
    if not memory:  # a unit that did not exist could still be masked
        masks = attrs.get("masked") and state["enabled"] in MASKED
        return ActionSpec([_systemd.unmask_nothing(name)] if masks else [])
    if "target" in memory and state["enabled"] in MASKED and "alias" not in state:
        return ActionSpec([_systemd.unmask_alias(name, memory["target"])])
    boot = memory["enabled"]
    if state["enabled"] in MASKED and boot not in MASKED and not attrs.get("masked"):
        return ActionSpec(left=["%s is masked by now: it stays as it is" % name])
    wanted: Dict[str, Any] = {}
    if attrs.get("running") is not None:
        wanted["running"] = memory["active"] in UP
    if attrs.get("enabled") is not None and boot in ("enabled", "disabled", *MASKED):
        wanted["enabled"] = boot == "enabled"
    if attrs.get("masked") is not None:
        wanted["masked"] = boot in MASKED
    if world.acted and wanted.get("running") is False and _systemd.listening(world, state):
        del wanted["running"]  # a connection has started it again since it was stopped, as before the node came
    state["served"] = _systemd.served(world, state)
    if state["enabled"] not in MASKED or boot in MASKED:
        return ActionSpec(steps(wanted, state, False))
    # Under the mask the unit is started at boot as ever, unless the node had a say in that, too.
    state["enabled"] = boot if attrs.get("enabled") is None else "disabled"
    return ActionSpec([_systemd.unmask(state["name"], state["enabled"]), *steps(wanted, state, False)])
