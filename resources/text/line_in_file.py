"""Single lines in files that statecfg does not manage as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    Attrs,
    HostNode,
    Line,
    Mode,
    NodeOptions,
    Owner,
    OwnerGroup,
    Pattern,
    Suffix,
    World,
    node_type,
)
from statecfg.resources.shared import line_edits, paths, text_files
from statecfg.resources.text import text_rules


@node_type
def line_in_file(
    path: AbsolutePath,
    *,
    line: Line | None = None,
    match: Pattern | None = None,
    after: Pattern | None = None,
    before: Pattern | None = None,
    create: bool = False,
    mode: Mode | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    absent: bool = False,
    backrefs: bool = False,
    if_file_exists: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage one line of a file and leave the other lines as they are.

    Several of these nodes can edit the same file; each of them then needs its own `provides`. They run one after
    another, in the order of their names. Line ends stay as they are in the file. To manage a whole file, use a `file`
    with a template.

    Undo: statecfg removes the line, or restores the line that it replaced. It puts removed lines back where they were.
    Other changes that were made to the file since then stay. Mode, owner and group are restored if the node sets them.
    If the node created the file, statecfg removes it when nothing else is in it.

    :param path: the path of the file; a link is followed
    :param line: the line, without its line end
    :param match: a regular expression: if the file does not contain `line`, `line` replaces the last line that matches
    :param after: a regular expression: a new line goes after the last line that matches, or to the end of the file
    :param before: a regular expression: a new line goes before the first line that matches, or to the end of the file
    :param create: create the file if it does not exist
    :param mode: permission bits of the file as an octal string, such as ``"0600"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` is
        replaced by the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: no line of the file may equal `line` or match `match`
    :param backrefs: ``\\1`` and ``\\g<name>`` in `line` refer to groups of `match`, and ``\\\\`` is a backslash, also
        in a secret. If no line matches, the file stays as it is
    :param if_file_exists: do nothing if the file does not exist when the node's turn comes

    In YAML::

        - line_in_file: /etc/ssh/sshd_config
          line: PermitRootLogin no
          match: ^#?PermitRootLogin
          validate: [sshd, -t, -f, "{}"]
          provides: no-root-login

    In Python::

        line_in_file("/etc/hosts", match=r"\\bold-name\\b", absent=True)
    """


line_in_file.manners = ("create", "validate", "backup", "if_file_exists")


@line_in_file.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the line, not the file, because several nodes may edit one file."""
    return [f"line:{attrs['path']}: {attrs.get('match') or attrs.get('line')}"]


line_in_file.owns(["part:path:{path}"])


@line_in_file.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other or have no effect together."""
    paths.refuse_with_absent(attrs, ("path", "absent", "line", "match", "validate", "backup"))
    if not attrs.get("absent") and attrs.get("line") is None:
        raise ValueError("line is required unless absent is true")
    if attrs.get("line") is None and attrs.get("match") is None:
        raise ValueError("line or match is required")
    if attrs.get("after") and attrs.get("before"):
        raise ValueError("after and before can't be combined")
    if attrs.get("create") and attrs.get("if_file_exists"):
        raise ValueError("create and if_file_exists can't be combined")
    text_files.refuse_without_placeholder(attrs)
    if attrs.get("backrefs"):
        if attrs.get("match") is None:
            raise ValueError("backrefs requires match")
        if attrs.get("after") or attrs.get("before") or attrs.get("create"):
            raise ValueError("backrefs can't be combined with after, before or create")
        text_rules.refuse_references(attrs["match"], attrs["line"], "line")


@line_in_file.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Edit the present content, and compare the result with it."""
    attrs = node.attrs
    path, stat = text_files.target(node, nodes, world, "put the line into its content")
    if attrs.get("absent") or attrs.get("line") is None:
        return line_edits.removal(world, path, attrs) if stat is not None else []
    if stat is None and attrs.get("if_file_exists"):
        return []
    if stat is None:
        text_files.require_creatable(world, path, node, nodes)
    return line_edits.insertion(world, path, stat, node, nodes)


line_in_file.implemented_by(line_edits)
