"""Directories: mode and owner, whole trees, and the removal of unmanaged entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    Action,
    ActionSpec,
    Attrs,
    HostNode,
    LocalPath,
    Mode,
    ModeChange,
    NodeOptions,
    Owner,
    OwnerGroup,
    PublicLine,
    World,
    node_type,
)
from statecfg.resources.files import directories
from statecfg.resources.shared import exclusions, paths, tree


@node_type
def directory(
    path: AbsolutePath,
    *,
    mode: ModeChange | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    parents: bool = False,
    source: LocalPath | None = None,
    file_mode: Mode | None = None,
    exclude: list[PublicLine] | None = None,
    purge: bool = False,
    follow: bool = False,
    absent: bool = False,
    recursive: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a directory, alone or with a tree of files.

    If you omit mode, owner or group, an existing directory keeps its own; a new directory gets mode 0755. With
    `source`, `mode` also applies to every directory of the source, and `owner` and `group` to everything in the source.
    They do not apply to other entries of the directory. statecfg sends only files of the source whose content the host
    does not have at their path; files of less than 64 KiB in total are always sent.

    `exclude` leaves out entries of the source, and `purge` keeps such entries on the host. ``*.log`` matches names at
    every depth; a pattern with a slash, such as ``/cache`` or ``build/*.o``, matches the path below the directory.
    ``*`` and ``?`` don't match a slash. A directory that matches is left out with everything in it.

    Undo: statecfg removes what the node created, from the files of the source to the parent directories. It removes a
    directory only if nothing else is in it. It restores what the node replaced, purged or removed. For this, it keeps
    up to 10,000 files and 64 MiB, at most 200 levels deep; the plan of the removal lists what it did not keep.

    :param path: the path of the directory
    :param mode: permission bits as an octal string, such as ``"0755"``, or a symbolic mode, such as ``g+rwX``, which
        starts from the directory's present mode
    :param owner: user who owns it, by name or number
    :param group: group that owns it, by name or number
    :param parents: also create missing parent directories
    :param source: a local directory, next to the playbook or in the project's ``files/``; its files are copied into
        this directory
    :param file_mode: permission bits of the files of the source; default: 0755 for executable files, 0644 for others
    :param exclude: patterns for entries of the source and of the directory that this node does not touch
    :param purge: remove everything in the directory that is not in the source and that no other node manages, also in
        other playbooks on this host
    :param follow: if the path is a link, manage the directory that it points to
    :param absent: the directory must not exist
    :param recursive: with `absent`: remove the directory and everything in it; without `recursive`, only an empty
        directory is removed

    In YAML::

        - directory: /etc/nginx/conf.d
          source: conf.d
          purge: true

    In Python::

        directory("/srv/shop", owner="deploy", group="deploy", mode="0750")
    """


directory.identity(paths.path_identity)
directory.manners = ("parents", "exclude", "purge", "follow", "recursive")


@directory.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other, and the removal of directories that the system needs."""
    paths.refuse_with_absent(attrs, ("path", "absent", "recursive"))
    if attrs.get("recursive") and not attrs.get("absent"):
        raise ValueError("recursive requires absent; parents creates missing parent directories")
    if attrs.get("file_mode") and not attrs.get("source"):
        raise ValueError("file_mode requires source")
    if attrs.get("exclude") and not (attrs.get("source") or attrs.get("purge")):
        raise ValueError("exclude requires source or purge")
    if not all(pattern.strip("/") for pattern in attrs.get("exclude") or ()):
        raise ValueError("exclude has an empty pattern")
    destructive = attrs.get("purge") or attrs.get("recursive")
    if destructive and attrs["path"].strip("/") in tree.VITAL:
        raise ValueError(f"{attrs['path']} contains the system: statecfg does not empty it")


@directory.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Read the source, so that only its content is sent to the host."""
    source = node.attrs.get("source")
    if source is None:
        return node
    patterns = list(node.attrs.get("exclude") or ())
    found = context.tree(node, source, lambda name: exclusions.excluded(name, patterns))
    return node.with_attrs(tree=found, source=None)


@directory.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action] | ActionSpec:
    """Compare the directory, then the tree in it, then find unmanaged entries."""
    attrs = node.attrs
    path = paths.followed(world, attrs["path"]) if attrs.get("follow") else attrs["path"]
    if attrs.get("absent"):
        return directories.removal(world, path, bool(attrs.get("recursive")))
    stat = paths.look(world, path)
    actions = directories.own_actions(world, path, stat, node, nodes) + tree.check(world, path, node, nodes)
    if attrs.get("purge") and stat is not None:
        more, staying = tree.unmanaged(world, node, nodes, path)
        return ActionSpec(actions + more, left=staying)
    return actions


directory.implemented_by(directories)
