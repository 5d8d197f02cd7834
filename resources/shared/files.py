"""Files with their content: the op, the snapshot and its restoration."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import ActionSpec, Blob, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.ledger.records import SAID
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths, records, restore, snapshot

if TYPE_CHECKING:
    from typing import NotRequired

    class FileMemory(snapshot.BackedUp):
        """The memory of a `file`.

        :ivar written: whether the node had content at its first apply
        :ivar ours: see `learn_content`
        """

        was: snapshot.PathRecord | None
        written: bool
        ours: NotRequired[str]


SMALL = 64 << 10  # bytes
NOTHING = "nothing"  # the content of a node that has written none: no file is like it
FOLLOW = "follow: true manages the file that it points to"
HELP = FOLLOW + ", replace: true replaces the link"


def small(args: Mapping[str, Any]) -> bool:
    """Tell whether writing a file takes only a moment."""
    return args["validate"] is None and args["backup"] is None and args["content"].size <= SMALL


@op(quick=small)
def write(
    machine: Machine,
    path: str,
    content: Blob,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
    replace: bool | None = None,
) -> Result:
    """Write a file with this content. If this run has created a link at the path, fail and keep the link.

    :param replace: replace such a link
    """
    now = machine.apparent(path)
    if now is not None and now.file_type == "symlink" and not replace:
        return error("%s is a link to %s, not a file: this run created it; %s" % (path, now.target, HELP))
    return machine.write(path, content, mode, owner, group, backup, validate)


def with_digest(machine: Machine, path: str, result: Result) -> Result:
    """Return the result of a write with the digest of the content, for `learn_content`. A plan does not know it."""
    from statecfg.remote.machine.real import RealMachine  # the controller does not need it

    if result["status"] != "ok" or not isinstance(machine, RealMachine):
        return result
    return {**result, "said": {"content": _digest(machine, path, machine.stat(path))}}


def _digest(world: World, path: str, stat: Stat | None) -> str:
    return f"sha256:{world.digest(path)} ({stat.size if stat is not None else 0} bytes)"


def blobs(node: HostNode, world: World) -> list[Blob]:
    """Return the content, unless the file on the host already has it."""
    content = node.attrs.get("content")
    if not isinstance(content, Blob):
        return []
    try:
        return [] if world.digest(node.attrs["path"]) == content.sha256 else [content]
    except (OSError, Unknown):
        return [content]


def sha256(node: HostNode, world: World) -> str:
    """Return the digest of the file's content, as hexadecimal digits."""
    return world.digest(node.attrs["path"])


def stays(attrs: records.Attrs, found: object) -> bool:
    """Tell whether the node leaves the content of a file as it is, because the file exists (`create_only`).

    :param found: the file; None if it does not exist
    """
    return bool(attrs.get("create_only")) and found is not None


def link_maker(world: World, path: str) -> str | None:
    """Return a required node that may still make a link at a path where nothing is now, None if there is none.

    Directories such as `conf.d` are for files of others: packages make no links there.
    """
    if posixpath.dirname(path).endswith(".d"):
        return None
    if world.is_known(path) or world.apparent(path) is not None:
        return None
    try:
        world.stat(path)
    except Unknown as unknown:
        return unknown.cause
    return None


def check_type(path: str, stat: Stat | None, absent: bool, help: str = FOLLOW) -> None:
    """Check that the path is a file, or nothing.

    :param help: what to do about a link
    :raises CheckError: if it is something else
    """
    if absent and stat is not None and stat.file_type == "directory":
        paths.refuse(path, stat, "a file", "a directory node with absent: true removes it")
    if not absent and stat is not None and stat.file_type != "file":
        paths.refuse(path, stat, "a file", help if stat.file_type == "symlink" else "")


def remember(node: HostNode, world: World) -> FileMemory:
    """Record the file. If the node does not set its content, record the content only of a small file."""
    attrs = node.attrs
    path = snapshot.followed(world, attrs["path"], bool(attrs.get("follow")))
    # A `download` has a URL instead of content.
    written = attrs.get("content") is not None or attrs.get("url") is not None
    written = written and not stays(attrs, world.apparent(path))
    snap = snapshot.Snapshot(world, snapshot.REMEMBERED if written or attrs.get("absent") else snapshot.SMALL)
    memory: FileMemory = {"path": path, "was": snap.entry(path), "written": written}
    if attrs.get("backup"):
        memory["backup"] = snap.kept(path, attrs["backup"])
    return snap.with_lost(memory) if written or attrs.get("absent") else memory


def learn_content(node: HostNode, memory: FileMemory, world: World, said: Mapping[str, str]) -> dict[str, str]:
    """Record the digest of content that the node itself does not have, because the host made or fetched it.

    :param said: what the action said: other nodes may have changed the file since
    """
    if said.get("content"):
        return {"ours": said["content"]}
    if node.attrs.get("url") is not None and node.attrs.get("content") is None:
        # Only the action knows what it fetched. What is there without it came from others.
        plain: Any = memory
        return {"ours": memory.get("ours") or (plain.get(SAID) or {}).get("content") or NOTHING}
    stat = None if node.attrs.get("absent") else world.stat(memory["path"])
    if stat is None or stat.file_type != "file":
        return {}
    return {"ours": _digest(world, memory["path"], stat)}


def undo(node: HostNode, memory: FileMemory, world: World) -> ActionSpec:
    """Restore the former file, or remove the node's file."""
    attrs = node.attrs
    path, was = memory["path"], memory["was"]
    restoring = restore.Restore(world, memory)
    if attrs.get("absent"):
        if was is not None:
            restoring.back_if_missing(path, was)
    elif memory["written"] or (attrs.get("content") is not None and not stays(attrs, was)):
        restoring.back(path, was, ("file",), {**attrs, "content": memory.get("ours") or attrs.get("content")})
        restore.back_up(restoring, memory, attrs.get("backup"))
    elif was is not None:
        restoring.restore_attributes(path, was, restore.managed_attributes(attrs), attrs)
    return restoring.spec()
