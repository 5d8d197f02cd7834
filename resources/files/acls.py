"""Access lists: the form of their entries, the op, the comparison, the snapshot and its restoration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine import access_lists
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths

if TYPE_CHECKING:
    from typing import TypedDict

    class AclMemory(TypedDict):
        """The memory of an `acl`: the entries for users and groups, such as ``user:deploy:r-x``."""

        entries: list[str]


_ENTRY = re.compile(r"(default:)?(user|group):([^:\s]+):([r-]?[w-]?[x-]?)\Z")
_BITS = {"r": 4, "w": 2, "x": 1, "-": 0}


@op
def set_acl(machine: Machine, path: str, entries: list[str]) -> Result:
    """Give the path these entries for users and groups, and no others."""
    return access_lists.replace(machine, path, [(*key, allowed) for key, allowed in parsed(entries).items()])


def parsed(entries: Iterable[str]) -> dict[tuple[str, str], int]:
    """Return type and name → permissions of entries such as ``user:deploy:rwx``.

    :raises ValueError: if an entry has another form, or two are for the same user or group
    """
    found: dict[tuple[str, str], int] = {}
    for text in entries:
        match = _ENTRY.match(text)
        if match is None or not match.group(4):
            raise ValueError(f"entries: {text} is not an entry; write user:NAME:rwx or default:group:NAME:r-x")
        default, tag, name, letters = match.groups()
        key = ("default " if default else "") + tag, name
        if key in found:
            raise ValueError("entries: there are two for %s:%s" % key)
        found[key] = sum(_BITS[letter] for letter in letters)
    return found


def texts(entries: Mapping[tuple[str, str], int]) -> list[str]:
    """Return entries as text, sorted."""
    return sorted(f"{tag.replace(' ', ':')}:{name}:{letters(allowed)}" for (tag, name), allowed in entries.items())


def letters(allowed: int) -> str:
    """Return permissions as letters, such as ``r-x``."""
    return "".join(letter if allowed & _BITS[letter] else "-" for letter in "rwx")


def present(stat: Stat) -> dict[tuple[str, str], int]:
    """Return the entries of a path for users and groups."""
    return {(tag, name): allowed for tag, name, allowed in stat.acl if tag != "owning group"}


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the entries with the host.

    :raises CheckError: if the path can't have them
    """
    attrs, path = node.attrs, node.attrs["path"]
    stat = world.stat(path)
    if stat is None and attrs.get("absent"):
        return []
    if stat is None:
        raise CheckError(f"{path} does not exist; require the node that creates it")
    if stat.file_type not in ("file", "directory"):
        paths.refuse(path, stat, "a file or directory")
    wanted = {}
    for (tag, name), allowed in parsed(attrs.get("entries") or ()).items():
        wanted[tag, paths.account(world, _facet(tag), name, node, nodes) or name] = allowed
        if " " in tag and stat.file_type != "directory":
            raise CheckError(f"{path} is not a directory, so it can't have default entries")
        if " " not in tag:
            _check_mask(path, stat, f"{tag}:{name}", allowed)
    now = present(stat)
    after = wanted if attrs.get("exact") or attrs.get("absent") else {**now, **wanted}
    return [set_acl(path, texts(after))] if after != now else []


def _check_mask(path: str, stat: Stat, who: str, allowed: int) -> None:
    mask = stat.mode >> 3 & 7
    if allowed & ~mask:
        limited = (path, stat.mode, who, letters(allowed), letters(mask), letters(allowed | mask))
        raise CheckError("%s has mode %04o, which limits %s:%s to %s; a mode with %s for the group allows it" % limited)


def remember(node: HostNode, world: World) -> AclMemory:
    """Record the present entries."""
    stat = world.stat(node.attrs["path"])
    return {"entries": texts(present(stat)) if stat is not None else []}


def undo(node: HostNode, memory: AclMemory, world: World) -> ActionSpec:
    """Give the entries that the node set or removed their former permissions, unless others have changed them since."""
    attrs, path = node.attrs, node.attrs["path"]
    stat, was = world.stat(path), _by_account(memory["entries"])
    if stat is None or stat.file_type not in ("file", "directory"):
        return ActionSpec([])
    wanted = parsed(attrs.get("entries") or ()).items()
    made: dict[str, Any] = dict.fromkeys(was) if attrs.get("exact") or attrs.get("absent") else {}
    made.update(_by_account(texts({(tag, _shown(world, tag, name)): allowed for (tag, name), allowed in wanted})))
    now = _by_account(texts(present(stat)))
    back, left = undoing.reverted(was, made, now, lambda who: f"the entry {who} of {path}")
    for who, allowed in back.items():
        tag, _, name = who.rpartition(":")
        if allowed is not None and not name.isdigit() and world.entry(_facet(tag), name) is None:
            back[who] = None
            left.append(f"{path} does not get the entry of {name} back: {name} no longer exists")
    after = sorted(f"{who}:{allowed}" for who, allowed in {**now, **back}.items() if allowed is not None)
    return ActionSpec([set_acl(path, after)] if after != texts(present(stat)) else [], left=left)


def _by_account(entries: Iterable[str]) -> dict[str, str]:
    """Return the permissions by account, such as ``default:user:deploy`` → ``r-x``."""
    return {who: allowed for who, _, allowed in (text.rpartition(":") for text in entries)}


def _facet(tag: str) -> str:
    return "users" if tag.endswith("user") else "groups"


def _shown(world: World, tag: str, name: str) -> str:
    """Return the name that the host shows for a user or group, which is given by name or number."""
    field = "uid" if _facet(tag) == "users" else "gid"
    accounts = world.facet(_facet(tag)).items() if name.isdigit() else ()
    return next((key for key, entry in accounts if entry.get(field) == int(name)), name)
