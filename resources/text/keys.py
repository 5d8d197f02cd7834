"""Single keys of configuration files: the ops, the check, the snapshot and its restoration.

An editor is a module with the functions `get`, `written`, `put` and `remove` (see `json_text`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import hidden
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records, snapshot, text_files, utf8
from statecfg.resources.text import replacing
from statecfg.resources.text.key_texts import MISSING, NotEditable, dotted, equal

if TYPE_CHECKING:
    from statecfg.resources.text import replacements

    class KeyMemory(replacements.ReplaceMemory):
        """The memory of an `ini_key`, `json_key`, `toml_key` or `yaml_key`."""


EDITORS: dict[str, Any] = {}  # node type → editor


@op(mutex="lines")
def set_key(
    machine: Machine,
    path: str,
    form: str,
    key: list[str],
    value: Any,
    quoted: bool | None = None,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Give a key of the file a value.

    :param form: the node type, which knows the form of the file
    :param quoted: whether to put a string in quotes that does not need them
    """
    text = "" if machine.apparent(path) is None else text_files.content(machine, path)
    new = EDITORS[form].put(text, key, value, bool(quoted))
    return machine.write(path, text_files.encoded(machine, path, new), mode, owner, group, backup, validate)


@op(mutex="lines")
def remove_key(
    machine: Machine, path: str, form: str, key: list[str], backup: str | None = None, validate: list[str] | None = None
) -> Result:
    """Remove a key from the file."""
    new = EDITORS[form].remove(text_files.content(machine, path), key)
    return machine.write(path, text_files.encoded(machine, path, new), backup=backup, validate=validate)


@op(mutex="lines")
def restore_key(
    machine: Machine, path: str, form: str, key: list[str], value: Any, former: Blob, made: bool, absent: bool
) -> Result:
    """Put the former lines of a key back.

    :param former: the content of the file before the node changed it
    :param made: whether to remove the file if it is empty then
    """
    text, was = text_files.content(machine, path), text_files.former_content(former)
    return text_files.write(machine, path, undone(text, was, form, key, value, absent)[0], made)


def register(node_type: NodeType[...], editor: Any) -> None:
    """Let a node type manage keys with an editor. The key is its identity, because several nodes may edit one file."""
    EDITORS[node_type.name] = editor
    node_type.identity(lambda attrs: [f"key:{attrs['path']}: {' '.join(names(node_type.name, attrs))}"])
    node_type.owns(["part:path:{path}"])
    node_type.check(check)
    node_type.remember(remember)
    node_type.undo(undo)


def names(form: str, attrs: records.Attrs) -> list[str]:
    """Return the parts of a node's key; of one in an INI file, section and key."""
    if form == "ini_key":
        return [attrs.get("section") or "", attrs["key"]]
    key = attrs["key"]
    return key.split(".") if isinstance(key, str) else list(key)


def has(form: str, text: str, key: list[str], value: Any) -> bool:
    """Tell whether a key has this value. A masked secret in it matches any text."""
    return _same(form, EDITORS[form].get(text, key), value)


