"""Edits of parts of text files: what the node types `line_in_file`, `block_in_file` and `replace` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import lines, paths, records, restore, snapshot, utf8

if TYPE_CHECKING:
    from typing import NotRequired

    class TextMemory(snapshot.BackedUp):
        """What the memories of nodes that edit parts of a file have in common.

        :ivar last: the last line of the file, if it had no line end
        :ivar was: mode and owner of the file, if the node sets them
        """

        exists: bool
        empty: bool
        last: str | None
        was: NotRequired[snapshot.PathRecord]


LONGEST = 500  # characters of a line that a message shows


def refuse_without_placeholder(attrs: records.Attrs) -> None:
    """Check that `validate` names the file to check.

    :raises ValueError: if it does not
    """
    if attrs.get("validate") and not any("{}" in part for part in attrs["validate"]):
        raise ValueError("validate needs {}, which statecfg replaces by the path of the file to check")


def target(node: HostNode, nodes: Mapping[str, HostNode], world: World, help: str) -> tuple[str, Stat | None]:
    """Return the path of the file to edit, with links followed, and its Stat; None if it does not exist.

    :param help: what to do if another node writes the whole file
    :raises CheckError: if there is something else at the path, or if another node writes the whole file. Otherwise each
        node would undo the other's change
    """
    path = paths.followed(world, node.attrs["path"])
    for name, other in nodes.items():
        attrs = other.attrs
        whole = other.type == "file" and attrs.get("content") is not None and not attrs.get("create_only")
        if attrs.get("path") == path and (whole or attrs.get("checksum")):
            raise CheckError(f"{name} manages the whole file {path}: {help}")
    stat = world.stat(path)
    if stat is not None and stat.file_type != "file":
        paths.refuse(path, stat, "a file")
    return path, stat


def require_creatable(world: World, path: str, node: HostNode, nodes: Mapping[str, HostNode]) -> None:
    """Check that the node may create its missing file, and that the file's directory will exist.

    :raises CheckError: if not
    """
    if not node.attrs.get("create"):
        raise CheckError(f"{path} does not exist; create: true creates it")
    paths.require_parent(world, path, node, nodes)


def content(world: World, path: str) -> str:
    """Return a file's content as text without its byte order mark. Bytes that are not UTF-8 survive `encoded`.

    :raises CheckError: if the file is too large, or if it is UTF-16
    """
    return utf8.data(world, path).decode("utf-8", "surrogateescape")


def former_content(blob: Blob) -> str:
    """Return a former content of a file as `content` returned it then."""
    data = blob.read()
    return str((data[len(utf8.MARK) :] if data.startswith(utf8.MARK) else data).decode("utf-8", "surrogateescape"))


def encoded(machine: Machine, path: str, text: str) -> bytes:
    """Return the bytes of the edited text of a file. A byte order mark that the file has stays."""
    stat = machine.apparent(path)
    marked = stat is not None and stat.file_type == "file" and machine.read(path).startswith(utf8.MARK)
    return (utf8.MARK if marked else b"") + text.encode("utf-8", "surrogateescape")


def require_stable(path: str, once: str, twice: str) -> None:
    """Check that a second edit changes nothing.

    :param once: the text after the edit
    :param twice: the text after the second edit
    :raises CheckError: if a second edit changes the text again
    """
    if once == twice:
        return
    one, two = once.split("\n"), twice.split("\n")
    at = next((at for at, pair in enumerate(zip(one, two)) if pair[0] != pair[1]), min(len(one), len(two)) - 1)
    # A long line is left out, because a cut could split a secret.
    pair = tuple(f"{len(line)} characters" if len(line) > LONGEST else f'"{line}"' for line in (one[at], two[at]))
    message = "every apply would change %s again: line %d would be %s, then %s; write a pattern that does not match it"
    raise CheckError(message % (path, at + 1, *pair))


def actions(
    world: World,
    path: str,
    stat: Stat | None,
    node: HostNode,
    nodes: Mapping[str, HostNode],
    changes: bool,
    write: Callable[..., Action],
) -> list[Action]:
    """Return what edits a file and sets its mode and owner.

    :param stat: the file; None if it does not exist
    :param changes: whether the edit changes the content
    :param write: returns the action that edits the file, for the options of `Machine.write`
    """
    attrs = node.attrs
    mode = paths.mode_bits(attrs.get("mode"))
    if stat is not None and not changes:
        found = paths.attribute_actions(world, path, stat, mode, node, nodes)
        if not found or not paths.changes_hands(stat, attrs.get("owner")):
            return found
    owner, group = paths.owners(world, node, nodes)
    options = {"backup": attrs.get("backup"), "validate": attrs.get("validate")}
    return [write(mode=mode, owner=owner, group=group, **options)]


def write(machine: Machine, path: str, text: str, made: bool) -> Result:
    """Write the text of an undo.

    :param made: whether to remove the file if the text is empty
    """
    return machine.write(path, encoded(machine, path, text)) if text or not made else machine.remove(path)


def remember(node: HostNode, world: World) -> tuple[str, TextMemory]:
    """Return a file's content as text, and the record of everything but the content; "" if there is no file."""
    attrs = node.attrs
    path = snapshot.followed(world, attrs["path"], True)
    stat = world.stat(path)
    text = content(world, path) if stat is not None and stat.file_type == "file" else ""
    snap = snapshot.Snapshot(world)
    memory: TextMemory = {
        "path": path,
        "exists": stat is not None,
        "empty": not text,
        "last": lines.open_end(text),
    }
    if stat is not None and stat.file_type == "file" and restore.managed_attributes(attrs):
        memory["was"] = {"kind": "file", "mode": stat.mode, "owner": stat.owner, "group": stat.group}
    if attrs.get("backup"):
        memory["backup"] = snap.kept(path, attrs["backup"])
    return text, snap.with_lost(memory)


def undo(
    node: HostNode,
    memory: TextMemory,
    world: World,
    edit: Callable[[str, list[str]], str],
    write: Callable[[bool], Action],
) -> ActionSpec:
    """Return what undoes a node's own edit and keeps all later changes of the file.

    :param edit: returns the text without the edit; it adds a message about each thing that stays to its second argument
    :param write: returns the action for that, with the argument whether to remove the file if nothing is left in it
    """
    attrs, path = node.attrs, memory["path"]
    restoring = restore.Restore(world, memory)
    stat = world.stat(path)
    if stat is not None and stat.file_type == "file":
        text = content(world, path)
        new_text = edit(text, restoring.left)
        # If two nodes may create the file, the second one finds it with only the first one's text in it.
        created = not memory["exists"] or bool(attrs.get("create") and not memory["empty"])
        if new_text != text or (not text and not memory["exists"] and not attrs.get("absent")):
            restoring.actions.append(write(created))
        was: Any = memory.get("was")
        if was is not None and (new_text or not created):
            restoring.attributes(path, stat, was, restore.managed_attributes(attrs), attrs)
    restore.back_up(restoring, memory, attrs.get("backup"))
    return restoring.spec()
