"""Functions that the node types for files, directories and links share: inspect a path, set its mode and owner."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence

from statecfg.remote.graph.model import Action, Blob, CheckError, HostNode, Unknown, required
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import access
from statecfg.remote.machine.accounts import user_name
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import records

FILE_TYPES = {"file": "a file", "directory": "a directory", "symlink": "a link", "other": "neither file nor directory"}
LINKS = 40  # the limit of Linux, which then fails with ELOOP


@op
def chmod(machine: Machine, path: str, mode: int) -> Result:
    """Set the permission bits."""
    return machine.chmod(path, mode)


@op
def chown(machine: Machine, path: str, owner: str | None, group: str | None) -> Result:
    """Set the owner and the group."""
    return machine.chown(path, owner, group)


@op
def remove(machine: Machine, path: str, recursive: bool = False) -> Result:
    """Remove the file, link or directory at a path."""
    return machine.remove(path, recursive)


def mode_bits(mode: str | int | None, stat: Stat | None = None, directory: bool = False) -> int | None:
    """Return a mode as a number; it is given as an octal string, as a symbolic mode, as a number, or as None.

    :param stat: the path that gets the mode; None if it is new
    :param directory: whether it is a directory
    """
    if isinstance(mode, str) and not mode.isdigit():
        from statecfg.remote.graph import symbolic_modes  # only hosts with such modes get it

        return symbolic_modes.of(mode, stat, directory)
    return int(mode, 8) if isinstance(mode, str) else mode


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean …?" with the names that are similar, or "" if none is."""
    from statecfg.remote.graph.suggestions import did_you_mean  # only if a node fails

    help = did_you_mean(name, names)
    return f"; {help}" if help else ""


def account(world: World, facet: str, name: str | None, node: HostNode, nodes: Mapping[str, HostNode]) -> str | None:
    """Return the name that the host shows for a user or group, which is given by name or number.

    If a required node may still create the account, return the given name.

    :param facet: `users` or `groups`
    :raises CheckError: if the account does not exist, or if a node creates it that this node does not require (then the
        order of the two would be accidental)
    """
    if name is None:
        return None
    field, node_type = ("uid", "user") if facet == "users" else ("gid", "group")
    maker = nodes.get(f"{node_type}:{name}")
    if maker is not None and not maker.attrs.get("absent") and maker.provides not in required(node, nodes):
        raise CheckError(f"{maker.provides} creates the {node_type} {name}: add it to requires")
    try:
        if name.isdigit():
            return next((key for key, entry in world.facet(facet).items() if entry.get(field) == int(name)), name)
        if world.entry(facet, name) is None:
            near = nearest(name, world.facet(facet))
            raise CheckError(f"{node_type} {name} does not exist on this host{near}; declare it and require it")
    except Unknown:
        return name
    return name


def primary_group(world: World, user: str) -> str | None:
    """Return the primary group of a user. A new user without a known GID has a group of the same name."""
    gid, groups = (world.entry("users", user) or {}).get("gid"), world.facet("groups")
    named = next((name for name, fields in groups.items() if gid is not None and fields.get("gid") == gid), None)
    return named or (user if user in groups else None)


def owners(world: World, node: HostNode, nodes: Mapping[str, HostNode]) -> tuple[str | None, str | None]:
    """Return the owner and group that a node asks for, as the host shows them.

    :raises CheckError: see `account`
    """
    owner = account(world, "users", node.attrs.get("owner"), node, nodes)
    return owner, account(world, "groups", node.attrs.get("group"), node, nodes)


def attribute_actions(
    world: World, path: str, stat: Stat, mode: int | None, node: HostNode, nodes: Mapping[str, HostNode]
) -> list[Action]:
    """Return the actions that give an existing path this mode, and the owner and group that the node asks for."""
    owner, group = node.attrs.get("owner"), node.attrs.get("group")
    actions = []
    if (owner or stat.owner) != stat.owner or (group or stat.group) != stat.group:
        owner, group = owners(world, node, nodes)
        owner, group = owner if owner != stat.owner else None, group if group != stat.group else None
        if owner is not None or group is not None:
            actions.append(chown(path, owner, group))
    # A change of owner clears the set-user-id and set-group-id bits, so they are set again after it.
    if mode is not None and (
        mode != stat.mode or (actions and mode & 0o6000) or _exceeds(world, path, stat, mode, nodes)
    ):
        actions.append(chmod(path, mode))
    return actions


def _exceeds(world: World, path: str, stat: Stat, mode: int, nodes: Mapping[str, HostNode]) -> bool:
    """Tell whether an access list that no node manages grants more than a mode."""
    if not access.excess(stat.acl, mode) or f"acl:{path}" in world.elsewhere:
        return False
    return not any(other.type == "acl" and other.attrs["path"] == path for other in nodes.values())


