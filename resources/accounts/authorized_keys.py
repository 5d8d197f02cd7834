"""The file authorized_keys of a user: where it is, who owns it, its entry for one key, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import entries, files, lines, paths, restore, text_files

if TYPE_CHECKING:
    from statecfg.resources.shared import line_edits

    class AuthorizedKeyMemory(line_edits.LineMemory):
        """The memory of an `authorized_key`. `made` tells whether the directory of the file was missing."""

        made: bool

    class AuthorizedKeysMemory(files.FileMemory):
        """The memory of an `authorized_key` with `all_keys`. `made` tells whether the directory was missing."""

        made: bool


@op(name="mkdir")
def make_directory(machine: Machine, path: str, owner: str, group: str | None) -> Result:
    """Create the directory with a user's keys."""
    return machine.mkdir(path, 0o700, owner, group)


@op(mutex="lines")
def set_only_line(machine: Machine, path: str, line: str, match: str) -> Result:
    """Put the line in place of the first line that matches, and remove the others that match."""
    text = lines.only_line(text_files.content(machine, path), line, match)
    return machine.write(path, text_files.encoded(machine, path, text))


@op(mutex="lines")
def restore_keys(
    machine: Machine, path: str, line: str, was: list[lines.RemovedLine], last: str | None = None
) -> Result:
    """Put the former lines with the key in place of the node's line."""
    text = lines.lines_undone(lines.without_line(text_files.content(machine, path), line), was, last)
    return machine.write(path, text_files.encoded(machine, path, text))


def _several_back(entry: HostNode, memory: line_edits.LineMemory, world: World) -> ActionSpec:
    """Return the actions that put several former lines back. If others have changed the node's line, all lines stay."""
    path, line = memory["path"], entry.attrs["line"]
    text = text_files.content(world, path) if world.stat(path) is not None else ""
    there = [each for each in lines.split(text) if lines.bare(each) == line]
    if not there or lines.lines_undone(lines.without_line(text, line), memory["lines"], memory["last"]) == text:
        return ActionSpec()
    return ActionSpec([restore_keys(path, line, memory["lines"], memory["last"])])


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Return what puts the key into the file, or removes it. With `all_keys`, return what writes the whole file.

    :raises CheckError: if the user does not exist, or has no home directory
    """
    attrs = node.attrs
    user = attrs["user"]
    if attrs.get("absent") and world.entry("users", user) is None:
        return []
    paths.account(world, "users", user, node, nodes)
    group = paths.primary_group(world, user)
    path = _path(world, user)
    folder = posixpath.dirname(path)
    missing = not attrs.get("absent") and paths.look(world, folder) is None
    if missing:
        paths.require_parent(world, folder, node, nodes)
    made = [make_directory(folder, user, group)] if missing else []
    owners = {"mode": "0600", "owner": user, **({"group": group} if group else {})}
    if attrs.get("all_keys") is not None:
        return [*made, *_written(_whole(node, path, **owners), nodes, world)]
    entry = _entry(node, path, **owners)
    if attrs.get("absent") or missing:
        return [*made, *entries.check(entry, nodes, world, missing)]
    return _single(entry, nodes, world)


def _single(entry: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Return the actions that make the entry the only line with its key, because sshd uses the first such line."""
    match, line = entry.attrs["match"], entry.attrs["line"]
    path, stat = text_files.target(entry, nodes, world, "put the line into its content")
    text = text_files.content(world, path) if stat is not None else ""
    if len(lines.matching(text, match)) < 2:
        return entries.check(entry, nodes, world)
    return [set_only_line(path, line, match)]


def _path(world: World, user: str) -> str:
    home = (world.entry("users", user) or {}).get("home")
    if not home:
        raise CheckError(f"the user {user} has no home directory")
    return posixpath.join(home, ".ssh/authorized_keys")


def _entry(node: HostNode, path: str, **attrs: object) -> HostNode:
    """Return the entry of the key. The line of a key is recognized by type and key, not by its comment or options."""
    key_type, key, *comment = node.attrs["key"].split(None, 2)
    restrictions = ",".join(node.attrs.get("restrictions") or ())
    if restrictions and re.search(r"[\s\0]", re.sub(r'"(?:\\.|[^"\\])*"', "", restrictions)):
        raise CheckError("restrictions: an option contains a blank outside of quotes")  # a value of the host
    line = " ".join([*([restrictions] if restrictions else []), key_type, key, *(comment or [node.attrs["name"]])])
    match = rf"^(?!\s*#).*(?<![^\s]){re.escape(key_type)}\s+{re.escape(key)}(\s|$)"
    return entries.entry(node, path, line, match, **attrs)


def _whole(node: HostNode, path: str, **attrs: object) -> HostNode:
    """Return the file with all keys of the user, as `file` would declare it."""
    content = Blob.of("".join(f"{key}\n" for key in node.attrs["all_keys"]))
    return HostNode(node.provides, node.type, node.requires, {"path": path, "content": content, **attrs})


def _written(whole: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Return what writes the file with all keys."""
    attrs, path = whole.attrs, whole.attrs["path"]
    for name, other in sorted(nodes.items()):
        if other.type == whole.type and other.attrs["user"] == attrs["owner"] and name != whole.provides:
            text = "%s lists all keys of %s: put the key of %s into it"
            raise CheckError(text % (whole.provides, attrs["owner"], name))
    stat = paths.look(world, path)
    files.check_type(path, stat, False)
    actions = paths.attribute_actions(world, path, stat, 0o600, whole, nodes) if stat is not None else []
    if not paths.needs_write(world, path, stat, attrs["content"], actions, attrs["owner"]):
        return actions
    return [files.write(path, attrs["content"], 0o600, attrs["owner"], attrs.get("group"))]


def remember(node: HostNode, world: World) -> AuthorizedKeyMemory | AuthorizedKeysMemory:
    """Record the lines with the key, and whether the directory is missing. Without a user, the path is empty."""
    user = node.attrs["user"]
    if node.attrs.get("all_keys") is not None and world.entry("users", user) is not None:
        path = _path(world, user)
        made = world.stat(posixpath.dirname(path)) is None
        return {**files.remember(_whole(node, path), world), "made": made}
    if world.entry("users", user) is None:
        return {"path": "", "exists": False, "empty": True, "last": None, "lines": [], "made": False}
    path = _path(world, user)
    return {**entries.remember(_entry(node, path), world), "made": world.stat(posixpath.dirname(path)) is None}


def undo(node: HostNode, memory: Any, world: World) -> ActionSpec:
    """Restore the former line with the key, or remove the key. Remove an empty directory that the node created."""
    path = memory["path"]
    if not path:
        return ActionSpec()
    if node.attrs.get("all_keys") is None:
        several = len(memory["lines"]) > 1 and not node.attrs.get("absent")
        spec = (_several_back if several else entries.undo)(_entry(node, path), memory, world)
    else:
        spec = files.undo(_whole(node, path, mode=0o600, owner=node.attrs["user"]), memory, world)
    folder = posixpath.dirname(path)
    if memory["made"] and spec.actions and set(world.listdir(folder)) <= {posixpath.basename(path)}:
        spec.actions.append(restore.remove_empty(folder))
    return spec
