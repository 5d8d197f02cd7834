"""Removal of everything at a path."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Action, Attrs, HostNode, NodeOptions, World, node_type
from statecfg.resources.files import directories, removals
from statecfg.resources.shared import paths, tree


@node_type
def remove(
    path: AbsolutePath,
    *,
    recursive: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Make sure that nothing is at a path: no file, directory, link, pipe, socket or device.

    Use it if you don't know what is there. The node types of files, directories and links have `absent`, which fails if
    something else is at the path. A link is removed itself, never its target. statecfg does not enter other file
    systems that are mounted in a directory.

    Undo: statecfg restores a file (up to 64 MiB), a link, or a directory with its content (up to 10,000 files, at most
    200 levels deep). It does not restore pipes, sockets and devices, and the plan of the removal contains a message
    about it.

    :param path: the path
    :param recursive: also remove a directory that is not empty

    In YAML::

        - remove: /etc/nginx/sites-enabled/default

    In Python::

        remove("/srv/old-site", recursive=True)
    """


remove.identity(paths.path_identity)


@remove.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse the removal of directories that the system needs."""
    if attrs["path"].strip("/") in tree.VITAL:
        raise ValueError(f"{attrs['path']} contains the system: statecfg does not remove it")


@remove.to_wire
def to_wire(node: Any) -> Any:
    """Declare in the form of other node types that nothing is at the path."""
    return node.with_attrs(absent=True)


@remove.check
def check(node: HostNode, world: World) -> list[Action]:
    """Check what is at the path."""
    path = node.attrs["path"]
    stat = world.stat(path)
    if stat is not None and stat.file_type == "directory":
        return directories.removal(world, path, bool(node.attrs.get("recursive")))
    return [paths.remove(path)] if stat is not None else []


remove.remember(directories.remember)
remove.undo(removals.undo)
