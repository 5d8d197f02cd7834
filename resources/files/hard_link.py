"""Hard links: other names of files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Unpack

from statecfg import AbsolutePath, Action, Attrs, HostNode, NodeOptions, World, node_type
from statecfg.resources.files import hard_links
from statecfg.resources.shared import paths


@node_type
def hard_link(
    path: AbsolutePath,
    *,
    target: AbsolutePath | None = None,
    replace: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a hard link: a second name of a file. Both names have the same content, mode and owner.

    The target must be a file of the same file system. statecfg links it in one step, so the path exists at every
    moment. Other nodes, and most programs, write a file by replacing it. Then the other name still has the old content,
    until the next apply links it again. For this, set `replace`.

    Undo: statecfg restores the file or symbolic link that was there before (up to 64 MiB). If there was none, it
    removes the link. After `absent`, the file comes back as a separate file.

    :param path: the path of the link
    :param target: the path of the file; links in its directories are followed, the file itself must not be a link
    :param replace: replace another file or a symbolic link at the path
    :param absent: the file must not exist at the path; its other names stay

    In YAML::

        - hard_link: /srv/chroot/etc/resolv.conf
          target: /etc/resolv.conf
          replace: true

    In Python::

        hard_link("/usr/local/bin/shopctl", target="/usr/local/bin/shop")
    """


hard_link.identity(paths.path_identity)


@hard_link.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a link without a target or to itself, and an absent link with one."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if attrs.get("absent"):
        return
    if not attrs.get("target"):
        raise ValueError("a hard link requires a target")
    if posixpath.normpath(attrs["target"]) == posixpath.normpath(attrs["path"]):
        raise ValueError("target is the path itself; write the other name of the file")


@hard_link.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files at both paths by device and inode."""
    attrs, path = node.attrs, node.attrs["path"]
    stat = world.stat(path)
    if attrs.get("absent"):
        if stat is not None and stat.file_type != "file":
            paths.refuse(path, stat, "a file")
        return [paths.remove(path)] if stat is not None else []
    target = hard_links.target(node, nodes, world)
    if hard_links.same(stat, target):
        return []
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    elif stat.file_type not in ("file", "symlink"):
        paths.refuse(path, stat, "a file")
    elif not attrs.get("replace"):
        what = f"another name of {attrs['target']}"
        paths.refuse(path, stat, what, "replace: true replaces it with the hard link")
    hard_links.require_one_device(world, path, attrs["target"])
    return [hard_links.hard_link(path, attrs["target"], attrs.get("replace") or None)]


hard_link.needs(["inside:{path}", "path:{target}"])
hard_link.implemented_by(hard_links)
