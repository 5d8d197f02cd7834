"""Services and all other kinds of systemd units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from statecfg import Action, CheckError, HostNode, Name, NodeOptions, Pause, Unknown, World, node_type
from statecfg.resources.shared import systemd, unit_health, unit_steps


@node_type
def service(
    name: Name,
    *,
    running: bool | None = None,
    enabled: bool | None = None,
    masked: bool | None = None,
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
def claims(attrs: dict[str, Any]) -> list[str]:
    """Claim the unit by its full name."""
    return ["unit:" + systemd.unit_name(attrs["name"])]


@service.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse a masked unit that should run or start at boot."""
    for name in ("running", "enabled"):
        if attrs.get("masked") and attrs.get(name):
            raise ValueError("a masked unit can't be %s" % name)


@service.check
def check(
    node: HostNode, nodes: Mapping[str, HostNode], actions: list[Mapping[str, Any]], world: World
) -> list[Action]:
    """Compare the state of the unit with the wanted one."""
    name = systemd.unit_name(node.attrs["name"])
    systemd.require_file(name, node, nodes)
    reload = not world.acted and _file_changes(name, node, nodes, actions, world)
    try:
        state = systemd.find(world, name)
    except Unknown:
        if node.attrs.get("masked") is False or (node.attrs.get("running") is None and world.triggered_by):
            raise
        # A required package brings the unit and may start it with a configuration that is outdated by then. Each step
        # achieves its result from any state of the unit.
        return unit_steps.steps(node.attrs, {"name": name, "reload": reload}, bool(world.triggered_by))
    if state is None:
        return unit_steps.missing(node, world, name)
    if world.acted and node.attrs.get("running") is False and state["active"] in systemd.UP:
        sockets = systemd.listening(world, state)
        if sockets:
            text = "%s started it again: give %s a node with running: false, too"
            raise CheckError(text % (sockets[0], sockets[0]))
    state = dict(state, reload=reload or state.get("reload"), served=systemd.served(world, state))
    return unit_steps.steps(node.attrs, state, bool(world.triggered_by))


def _file_changes(
    name: str, node: HostNode, nodes: Mapping[str, HostNode], actions: list[Mapping[str, Any]], world: World
) -> bool:
    """Return whether this run changes the unit's own files, by a required node or by a removed one."""
    if systemd.file_changes(name, node, nodes, actions):
        return True
    try:
        gone = set(world.triggered_by).difference(node.triggers)
    except Unknown:
        return False
    return systemd.file_goes(name, (nodes[cause] for cause in gone if cause in nodes))


@service.on_removal
def on_removal(node: HostNode, near: Mapping[str, HostNode], world: World) -> list[Action]:
    """Restart or reload a unit that stays when a node in its `restart_on` is removed."""
    name = systemd.unit_name(node.attrs["name"])
    if systemd.goes(world, name):
        return []
    state = systemd.find(world, name)
    if state is None:
        return []
    if world.acted:
        if state["active"] == "failed":
            raise CheckError("%s is %s" % (name, state["active"]))
        return []
    reload = state.get("reload") or systemd.file_goes(name, near.values())
    actions: list[Action] = [systemd.daemon_reload(state["name"])] if reload else []
    if state["active"] in unit_steps.UP and world.triggered_by:
        actions += unit_steps.again(state["name"], node.attrs, dict(state, served=systemd.served(world, state)))
    return actions


@service.lasting
def lasting(node: HostNode, ops: Sequence[str]) -> Any:
    """Check a started unit again later, because some end after a second."""
    seconds = node.attrs.get("stable_for")
    seconds = 3.0 if seconds is None else seconds
    if not {"start", "restart", "reload"}.intersection(ops):
        return None
    name, wanted = systemd.unit_name(node.attrs["name"]), bool(node.attrs.get("running"))
    return seconds, lambda world, since: unit_health.died(world, name, since, wanted)


service.remember(unit_steps.remember)


service.undo(unit_steps.undo)
