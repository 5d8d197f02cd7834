"""Edits of single lines in files: the ops, the snapshot and its restoration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import hidden
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import lines, records, text_files

if TYPE_CHECKING:

    class LineMemory(text_files.TextMemory):
        """The memory of a `line_in_file`."""

        lines: list[lines.RemovedLine]


@op(mutex="lines")
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
    backrefs: bool | None = None,
) -> Result:
    """Make sure that the file contains the line.

    :param made: whether to create the file if it is missing
    :param backrefs: whether the line refers to groups of `match`
    """
    text = "" if made and machine.apparent(path) is None else text_files.content(machine, path)
    edited = lines.with_line(text, line, match, after, before, backrefs)
    return machine.write(path, text_files.encoded(machine, path, edited), mode, owner, group, backup, validate)


@op(mutex="lines")
def remove_line(
    machine: Machine,
    path: str,
    line: str | None = None,
    match: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Remove all lines of the file that equal `line` or match `match`."""
    edited = lines.without_line(text_files.content(machine, path), line, match)
    return machine.write(path, text_files.encoded(machine, path, edited), backup=backup, validate=validate)


@op(mutex="lines")
def restore_lines(
    machine: Machine,
    path: str,
    line: str | None,
    was: list[lines.RemovedLine],
    last: str | None = None,
    made: bool = False,
    one: bool | None = None,
) -> Result:
    """Undo an edit of lines.

    :param line: the line that was inserted; None: lines were removed
    :param was: the former lines, see `lines.removed_lines`
    :param last: the former last line, if it had no line end
    :param made: whether to remove the file if it is empty then
    :param one: see `lines.line_undone`
    """
    text = restored(text_files.content(machine, path), line, was, last, one)
    return text_files.write(machine, path, text, made)


def removal(world: World, path: str, attrs: records.Attrs) -> list[Action]:
    """Return what removes the lines from an existing file."""
    text, line, match = text_files.content(world, path), attrs.get("line"), attrs.get("match")
    if lines.without_line(text, line, match) == text:
        return []
    return [remove_line(path, line, match, backup=attrs.get("backup"), validate=attrs.get("validate"))]


def insertion(
    world: World, path: str, stat: Stat | None, node: HostNode, nodes: Mapping[str, HostNode]
) -> list[Action]:
    """Return what inserts the node's line, and sets mode and owner of the file.

    :param stat: the file; None if it does not exist
    """
    attrs, line = node.attrs, node.attrs["line"]
    options: records.Fields = {option: attrs.get(option) or None for option in ("match", "after", "before", "backrefs")}
    text = text_files.content(world, path) if stat is not None else ""
    try:
        edited = lines.with_line(text, line, **options)
    except (re.error, IndexError):
        raise CheckError("line is not valid for match: write \\\\ for a backslash") from None
    if attrs.get("backrefs"):
        text_files.require_stable(path, edited, lines.with_line(edited, line, **options))

    def write(**more: object) -> Action:
        return set_line(path, line, made=stat is None, **options, **more)

    return text_files.actions(world, path, stat, node, nodes, edited != text, write)


def restored(
    text: str, line: str | None, was: list[lines.RemovedLine], last: str | None, one: bool | None = None
) -> str:
    """Return a string with an edit of lines undone (see `restore_lines`)."""
    if line is None:
        return lines.lines_undone(text, was, last)
    return lines.line_undone(text, line, was, last, one)


def remember(node: HostNode, world: World) -> LineMemory:
    """Record the lines that the node may change, with their positions."""
    text, memory = text_files.remember(node, world)
    return {**memory, "lines": lines.removed_lines(text, node.attrs.get("line"), node.attrs.get("match"))}


def _changed(text: str, path: str, line: str, was: list[lines.RemovedLine]) -> list[str]:
    """Return the message if others have changed the node's line, so that neither it nor a former line is there."""
    there = [lines.bare(each) for each in lines.split(text)]
    if any(hidden.same(each, line) for each in there) or (was and all(entry["text"] in there for entry in was)):
        return []
    return [f"{path}: others have changed or removed the line of this node: what is there now stays"]


def undo(node: HostNode, memory: LineMemory, world: World) -> ActionSpec:
    """Undo the node's own edit and keep all later changes of the file."""
    attrs, path = node.attrs, memory["path"]
    line = None if attrs.get("absent") else attrs.get("line")
    was, last, one = memory["lines"], memory["last"], attrs.get("backrefs") or None
    if one and was:
        line = lines.expanded(str(line), attrs["match"], was[-1]["text"])

    def edit(text: str, left: list[str]) -> str:
        new = restored(text, line, was, last, one)
        if line is not None and new == text and not hidden.known(line) and not world.acted:
            left.append(f"{path}: {hidden.UNKNOWN}: the line stays")
        elif line is not None and new == text and not world.acted:
            left.extend(_changed(text, path, line, was))
        return new

    return text_files.undo(node, memory, world, edit, lambda made: restore_lines(path, line, was, last, made, one))
