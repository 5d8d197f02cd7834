"""Single lines in files that statecfg does not manage as a whole."""

from __future__ import annotations

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op
from statecfg.resources import _before, _lines, _paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, ActionSpec, Node, Result
    from statecfg.remote.graph.values import (
        AbsolutePath,
        Argv,
        Line,
        Mode,
        NodeOptions,
        Owner,
        OwnerGroup,
        Pattern,
        Suffix,
    )
    from statecfg.remote.machine.world import Machine, World


@node_type
def line_in_file(
    path: AbsolutePath,
    *,
    line: Optional[Line] = None,
    match: Optional[Pattern] = None,
    after: Optional[Pattern] = None,
    before: Optional[Pattern] = None,
    create: bool = False,
    mode: Optional[Mode] = None,
    owner: Optional[Owner] = None,
    group: Optional[OwnerGroup] = None,
    validate: Optional[Argv] = None,
    backup: Optional[Suffix] = None,
    absent: bool = False,
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
    :param validate: a command, as a list, that must succeed before statecfg installs the new content; ``{}`` stands for
        the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one
    :param absent: no line of the file may equal `line` or match `match`

    In YAML::

        - line_in_file: /etc/ssh/sshd_config
          line: PermitRootLogin no
          match: ^#?PermitRootLogin
          validate: [sshd, -t, -f, "{}"]
          provides: no-root-login

    In Python::

        line_in_file("/etc/hosts", match=r"\\bold-name\\b", absent=True)
    """


@op(turn="lines")
def set_line(
    machine: Machine,
    path: str,
    line: str,
    match: Optional[str] = None,
    after: Optional[str] = None,
    before: Optional[str] = None,
    made: bool = False,
    mode: Optional[int] = None,
    owner: Optional[str] = None,
    group: Optional[str] = None,
    backup: Optional[str] = None,
    validate: Optional[List[str]] = None,
) -> Result:
    """Have the line in the file. `made`: the file may be missing, and is made then."""
    text = "" if made and machine.apparent(path) is None else content(machine, path)
    new = encoded(_lines.with_line(text, line, match, after, before))
    return machine.write(path, new, mode, owner, group, backup, validate)


@op(turn="lines")
def remove_line(
    machine: Machine,
    path: str,
    line: Optional[str] = None,
    match: Optional[str] = None,
    backup: Optional[str] = None,
    validate: Optional[List[str]] = None,
) -> Result:
    """Have no such line in the file."""
    new = encoded(_lines.without_line(content(machine, path), line, match))
    return machine.write(path, new, backup=backup, validate=validate)


@op(turn="lines")
def restore_lines(
    machine: Machine,
    path: str,
    line: Optional[str],
    was: List[Mapping[str, Any]],
    last: Optional[str] = None,
    made: bool = False,
) -> Result:
    """Undo an edit of lines. `line`: what was put in; None: lines were removed. `made`: an empty file goes."""
    new = restored(content(machine, path), line, was, last)
    return machine.write(path, encoded(new)) if new or not made else machine.remove(path)


@line_in_file.claims
def claims(attrs: Dict[str, Any]) -> List[str]:
    """Claim the line, not the file: several nodes may be about one file."""
    return ["line:%s: %s" % (attrs["path"], attrs.get("match") or attrs.get("line"))]


@line_in_file.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse attributes that contradict each other or do nothing together."""
    _paths.refuse_with_absent(attrs, ("path", "absent", "line", "match", "validate", "backup"))
    if not attrs.get("absent") and attrs.get("line") is None:
        raise ValueError("a line is needed, unless it is to be absent")
    if attrs.get("line") is None and attrs.get("match") is None:
        raise ValueError("line or match is needed")
    if attrs.get("after") and attrs.get("before"):
        raise ValueError("after and before can't go together")
    if attrs.get("validate") and not any("{}" in part for part in attrs["validate"]):
        raise ValueError("validate needs {} where the path of the file to look at goes")


@line_in_file.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Edit what the file has now, and see whether that makes a difference."""
    attrs = node.attrs
    path = _paths.followed(world, attrs["path"])
    line, match = attrs.get("line"), attrs.get("match")
    refuse_whole(path, nodes)
    stat = world.stat(path)
    if stat is not None and stat.kind != "file":
        _paths.refuse(path, stat, "a file")
    checks = {"backup": attrs.get("backup"), "validate": attrs.get("validate")}
    if attrs.get("absent") or line is None:
        if stat is None:
            return []
        text = content(world, path)
        return [] if _lines.without_line(text, line, match) == text else [remove_line(path, line, match, **checks)]
    where = {"match": match, "after": attrs.get("after"), "before": attrs.get("before")}
    mode, text = _paths.mode_bits(attrs.get("mode")), ""
    if stat is not None:
        text = content(world, path)
    elif not attrs.get("create"):
        raise CheckError("%s does not exist; create: true makes it" % path)
    else:
        _paths.require_parent(world, path, node, nodes)
    if stat is not None and _lines.with_line(text, line, **where) == text:
        actions = _paths.attribute_actions(world, path, stat, mode, node, nodes)
        if not actions or not _paths.changes_hands(stat, attrs.get("owner")):
            return actions
    owner, group = _paths.owners(world, node, nodes)
    return [set_line(path, line, made=stat is None, mode=mode, owner=owner, group=group, **where, **checks)]


def refuse_whole(path: str, nodes: Mapping[str, Node]) -> None:
    """Raise CheckError where another node writes the whole file: each would undo what the other does."""
    for name, node in nodes.items():
        if node.type == "file" and node.attrs.get("path") == path and node.attrs.get("content") is not None:
            raise CheckError("%s writes the whole of %s: put the line into its content" % (name, path))


def content(world: World, path: str) -> str:
    """Return a file's content; bytes that are no UTF-8 come through unharmed."""
    return world.read(path).decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return a text as the bytes it was read from."""
    return text.encode("utf-8", "surrogateescape")


@line_in_file.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down the lines that the node is about, and where they stand."""
    attrs = node.attrs
    path = _before.followed(world, attrs["path"], True)
    stat = world.stat(path)
    text = content(world, path) if stat is not None and stat.kind == "file" else ""
    looking = _before.Looking(world)
    known: Dict[str, Any] = {"path": path, "exists": stat is not None, "empty": not text, "last": _lines.open_end(text)}
    known["lines"] = _lines.taken_down(text, attrs.get("line"), attrs.get("match"))
    if stat is not None and stat.kind == "file" and _before.given(attrs):
        known["was"] = {"kind": "file", "mode": stat.mode, "owner": stat.owner, "group": stat.group}
    if attrs.get("backup"):
        known["backup"] = looking.kept(path, attrs["backup"])
    return looking.memory(**known)


@line_in_file.undo
def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Undo the node's own edit, in the file as it is by now."""
    attrs, path = node.attrs, memory["path"]
    undoing = _before.Undoing(world, memory)
    stat = world.stat(path)
    if stat is not None and stat.kind == "file":
        text, line = content(world, path), None if attrs.get("absent") else attrs.get("line")
        edit = (line, memory["lines"], memory["last"])
        new = restored(text, *edit)
        # Of two nodes that may make the file the second finds it made, with nothing in it but the first one's line.
        made = not memory["exists"] or bool(attrs.get("create") and not memory["empty"])
        masked = line is not None and _lines.SECRET.search(line)
        if masked and len(_lines.put_in(text, str(line), memory["lines"])) > 1:
            undoing.left.append("%s: which of its lines held the secret is not known: they stay" % path)
        if new != text or (line is not None and not text and not memory["exists"]):
            undoing.actions.append(restore_lines(path, *edit, made=made))
        if memory.get("was") is not None and (new or not made):
            undoing.attributes(path, stat, memory["was"], _before.given(attrs))
    _before.back_up(undoing, memory, attrs.get("backup"))
    return undoing.spec()


def restored(text: str, line: Optional[str], was: List[Mapping[str, Any]], last: Optional[str]) -> str:
    """Return a text with an edit of lines undone (see `restore_lines`)."""
    if line is None:
        return _lines.lines_undone(text, was, last)
    return _lines.line_undone(text, line, was, last)
