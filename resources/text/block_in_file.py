"""Blocks of lines in files that statecfg does not manage as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    Attrs,
    HostNode,
    Marker,
    Mode,
    Name,
    NodeOptions,
    NoNul,
    Owner,
    OwnerGroup,
    Pattern,
    Suffix,
    World,
    node_type,
)
from statecfg.resources.shared import paths, text_files
from statecfg.resources.text import blocks


@node_type
def block_in_file(
    path: AbsolutePath,
    *,
    block: NoNul | None = None,
    name: Name | None = None,
    marker: Marker | None = None,
    after: Pattern | None = None,
    before: Pattern | None = None,
    create: bool = False,
    mode: Mode | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a block of lines between two marker lines, and leave the other lines of the file as they are.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names. A block that exists stays where it is. Line ends stay as they are in the file.
    The file must be UTF-8 text, and each marker must be in it once or be missing.

    Undo: statecfg removes the block with its markers, or restores the block that was between them. It puts a removed
    block back where it was. If others have changed lines of the block since then, the block stays. Mode, owner and
    group are restored if the node sets them. If the node created the file, statecfg removes it when nothing else is in
    it.

    :param path: the path of the file; a link is followed
    :param block: the lines of the block; an empty text leaves only the markers
    :param name: the name of the block in its markers; the default is the node's name
    :param marker: the text of the marker lines; ``{mark}`` is replaced by `BEGIN` or `END`, ``{name}`` by the name of
        the block. The default is ``# {mark} managed by statecfg: {name}``
    :param after: a regular expression: a new block goes after the last line that matches, or to the end of the file
    :param before: a regular expression: a new block goes before the first line that matches, or to the end of the file
    :param create: create the file if it does not exist
    :param mode: permission bits of the file as an octal string, such as ``"0600"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: the file must not contain the block and its markers

    In YAML::

        - block_in_file: /etc/hosts
          name: cluster
          block: |
            192.0.2.11 db1
            192.0.2.12 db2

    In Python::

        block_in_file("/etc/ssh/sshd_config", block="Match User backup\\n  ForceCommand internal-sftp", name="backup")
    """


@block_in_file.identity
def identity(attrs: Attrs, name: str) -> list[str]:
    """Identify the block by its marker, which contains its name. Several nodes may edit one file."""
    return [f"block:{attrs['path']}: {blocks.markers(attrs, name)[0]}"]


block_in_file.owns(["part:path:{path}"])


@block_in_file.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other or have no effect together."""
    paths.refuse_with_absent(attrs, ("path", "absent", "name", "marker", "validate", "backup"))
    if not attrs.get("absent") and attrs.get("block") is None:
        raise ValueError("block is required unless absent is true")
    if attrs.get("after") and attrs.get("before"):
        raise ValueError("after and before can't be combined")
    text_files.refuse_without_placeholder(attrs)
    block = attrs.get("block")
    if isinstance(block, str) and attrs.get("name"):  # a secret has another type; the host checks it
        blocks.refuse_markers(block, *blocks.markers(attrs, ""))


@block_in_file.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Edit the present content, and compare the result with it."""
    path, stat = text_files.target(node, nodes, world, "put the block into its content")
    if stat is None and node.attrs.get("absent"):
        return []
    if stat is None:
        text_files.require_creatable(world, path, node, nodes)
    return blocks.edits(node, nodes, world, path, stat)


block_in_file.implemented_by(blocks)
