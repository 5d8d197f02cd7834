"""Blocks of lines between markers in files: the text, the ops, the snapshot and its restoration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import hidden
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import lines, records, text_files, utf8

if TYPE_CHECKING:

    class BlockMemory(text_files.TextMemory):
        """The memory of a `block_in_file`. `block` has the former block with its markers; it is empty without one."""

        begin: str
        end: str
        block: list[lines.RemovedLine]


MARKER = "# {mark} managed by statecfg: {name}"


@op(mutex="lines")
def set_block(
    machine: Machine,
    path: str,
    begin: str,
    end: str,
    block: str,
    after: str | None = None,
    before: str | None = None,
    made: bool = False,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Make sure that the file contains the block between its markers.

    :param made: whether to create the file if it is missing
    """
    text = "" if made and machine.apparent(path) is None else text_files.content(machine, path)
    edited = text_files.encoded(machine, path, with_block(text, begin, end, inner_lines(block), after, before))
    return machine.write(path, edited, mode, owner, group, backup, validate)


@op(mutex="lines")
def remove_block(
    machine: Machine, path: str, begin: str, end: str, backup: str | None = None, validate: list[str] | None = None
) -> Result:
    """Remove the block and its markers."""
    edited = text_files.encoded(machine, path, without_block(text_files.content(machine, path), begin, end))
    return machine.write(path, edited, backup=backup, validate=validate)


@op(mutex="lines")
def restore_block(
    machine: Machine,
    path: str,
    begin: str,
    end: str,
    was: list[lines.RemovedLine],
    last: str | None = None,
    made: bool = False,
) -> Result:
    """Remove the block, or put a former block back.

    :param was: the lines of the former block with its markers; empty if there was none
    :param last: the former last line, if it had no line end
    :param made: whether to remove the file if it is empty then
    """
    text = restored(text_files.content(machine, path), begin, end, was, last)
    return text_files.write(machine, path, text, made)


def markers(attrs: records.Attrs, name: str) -> tuple[str, str]:
    """Return the lines before and after a node's block.

    :param name: the node's name
    """
    marker = (attrs.get("marker") or MARKER).replace("{name}", attrs.get("name") or name)
    return marker.replace("{mark}", "BEGIN"), marker.replace("{mark}", "END")


def inner_lines(block: str) -> list[str]:
    """Return the lines of a block without line ends."""
    parts = block.replace("\r\n", "\n").split("\n")
    return parts if parts[-1] else parts[:-1]


def refuse_markers(block: str, begin: str, end: str) -> None:
    """Check that a block does not contain its own markers.

    :raises ValueError: if it does
    """
    if {begin, end}.intersection(inner_lines(block)):
        raise ValueError("block contains a line that equals one of its markers; choose another name or marker")


def marker_positions(some: Sequence[str], begin: str, end: str) -> tuple[int, int] | None:
    """Return the positions of the markers; None if there are none.

    :raises ValueError: if they do not enclose one block
    """
    bare = [lines.bare(line) for line in some]
    if begin not in bare and end not in bare:
        return None
    if bare.count(begin) != 1 or bare.count(end) != 1 or bare.index(begin) > bare.index(end):
        found = [f"{bare.count(marker)} times `{marker}`" for marker in (begin, end)]
        raise ValueError(f"{', '.join(found)}; each must be there once, in this order: correct or delete these lines")
    return bare.index(begin), bare.index(end)


def with_block(
    text: str, begin: str, end: str, inner: Sequence[str], after: str | None = None, before: str | None = None
) -> str:
    """Return the text with the block in it. An existing block stays where it is.

    :param after: a regular expression; a new block is added after the last line in which it is found, or at the end
    :param before: a regular expression; a new block is added before the first line in which it is found, or at the end
    """
    some, wanted = lines.split(text), [begin, *inner, end]
    found = marker_positions(some, begin, end)
    if found is None:
        lines.insert(some, wanted, after, before)
    else:
        first, last = found
        if [lines.bare(line) for line in some[first : last + 1]] == wanted:
            return text
        ending = lines.line_end(some[first])
        some[first : last + 1] = [*(line + ending for line in wanted[:-1]), some[last]]
    return "".join(some)


def without_block(text: str, begin: str, end: str) -> str:
    """Return the text without the block and its markers."""
    some = lines.split(text)
    found = marker_positions(some, begin, end)
    if found is not None:
        del some[found[0] : found[1] + 1]
    return "".join(some)


