"""The replacement of text in files: the ops, the snapshot and its restoration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import hidden
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records, snapshot, text_files, utf8
from statecfg.resources.text import replacing

if TYPE_CHECKING:
    from typing import TypedDict

    class ReplaceContext(TypedDict):
        """The file before a `replace` changed it; None if its content is not recorded."""

        file: snapshot.PathRecord | None

    class ReplaceMemory(text_files.TextMemory):
        """The memory of a `replace`. `lines` has the lines that it changes."""

        lines: list[str]
        context: ReplaceContext


@op(mutex="lines")
def replace_text(
    machine: Machine,
    path: str,
    pattern: str,
    replacement: str,
    after: str | None = None,
    before: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Replace the text that matches the pattern, between `after` and `before`."""
    how: replacing.Replacement = {"pattern": pattern, "replacement": replacement, "after": after, "before": before}
    edited = replacing.replaced(text_files.content(machine, path), how)
    return machine.write(path, text_files.encoded(machine, path, edited), backup=backup, validate=validate)


@op(mutex="lines")
def restore_text(
    machine: Machine,
    path: str,
    former: Blob,
    pattern: str,
    replacement: str,
    after: str | None = None,
    before: str | None = None,
) -> Result:
    """Put the replaced lines of a former content back."""
    how: replacing.Replacement = {"pattern": pattern, "replacement": replacement, "after": after, "before": before}
    text, _ = replacing.undone(text_files.content(machine, path), text_files.former_content(former), how)
    return machine.write(path, text_files.encoded(machine, path, text))


def replacement(world: World, path: str, attrs: records.Attrs) -> list[Action]:
    """Return what replaces the text in an existing file.

    :raises CheckError: if the replacement is not valid for the pattern, would change the file again and again, or
        has too few matches
    """
    how, text = how_of(attrs), utf8.text(world, path)
    try:
        edited = replacing.replaced(text, how)
        text_files.require_stable(path, edited, replacing.replaced(edited, how))
    except (re.error, IndexError):
        raise CheckError("replacement is not valid for pattern: write \\\\ for a backslash") from None
    wanted, found = attrs.get("count_at_least") or 0, replacing.count(edited, how) if attrs.get("count_at_least") else 0
    if found < wanted:
        message = "%s has %d places that match pattern or contain the replacement; count_at_least requires %d: check %s"
        names = [name for name in ("pattern", "after", "before") if attrs.get(name) is not None]
        raise CheckError(message % (path, found, wanted, ", ".join(names)))
    if edited == text:
        return []
    return [replace_text(path, **how, backup=attrs.get("backup"), validate=attrs.get("validate"))]


def how_of(attrs: records.Attrs) -> replacing.Replacement:
    """Return what a node replaces."""
    return {
        "pattern": attrs["pattern"],
        "replacement": attrs["replacement"],
        "after": attrs.get("after"),
        "before": attrs.get("before"),
    }


def remember(node: HostNode, world: World) -> ReplaceMemory:
    """Record the file, and apart from it the lines that the node changes: only they belong to the node."""
    text, memory = text_files.remember(node, world)
    changed = replacing.changed_lines(text, how_of(node.attrs))
    snap = snapshot.Snapshot(world)
    file = snap.entry(memory["path"]) if memory["exists"] else None
    context: ReplaceContext = {"file": file}
    found: ReplaceMemory = {**memory, "lines": changed, "context": context}
    return snap.with_lost(found)


def undo(node: HostNode, memory: ReplaceMemory, world: World) -> ActionSpec:
    """Put the replaced lines back, and keep all lines that others have changed since."""
    how, path, was = how_of(node.attrs), memory["path"], memory["context"]["file"]
    former = was.get("content") if was is not None else None

    def edit(text: str, left: list[str]) -> str:
        if secretive([how["pattern"], how["after"], how["before"]]):
            left.append(f"{path}: the pattern contains a secret, which statecfg does not record: the text stays")
            return text
        if former is None:
            left.append(f"{path}: the former text is unknown: the text stays")
            return text
        new_text, changed = replacing.undone(text, text_files.former_content(former), how)
        if changed:
            message = f"others have changed the lines of {changed} of the replaced places: these lines stay"
            known = hidden.known(how["replacement"])
            left.append(f"{path}: {message if known else hidden.UNKNOWN + ': the lines stay'}")
        return new_text

    def write(made: bool) -> Action:
        return restore_text(path, former, **how)

    return text_files.undo(node, memory, world, edit, write)