def changes_hands(stat: Stat, owner: str | None) -> bool:
    """Tell whether a file must be written anew because its owner changes, or is neither root nor the running user.

    The former owner may still have the file open.
    """
    return stat.owner not in ("root", user_name(os.geteuid())) or (owner or stat.owner) != stat.owner


def needs_write(
    world: World, path: str, stat: Stat | None, content: Blob, attributes: Sequence[Action], owner: str | None
) -> bool:
    """Return whether a file must be written because its content differs, or because it changes hands.

    :param attributes: the actions that would set its mode and owner
    """
    if stat is None or stat.size != content.size or world.digest(path) != content.sha256:
        return True
    return bool(attributes) and changes_hands(stat, owner)


def followed(world: World, path: str) -> str:
    """Return the path that remains after following the links at `path`.

    :raises CheckError: if the links form a loop, or if another user controls one of them
    """
    real = path
    for _ in range(LINKS):
        stat = world.stat(real)
        if stat is None or stat.file_type != "symlink":
            return real
        folder = world.stat(posixpath.dirname(real))
        if folder is not None and folder.file_type == "symlink":  # such as /bin
            folder = world.stat(followed(world, posixpath.dirname(real)))
        if not ours(stat, folder):
            raise CheckError(f"{real} is a link that {stat.owner} controls, and is not followed")
        real = posixpath.normpath(posixpath.join(posixpath.dirname(real), stat.target))
    raise CheckError(f"{path} is a link in a loop of links")


def ours(link: Stat, directory: Stat | None) -> bool:
    """Return whether only root and this process's user can have put a link where it is.

    Source of the rule: systemd's CHASE_SAFE. The machine applies the same rule to the directories above a path.
    """
    trusted = ("root", user_name(os.geteuid()))
    if directory is None or link.owner not in trusted or directory.owner not in trusted:
        return False
    return not directory.mode & 0o022 or bool(directory.mode & 0o1000)


def refuse(path: str, stat: Stat, wanted: str, help: str = "") -> None:
    """Raise CheckError because `path` has another file type, and statecfg must not replace it.

    :param wanted: the wanted file type, such as "a directory"
    :param help: what the user can do, "" for no help
    """
    present = FILE_TYPES[stat.file_type] + (f" to {stat.target}" if stat.file_type == "symlink" else "")
    raise CheckError(f"{path} is {present}, not {wanted}{'; ' + help if help else ''}")


def require_parent(
    world: World, path: str, node: HostNode, nodes: Mapping[str, HostNode], parents: bool = False
) -> None:
    """Check that the directory of `path` exists, or will exist before the node's turn.

    :param parents: whether the node also creates missing parent directories
    :raises CheckError: if it does not, or if a node creates it that this node does not require
    """
    parent = posixpath.dirname(path)
    stat = world.apparent(parent)
    if stat is not None or not world.is_known(parent):
        # If the node that creates it is not required, the layers have the right order only by accident.
        maker = "directory:" + parent
        if stat is not None and stat.identity is None and maker in nodes and maker not in required(node, nodes):
            raise CheckError(f"{maker} creates its directory: add it to requires")
        return
    if parents and parent != path:
        require_parent(world, parent, node, nodes, True)
        return
    for name, other in sorted(nodes.items()):
        if (
            other.attrs.get("path") == parent
            and other.type not in ("archive", "acl", "xattr")
            and not other.attrs.get("absent")
        ):
            raise CheckError(f"its directory {parent} does not exist yet: add {name} to requires")
    raise CheckError(f"its directory {parent} does not exist; declare directory {parent} and require it")


def look(world: World, path: str, determined: bool = True) -> Stat | None:
    """Return what is at `path`; None also if only a required node may still create something there."""
    try:
        return world.stat(path)
    except Unknown:
        if determined and world.apparent(path) is None:
            return None
        raise


def refuse_with_absent(attrs: records.Attrs, allowed: Iterable[str]) -> None:
    """Check that a node with `absent` has no attributes that only an existing object can have.

    :param allowed: the attributes that go together with `absent`
    :raises ValueError: if there is another attribute
    """
    if attrs.get("absent"):
        idle = sorted(name for name, value in attrs.items() if name not in allowed and name != "type" and value)
        if idle:
            raise ValueError(f"absent can't be combined with {', '.join(idle)}")


def path_identity(attrs: records.Attrs) -> list[str]:
    """Return the identity of a node that manages its path."""
    return ["path:" + posixpath.normpath(attrs["path"])]
