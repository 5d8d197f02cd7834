"""Edits of single lines in files: the ops, the snapshot and its restoration."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Node
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import lines, paths, records, restore, snapshot


@op(turn="lines")
def set_line(
    machine: Machine,
    path: str,
    line: str,
    match: str | None = None,
    after: str | None = None,
    before: str | None = None,
    made: bool = False,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Make sure that the file contains the line.

    :param made: whether to create the file if it is missing
    """
    text = "" if made and machine.apparent(path) is None else content(machine, path)
    edited = encoded(lines.with_line(text, line, match, after, before))
    return machine.write(path, edited, mode, owner, group, backup, validate)


@op(turn="lines")
def remove_line(
    machine: Machine,
    path: str,
    line: str | None = None,
    match: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Remove all lines of the file that equal `line` or match `match`."""
    edited = encoded(lines.without_line(content(machine, path), line, match))
    return machine.write(path, edited, backup=backup, validate=validate)


@op(turn="lines")
def restore_lines(
    machine: Machine,
    path: str,
    line: str | None,
    was: list[records.RemovedLine],
    last: str | None = None,
    made: bool = False,
) -> Result:
    """Undo an edit of lines.

    :param line: the line that was inserted; None: lines were removed
    :param was: the former lines, see `lines.removed_lines`
    :param last: the former last line, if it had no line end
    :param made: whether to remove the file if it is empty then
    """
    text = restored(content(machine, path), line, was, last)
    return machine.write(path, encoded(text)) if text or not made else machine.remove(path)


def require_no_owner(path: str, nodes: Mapping[str, Node]) -> None:
    """Check that no other node writes the whole file. Otherwise each would undo the other's change.

    :raises CheckError: if one does
    """
    for name, node in nodes.items():
        if node.type == "file" and node.attrs.get("path") == path and node.attrs.get("content") is not None:
            raise CheckError("%s manages the whole file %s: put the line into its content" % (name, path))


def removal(world: World, path: str, attrs: records.Attrs) -> list[Action]:
    """Return what removes the lines from an existing file."""
    text, line, match = content(world, path), attrs.get("line"), attrs.get("match")
    if lines.without_line(text, line, match) == text:
        return []
    return [remove_line(path, line, match, backup=attrs.get("backup"), validate=attrs.get("validate"))]


def insertion(world: World, path: str, stat: Stat | None, node: Node, nodes: Mapping[str, Node]) -> list[Action]:
    """Return what inserts the node's line, and sets mode and owner of the file.

    :param stat: the file; None if it does not exist
    """
    attrs = node.attrs
    options = {option: attrs.get(option) for option in ("match", "after", "before")}
    mode = paths.mode_bits(attrs.get("mode"))
    if stat is not None:
        text = content(world, path)
        if lines.with_line(text, attrs["line"], **options) == text:
            actions = paths.attribute_actions(world, path, stat, mode, node, nodes)
            if not actions or not paths.changes_hands(stat, attrs.get("owner")):
                return actions
    owner, group = paths.owners(world, node, nodes)
    options.update(backup=attrs.get("backup"), validate=attrs.get("validate"))
    return [set_line(path, attrs["line"], made=stat is None, mode=mode, owner=owner, group=group, **options)]


def content(world: World, path: str) -> str:
    """Return a file's content as text. Bytes that are not UTF-8 survive `encoded`."""
    return world.read(path).decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """Return the bytes of a text that `content` returned."""
    return text.encode("utf-8", "surrogateescape")


def restored(text: str, line: str | None, was: list[records.RemovedLine], last: str | None) -> str:
    """Return a text with an edit of lines undone (see `restore_lines`)."""
    if line is None:
        return lines.lines_undone(text, was, last)
    return lines.line_undone(text, line, was, last)


def remember(node: Node, world: World) -> records.LineMemory:
    """Record the lines that the node may change, with their positions."""
    attrs = node.attrs
    path = snapshot.followed(world, attrs["path"], True)
    stat = world.stat(path)
    text = content(world, path) if stat is not None and stat.kind == "file" else ""
    snap = snapshot.Snapshot(world)
    memory: records.LineMemory = {
        "path": path,
        "exists": stat is not None,
        "empty": not text,
        "last": lines.open_end(text),
        "lines": lines.removed_lines(text, attrs.get("line"), attrs.get("match")),
    }
    if stat is not None and stat.kind == "file" and restore.managed_attributes(attrs):
        memory["was"] = {"kind": "file", "mode": stat.mode, "owner": stat.owner, "group": stat.group}
    if attrs.get("backup"):
        memory["backup"] = snap.kept(path, attrs["backup"])
    return snap.with_lost(memory)


def undo(node: Node, memory: records.LineMemory, world: World) -> ActionSpec:
    """Undo the node's own edit and keep all later changes of the file."""
    attrs, path = node.attrs, memory["path"]
    restoring = restore.Restore(world, memory)
    stat = world.stat(path)
    if stat is not None and stat.kind == "file":
        text, line = content(world, path), None if attrs.get("absent") else attrs.get("line")
        edit = (line, memory["lines"], memory["last"])
        new_text = restored(text, *edit)
        # If two nodes may create the file, the second one finds it with only the first one's line in it.
        created = not memory["exists"] or bool(attrs.get("create") and not memory["empty"])
        masked = line is not None and lines.SECRET.search(line)
        if masked and len(lines.put_in(text, str(line), memory["lines"])) > 1:
            restoring.left.append("%s: statecfg does not know which line contained the secret: the lines stay" % path)
        if new_text != text or (line is not None and not text and not memory["exists"]):
            restoring.actions.append(restore_lines(path, *edit, made=created))
        was = memory.get("was")
        if was is not None and (new_text or not created):
            restoring.attributes(path, stat, was, restore.managed_attributes(attrs))
    restore.back_up(restoring, memory, attrs.get("backup"))
    return restoring.spec()
