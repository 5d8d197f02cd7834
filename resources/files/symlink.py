"""Symbolic links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from statecfg import AbsolutePath, Action, Attrs, HostNode, NodeOptions, NoNul, Owner, OwnerGroup, World, node_type
from statecfg.resources.files import links
from statecfg.resources.shared import file_sources, paths


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
    :param replace: replace a file at this path with the link
    :param absent: the link must not exist

    In YAML::

        - symlink: /etc/nginx/sites-enabled/shop
          target: ../sites-available/shop

    In Python::

        symlink("/srv/shop/current", target="releases/42")
    """


symlink.identity(paths.path_identity)


@symlink.validate
def validate(attrs: Attrs) -> None:
    """Refuse a link without a target, and an absent link with one."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if not attrs.get("absent") and not attrs.get("target"):
        raise ValueError("a link requires a target")
    file_sources.refuse_secret(
        attrs.get("target"), "target", "every user can read where a link points: use a name that is not secret"
    )


@symlink.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the link itself, never its target."""
    attrs = node.attrs
    path, target = attrs["path"], attrs.get("target")
    stat = paths.look(world, path, determined=not attrs.get("absent"))
    if stat is not None and stat.file_type != "symlink":
        if attrs.get("absent") or stat.file_type != "file":
            paths.refuse(path, stat, "a link")
        if not attrs.get("replace"):
            paths.refuse(path, stat, "a link", "replace: true replaces it with the link")
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    if stat is None or stat.file_type != "symlink" or stat.target != target:
        owner, group = paths.owners(world, node, nodes)
        return [links.link(path, target, owner, group, attrs.get("replace") or None)]
    return paths.attribute_actions(world, path, stat, None, node, nodes)


symlink.implemented_by(links)
