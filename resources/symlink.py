"""Symbolic links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    Action,
    ActionSpec,
    HostNode,
    Machine,
    NodeOptions,
    NoNul,
    Owner,
    OwnerGroup,
    Result,
    World,
    error,
    node_type,
    op,
)
from statecfg.resources.shared import paths, restore, snapshot


@node_type
def symlink(
    path: AbsolutePath,
    *,
    target: NoNul | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    replace: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a symbolic link.

    statecfg switches an existing link to another target in one step, so the link exists at every moment. The target
    does not have to exist. If something other than a link is at the path, statecfg does not touch it: a directory
    always stays, a file stays unless you set `replace`.

    Undo: statecfg restores the link or file that existed before. If there was none, it removes the link.

    :param path: the path of the link
    :param target: the target, used as written; a relative target starts at the directory of the link
    :param owner: user who owns the link itself
    :param group: group that owns the link itself
    :param replace: replace a file at this path by the link
    :param absent: the link must not exist

    In YAML::

        - symlink: /etc/nginx/sites-enabled/shop
          target: ../sites-available/shop

    In Python::

        symlink("/srv/shop/current", target="releases/42")
    """


@op
def link(
    machine: Machine,
    path: str,
    target: str,
    owner: str | None,
    group: str | None,
    replace: bool | None = None,
) -> Result:
    """Create the link. Replace a link with another target, and with `replace` also a file."""
    found = machine.apparent(path)
    if found is not None and found.kind == "file" and not replace:
        return error(
            "%s is a file, not a link: it was made in this run; replace: true puts the link in its place" % path
        )
    return machine.symlink(path, target, owner=owner, group=group)


symlink.claims(paths.path_claim)


@symlink.validate
def validate(attrs: dict[str, Any]) -> None:
    """Refuse a link without a target, and an absent link with one."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if not attrs.get("absent") and not attrs.get("target"):
        raise ValueError("a link needs a target")


@symlink.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the link itself, never its target."""
    attrs = node.attrs
    path, target = attrs["path"], attrs.get("target")
    stat = paths.look(world, path, determined=not attrs.get("absent"))
    if stat is not None and stat.kind != "symlink":
        if attrs.get("absent") or stat.kind != "file":
            paths.refuse(path, stat, "a link")
        if not attrs.get("replace"):
            paths.refuse(path, stat, "a link", "replace: true puts the link in its place")
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    if stat is None or stat.kind != "symlink" or stat.target != target:
        owner, group = paths.owners(world, node, nodes)
        return [link(path, target, owner, group, attrs.get("replace") or None)]
    return paths.attribute_actions(world, path, stat, None, node, nodes)


@symlink.remember
def remember(node: HostNode, world: World) -> dict[str, Any]:
    """Record the link, or the file in its place."""
    snap = snapshot.Snapshot(world)
    return snap.memory(path=node.attrs["path"], was=snap.entry(node.attrs["path"]))


@symlink.undo
def undo(node: HostNode, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Restore what was there before, or remove the link."""
    restoring = restore.Restore(world, memory)
    if not node.attrs.get("absent"):
        restoring.back(memory["path"], memory["was"], ("symlink",))
    elif memory["was"] is not None:
        restoring.back_if_missing(memory["path"], memory["was"])
    return restoring.spec()