def _same(form: str, found: Any, value: Any) -> bool:
    return equal(found, EDITORS[form].literal(value) if form == "ini_key" else value)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the key with the wanted value.

    :raises CheckError: if the file can't be edited
    """
    attrs, form, key = node.attrs, node.type, names(node.type, node.attrs)
    path, stat = text_files.target(node, nodes, world, "put the key into its content")
    if stat is None and attrs.get("absent"):
        return []
    if stat is None:
        text_files.require_creatable(world, path, node, nodes)
    text = utf8.text(world, path) if stat is not None else ""
    try:
        if attrs.get("absent"):
            if EDITORS[form].remove(text, key) == text:
                return []
            return [remove_key(path, form, key, attrs.get("backup"), attrs.get("validate"))]
        changes = not has(form, text, key, attrs["value"])
        if changes and not has(form, EDITORS[form].put(text, key, attrs["value"]), key, attrs["value"]):
            raise CheckError(f"statecfg can't write this value into {path} so that it reads it back")
    except NotEditable as why:
        raise CheckError(f"{path}: {why}") from None

    def write(**more: Any) -> Action:
        return set_key(path, form, key, attrs["value"], "value" in node.hides or None, **more)

    return text_files.actions(world, path, stat, node, nodes, changes, write)


def remember(node: HostNode, world: World) -> KeyMemory:
    """Record the file, and apart from it the lines that the node changes: only they belong to the node."""
    text, memory = text_files.remember(node, world)
    snap = snapshot.Snapshot(world)
    file = snap.entry(memory["path"]) if memory["exists"] else None
    attrs = node.attrs
    try:
        new = _edited(text, node.type, names(node.type, attrs), attrs.get("value"), bool(attrs.get("absent")))
    except NotEditable:
        new = text
    found: KeyMemory = {
        **memory,
        "lines": replacing.lines_between(text, new)[0],
        "context": {"file": file},
    }
    return snap.with_lost(found)


def undo(node: HostNode, memory: KeyMemory, world: World) -> ActionSpec:
    """Put the former lines back, unless others have changed them since."""
    attrs, path, was = node.attrs, memory["path"], memory["context"]["file"]
    form, key, value, absent = node.type, names(node.type, attrs), attrs.get("value"), bool(attrs.get("absent"))
    former = was.get("content") if was is not None else None if memory["exists"] else Blob.of("")

    def edit(text: str, left: list[str]) -> str:
        if former is None:
            left.append(f"{path}: the former text is unknown: the key {dotted(key)} stays")
            return text
        if not hidden.known(value) and not _has(form, text, key, value):
            left.append(f"{path}: {hidden.UNKNOWN}: the key {dotted(key)} stays")
            return text
        new, changed = undone(text, text_files.former_content(former), form, key, value, absent)
        if changed or (new == text and not world.acted and _gone(text, form, key, absent)):
            left.append(f"{path}: others have changed the key {dotted(key)}: it stays")
        return new

    def write(made: bool) -> Action:
        return restore_key(path, form, key, value, former, made, absent)

    return text_files.undo(node, memory, world, edit, write)


def _has(form: str, text: str, key: list[str], value: Any) -> bool:
    try:
        return has(form, text, key, value)
    except NotEditable:
        return False


def _gone(text: str, form: str, key: list[str], absent: bool) -> bool:
    """Tell whether a key that the node set is no longer there."""
    try:
        return not absent and EDITORS[form].get(text, key) is MISSING
    except NotEditable:
        return False


def undone(text: str, former: str, form: str, key: list[str], value: Any, absent: bool) -> tuple[str, int]:
    """Return the text with the former lines back, and whether others have changed the key (1) or not (0).

    If others have changed lines around it, or other keys are in the same lines, only the value is put back.
    """
    editor = EDITORS[form]
    try:
        new, changed = replacing.reverted(text, former, _edited(former, form, key, value, absent))
        if not changed and hidden.same(text, _edited(new, form, key, value, absent)):
            return new, 0
    except NotEditable:  # without its lines, the text would not be what it was before them
        pass
    try:
        now, was = editor.get(text, key), editor.written(former, key)
        if editor.written(text, key) == was:
            return text, 0
        if now is not MISSING if absent else not _same(form, now, value):
            return text, 1
        return _without(text, former, form, key) if was is MISSING else editor.put(text, key, was), 0
    except NotEditable:  # the node never changed it, or others have changed it so much that it can't be found
        return text, int(text != former)


def _without(text: str, former: str, form: str, key: list[str]) -> str:
    """Return the text without the key, and without the maps that were made for it and have no other key."""
    editor = EDITORS[form]
    text = editor.remove(text, key)
    for depth in range(len(key) - 1, 0, -1) if form != "ini_key" else ():
        above = key[:depth]
        try:
            if editor.get(former, above) is not MISSING or not equal(editor.get(text, above), {}):
                break
            text = editor.remove(text, above)
        except NotEditable:  # it is a table of TOML, whose header stays
            break
    return text


def _edited(text: str, form: str, key: list[str], value: Any, absent: bool) -> str:
    edited: str = EDITORS[form].remove(text, key) if absent else text
    secret = secretive(value)
    if not absent and not has(form, text, key, value):
        edited = EDITORS[form].put(text, key, value, secret)
    return edited
