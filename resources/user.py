"""Users of the host."""

from __future__ import annotations

from statecfg.remote.graph.model import ActionSpec, CheckError
from statecfg.remote.graph.nodetype import node_type
from statecfg.resources import _users
from statecfg.resources._paths import account, refuse_with_absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, Node
    from statecfg.remote.graph.values import AbsolutePath, GroupName, Id, Line, NodeOptions, UserName
    from statecfg.remote.machine.world import World

BREAKING = frozenset(":\r\n")  # what ends a field or an entry of passwd(5) and shadow(5)
SHORTEST = 4  # characters of a hash; what is shorter ("!", "*") stands for no password and is no secret


@node_type
def user(
    name: UserName,
    *,
    uid: Optional[Id] = None,
    group: Optional[GroupName] = None,
    groups: Optional[List[GroupName]] = None,
    exact_groups: bool = False,
    home: Optional[AbsolutePath] = None,
    shell: Optional[AbsolutePath] = None,
    comment: Optional[Line] = None,
    create_home: Optional[bool] = None,
    system: bool = False,
    password_hash: Optional[Line] = None,
    absent: bool = False,
    remove_home: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a local user of the host (not one from a directory service). Attributes that you omit stay as they are.

    Undo: statecfg removes a user that did not exist before; the home directory stays unless you set `remove_home`. For
    a user that existed before, it restores the attributes that the node sets. statecfg does not store passwords: a
    changed password stays changed, and a restored user has a locked password.

    :param name: the name of the user
    :param uid: the UID; by default, the host chooses one
    :param group: the primary group; by default, a new user gets a group with the user's name
    :param groups: additional groups of the user
    :param exact_groups: remove the user from all other groups
    :param home: the home directory; an existing home directory is not moved
    :param shell: the login shell
    :param comment: the full name, as in ``/etc/passwd``
    :param create_home: create the home directory; by default, for new users that are not system users
    :param system: a new user gets a UID from the system range and no home directory
    :param password_hash: the password, hashed by crypt(3); with ``"!"``, no password is valid. statecfg passes it to
        the host's own tool through standard input, never as an argument
    :param absent: the user must not exist
    :param remove_home: remove the home directory together with the user; if the home directory existed before the user,
        only with `absent`

    In YAML::

        - user: deploy
          groups: [www-data]
          shell: /bin/bash

    In Python::

        user("deploy", uid=2000, password_hash=secret("deploy-password", env="DEPLOY_PASSWORD"))
    """


@user.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse attributes that contradict each other or do nothing together."""
    refuse_with_absent(attrs, ("name", "absent", "remove_home"))
    if attrs.get("exact_groups") and attrs.get("groups") is None:
        raise ValueError("exact_groups needs groups; an empty list for none")
    for field in ("password_hash", "comment", "home", "shell"):
        value = attrs.get(field)
        if isinstance(value, str) and set(value) & BREAKING:
            raise ValueError("%s has a colon or line break, which would end the field in the host's files" % field)
    if attrs["name"] == "root" and (attrs.get("absent") or attrs.get("uid")):
        raise ValueError("root can neither go nor get another number")


@user.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Let no report show the hash: whoever has it can try passwords at leisure."""
    password = node.attrs.get("password_hash")
    if not isinstance(password, str) or len(password) < SHORTEST:
        return node
    return node.with_attrs(password_hash=context.secret("password-of-" + node.attrs["name"], password))


@user.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Compare what the host knows of the user with what is wanted."""
    attrs = node.attrs
    name = attrs["name"]
    entry = world.entry("users", name)
    if attrs.get("absent"):
        return _users.removal(world, name, entry, bool(attrs.get("remove_home")))
    for each in [attrs.get("group"), *(attrs.get("groups") or ())]:
        account(world, "groups", each, node, nodes)
    actions = [creation(world, attrs)] if entry is None else changes(world, attrs, entry)
    wanted = attrs.get("password_hash")
    if wanted is not None and set(wanted) & BREAKING:  # a secret is seen here for the first time
        raise CheckError("password_hash has a colon or line break: give the hash alone")
    if wanted is not None and (world.entry("passwords", name) or {}).get("hash") != _users.fingerprint(wanted):
        actions.append(_users.set_password(name, wanted))
    return actions


def creation(world: World, attrs: Dict[str, Any]) -> Action:
    """Return what makes the user, in one step."""
    name, uid = attrs["name"], attrs.get("uid")
    if uid is not None:
        taken = [other for other, fields in world.table("users").items() if fields.get("uid") == uid]
        if taken:
            raise CheckError("the number %d is taken by user %s" % (uid, taken[0]))
    group = attrs.get("group") or (name if world.entry("groups", name) is not None else None)
    known = world.entry("groups", group) if group is not None else None
    create_home = attrs.get("create_home")
    return _users.useradd(
        name,
        uid=uid,
        group=group,
        groups=sorted(attrs.get("groups") or ()),
        home=attrs.get("home"),
        shell=attrs.get("shell"),
        comment=attrs.get("comment"),
        system=bool(attrs.get("system")),
        create_home=create_home if create_home is not None else not attrs.get("system"),
        gid=(known or {}).get("gid"),
    )


def changes(world: World, attrs: Dict[str, Any], entry: Dict[str, Any]) -> List[Action]:
    """Return what brings a user that is there to what is wanted."""
    changed = {field: attrs[field] for field in ("uid", "home", "shell", "comment") if attrs.get(field) is not None}
    changed = {field: value for field, value in changed.items() if value != entry.get(field)}
    group, groups = attrs.get("group"), attrs.get("groups")
    gid = (world.entry("groups", group) or {}).get("gid") if group is not None else None
    if group is not None and (gid is None or gid != entry.get("gid")):
        changed["group"] = group
    actions: List[Action] = []
    if groups is not None:
        has = set(entry.get("groups") or ())
        wanted = set(groups) if attrs.get("exact_groups") else has | set(groups)
        if wanted != has:
            changed["groups"] = sorted(wanted)
    if changed:
        actions.append(_users.usermod(attrs["name"], changed, gid))
    home = attrs.get("home") or entry.get("home")
    if attrs.get("create_home") and home and world.apparent(home) is None:
        actions.append(_users.make_home(attrs["name"], home))
    return actions


user.remember(_users.remember)


@user.undo
def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Take a new user away; bring back an old one, or what was changed of it."""
    attrs = node.attrs
    if memory["entry"] is None:
        if attrs.get("absent"):
            return ActionSpec()
        return _users.newcomer_undone(world, attrs["name"], memory, bool(attrs.get("remove_home"))).spec()
    if attrs.get("absent"):
        return _users.brought_back(world, attrs["name"], memory).spec()
    return _users.changes_undone(world, attrs, memory).spec()