def restored(text: str, begin: str, end: str, was: Sequence[lines.RemovedLine], last: str | None) -> str:
    """Return the text with the former block, or without the block if there was none (see `restore_block`)."""
    some = lines.split(text)
    found = marker_positions(some, begin, end)
    former = [entry["text"] + entry["end"] for entry in was]
    if found is not None:
        if [lines.bare(line) for line in some[found[0] : found[1] + 1]] == [entry["text"] for entry in was]:
            return text
        some[found[0] : found[1] + 1] = former
    elif former:
        at = lines.position(some, was[0])
        if at == len(some) and some and not lines.line_end(some[-1]):
            some[-1] += lines.line_ends(some)
        some[at:at] = former
    # Only the last line of a file can lack a line end.
    some = [line if lines.line_end(line) or at == len(some) - 1 else line + "\n" for at, line in enumerate(some)]
    return lines.closed(some, text, last)


def edits(node: HostNode, nodes: Mapping[str, HostNode], world: World, path: str, stat: Stat | None) -> list[Action]:
    """Return what inserts, changes or removes the node's block, and sets mode and owner of the file.

    :param stat: the file; None if it does not exist
    :raises CheckError: if the file is not text, or if markers are missing or there too often
    """
    attrs = node.attrs
    begin, end = markers(attrs, node.provides)
    text = utf8.text(world, path) if stat is not None else ""
    block: str = attrs.get("block") or ""
    try:
        refuse_markers(block, begin, end)
    except ValueError as problem:
        raise CheckError(str(problem)) from None
    try:
        if attrs.get("absent"):
            edited = without_block(text, begin, end)
            options = {"backup": attrs.get("backup"), "validate": attrs.get("validate")}
            return [remove_block(path, begin, end, **options)] if edited != text else []
        edited = with_block(text, begin, end, inner_lines(block), attrs.get("after"), attrs.get("before"))
    except ValueError as problem:
        raise CheckError(f"{path} contains {problem}") from None

    def write(**more: object) -> Action:
        return set_block(path, begin, end, block, attrs.get("after"), attrs.get("before"), stat is None, **more)

    return text_files.actions(world, path, stat, node, nodes, edited != text, write)


def remember(node: HostNode, world: World) -> BlockMemory:
    """Record the block that the file already contains, with its position."""
    text, memory = text_files.remember(node, world)
    begin, end = markers(node.attrs, node.provides)
    some = lines.split(text)
    try:
        found = marker_positions(some, begin, end)
    except ValueError:  # then the node fails
        found = None
    block = lines.taken_out(some, range(found[0], found[1] + 1)) if found is not None else []
    return {**memory, "begin": begin, "end": end, "block": block}


def undo(node: HostNode, memory: BlockMemory, world: World) -> ActionSpec:
    """Remove the block or put the former one back, unless others have changed its lines since."""
    attrs, path, was, last = node.attrs, memory["path"], memory["block"], memory["last"]
    begin, end = memory["begin"], memory["end"]

    def edit(text: str, left: list[str]) -> str:
        some = lines.split(text)
        try:
            found = marker_positions(some, begin, end)
        except ValueError as problem:
            left.append(f"{path} contains {problem}: these lines stay")
            return text
        if bool(attrs.get("absent")) != (found is None):
            if found is None and not world.acted:
                left.append(f"{path}: others have changed or removed the block of this node: what is there now stays")
            return text  # or others have added it again
        present = [lines.bare(line) for line in some[found[0] + 1 : found[1]]] if found is not None else []
        if found is None or [begin, *present, end] == [entry["text"] for entry in was]:
            return restored(text, begin, end, was, last)
        wanted = "\n".join(inner_lines(attrs.get("block") or ""))
        if not hidden.known(wanted) and "\n".join(present) != wanted:
            left.append(f"{path}: {hidden.UNKNOWN}: the block stays")
            return text
        if not hidden.same("\n".join(present), wanted):
            left.append(f"{path}: others have changed the lines after `{begin}`: the block stays")
            return text
        return restored(text, begin, end, was, last)

    def write(made: bool) -> Action:
        return restore_block(path, begin, end, was, last, made)

    return text_files.undo(node, memory, world, edit, write)
