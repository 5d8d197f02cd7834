"""Services and all other kinds of systemd units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from statecfg import Action, Attrs, HostNode, Name, NodeOptions, Pause, UserName, World, node_type
from statecfg.resources.services import systemd, unit_health, unit_managers, unit_steps
from statecfg.resources.shared import drop_in_texts, paths

UNITS = "/etc/systemd/system/"
TARGETS = ("multi-user", "graphical", "network-online", "timers", "sockets")
USER_TARGETS = ("default", "graphical-session", "timers", "sockets")


@node_type
def service(
    name: Name,
    *,
    running: bool | None = None,
    enabled: bool | None = None,
    masked: bool | None = None,
    user: UserName | None = None,
    all_users: bool = False,
    on_change: Literal["restart", "reload"] = "restart",
    stable_for: Pause = 3.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a service: whether it runs, and whether it starts at boot. It is a systemd unit.

    On hosts without systemd, it is a service of OpenRC or an init script of System V. Its script must know the action
    `status`. The check that a new login works after a restart of sshd needs systemd.

    If you omit an attribute, that part of the unit stays as it is. A running unit is restarted when a node in
    `restart_on` changes. If its unit file or a drop-in changes, systemd reads it first. Before a socket starts, its
    services are stopped, because systemd requires this; those that ran are started again. To get rid of a service, set
    ``running: false``, and ``enabled: false`` if its file has a section ``Install``.

    Undo: statecfg restores whether the unit runs, starts at boot and is masked, as far as the node sets these. If the
    unit no longer exists, there is nothing to undo. A unit that stays is restarted when a node in its `restart_on` is
    removed.

    :param name: the name of the unit; without a suffix such as ``.timer``, it is a service
    :param running: true: the unit must run; false: it must be stopped, and no running socket, timer or path may start
        it again: stop that unit with its own node, or mask this one
    :param enabled: true: the unit must start at boot; false: it must not. For a unit that only names others in
        ``Also=``, this concerns these others. A unit without a section ``Install`` and one that a generator makes, such
        as from a quadlet, can't be enabled or disabled
    :param masked: only with systemd: true prevents every start of the unit, false allows it again; if a package
        provides the name as an alias, such as `ctrl-alt-del.target`, only the alias is masked
    :param user: the unit belongs to this user: the user's own systemd runs it, from ``~/.config/systemd/user`` or
        ``/usr/lib/systemd/user``. If it must run, the user must linger (``linger: true`` of `user`) or be logged in.
        Without lingering, an enabled unit starts when the user logs in. Nodes for units of the same name need different
        names: set `provides`
    :param all_users: with `enabled` or `masked`: the unit starts, or can't start, for each user who logs in or lingers,
        from the next time when the user's own systemd starts
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


service.manners = ("on_change", "stable_for")


@service.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the unit by its full name, with its user."""
    return ["unit:" + systemd.full_name(attrs)]


@service.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the links that systemctl makes: those of common targets, and the mask."""
    user, unit = unit_managers.split(systemd.full_name(attrs))
    place = unit_managers.owned_place(user) if user else UNITS
    targets = (USER_TARGETS if user else TARGETS) if attrs.get("enabled") else ()
    found = [f"part:path:{place}{target}.target.wants/{unit}" for target in targets]
    return [*found, f"part:path:{place}{unit}"] if attrs.get("masked") else found


@service.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the unit, which a package or a file provides, and its user."""
    user = attrs.get("user")
    return ["unit:" + systemd.full_name(attrs), *([f"user:{user}"] if user else [])]


@service.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a name that systemd does not allow, and a masked unit that should run or start at boot."""
    drop_in_texts.check_unit_name(systemd.unit_name(attrs["name"]))
    if attrs.get("running") and "@." in systemd.unit_name(attrs["name"]):
        raise ValueError(f"{attrs['name']} is a template, which can't run: name an instance of it")
    if attrs.get("all_users") and attrs.get("user"):
        raise ValueError("either user or all_users: all_users is about the systemd of every user")
    if attrs.get("all_users") and attrs.get("running") is not None:
        raise ValueError("all_users only says what starts; to start or stop the unit of a user, set user")
    for name in ("running", "enabled"):
        if attrs.get("masked") and attrs.get(name):
            raise ValueError(f"a masked unit can't be {name}")


@service.check
def check(
    node: HostNode, nodes: Mapping[str, HostNode], actions: list[Mapping[str, Any]], world: World
) -> list[Action]:
    """Compare the state of the unit with the wanted one."""
    name = systemd.full_name(node.attrs)
    paths.account(world, "users", node.attrs.get("user"), node, nodes)
    systemd.require_file(world, name, node, nodes)
    reload = not world.acted and systemd.file_changes(world, name, node, nodes, actions)
    return unit_steps.check(world, name, node.attrs, reload, nodes)


@service.on_removal
def on_removal(node: HostNode, near: Mapping[str, HostNode], world: World) -> list[Action]:
    """Restart or reload a unit that stays when a node in its `restart_on` is removed."""
    return unit_steps.after_removal(world, systemd.full_name(node.attrs), node.attrs, near.values())


@service.lasting
def lasting(node: HostNode, done: Sequence[Mapping[str, Any]]) -> Any:
    """Check started units again later, because some end after a second.

    These are the unit itself and the services of a socket, which are stopped and started around it.
    """
    started = [action["args"]["unit"] for action in done if action["op"] in ("start", "restart", "reload")]
    if not started:
        return None
    seconds, wanted = node.attrs.get("stable_for"), bool(node.attrs.get("running"))

    def died(world: World, since: float) -> str:
        health = unit_health if node.attrs.get("user") else systemd.scripts(world) or unit_health
        return next(filter(None, (health.died(world, unit, since, wanted) for unit in started)), "")

    return 3.0 if seconds is None else seconds, died


service.remember(unit_steps.remember)
service.undo(unit_steps.undo)
