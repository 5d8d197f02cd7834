"""Directory trees: make a tree match its source, and find entries that no node manages."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.ledger import claims
from statecfg.remote.ledger.records import identities
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class SourceEntry(TypedDict):
        """An entry of a directory's source: a `directory`, a `file` with its content, or a `symlink`."""

        kind: str
        content: NotRequired[Blob]
        executable: NotRequired[bool]
        target: NotRequired[str]


# Emptying one of these would break the host. To do it anyway, name the entries inside.
VITAL = frozenset(
    """
    bin boot dev etc home lib lib64 opt proc root run sbin srv sys tmp usr var
    usr/bin usr/lib usr/sbin usr/share var/lib var/log etc/systemd/system
    """.split()  # noqa: SIM905  # a list of 23 quoted words is harder to read
)


@op(name="mkdir")
def make(machine: Machine, path: str, mode: int | None, owner: str | None, group: str | None) -> Result:
    """Create a directory of the tree."""
    return machine.mkdir(path, mode, owner, group)


@op(name="write")
def put(machine: Machine, path: str, content: Blob, mode: int | None, owner: str | None, group: str | None) -> Result:
    """Write a file of the tree."""
    return machine.write(path, content, mode, owner, group)


@op(name="link")
def link(machine: Machine, path: str, target: str, owner: str | None, group: str | None) -> Result:
    """Create a link of the tree."""
    return machine.symlink(path, target, owner=owner, group=group)


def check(world: World, root: str, node: HostNode, nodes: Mapping[str, HostNode]) -> list[Action]:
    """Return what makes the tree under `root` match the node's source, directories first."""
    tree = node.attrs.get("tree") or {}
    actions = []
    for name in sorted(tree, key=lambda name: (tree[name]["kind"] != "directory", name)):
        actions.extend(_entry(world, posixpath.join(root, name), tree[name], node, nodes))
    return actions


def _entry(world: World, path: str, entry: SourceEntry, node: HostNode, nodes: Mapping[str, HostNode]) -> list[Action]:
    file_type = entry["kind"]
    stat = paths.look(world, path)
    if stat is not None and stat.file_type != file_type and not (file_type == "symlink" and stat.file_type == "file"):
        paths.refuse(path, stat, paths.FILE_TYPES[file_type])
    mode = None
    if file_type == "directory":
        mode = paths.mode_bits(node.attrs.get("mode"), stat, True)
    elif file_type == "file":
        mode = paths.mode_bits(node.attrs.get("file_mode") or ("0755" if entry.get("executable") else "0644"))
    owner, group = node.attrs.get("owner"), node.attrs.get("group")
    if stat is None:
        owner, group = paths.owners(world, node, nodes)
    if file_type == "directory" and stat is None:
        return [make(path, mode, owner, group)]
    if file_type == "symlink" and (stat is None or stat.target != entry["target"]):
        return [link(path, entry["target"], owner, group)]
    actions = paths.attribute_actions(world, path, stat, mode, node, nodes) if stat is not None else []
    if file_type == "file":
        content = entry["content"]
        if paths.needs_write(world, path, stat, content, actions, owner):
            return [put(path, content, mode, owner, group)]
    return actions


def unmanaged(world: World, node: HostNode, nodes: Mapping[str, HostNode], root: str) -> tuple[list[Action], list[str]]:
    """Return what removes everything under `root` that neither the node's source contains nor another node manages.

    :returns: the actions, and a sentence about each entry that stays because another playbook manages it
    """
    root = world.canonical(root)
    own = {posixpath.join(root, name) for name in node.attrs.get("tree") or ()}
    found = (path for other in nodes.values() if other.provides != node.provides for path in managed(other))
    others = {claims.located(world, path) for path in found}
    elsewhere = world.claims.inside(root, node, world) if world.claims is not None else {}
    texts = [f"{path} stays: {owner} manages it" for path, owner in sorted(elsewhere.items()) if owner.playbook]
    if root in elsewhere:
        return [], texts
    others.update(elsewhere)
    if node.attrs.get("exclude"):
        from statecfg.resources.shared import exclusions  # only hosts with such nodes get it

        others.update(exclusions.present(world, root, node.attrs["exclude"]))
    above = {parent for path in own | others for parent in parents(path)}
    return _unmanaged(world, root, own, others, above), texts


def _unmanaged(world: World, root: str, own: set[str], others: set[str], above: set[str]) -> list[Action]:
    actions: list[Action] = []
    for name in world.listdir(root):
        path = posixpath.join(root, name)
        if path in others:  # another node manages this path and what is in it
            continue
        stat = world.stat(path)
        is_directory = stat is not None and stat.file_type == "directory"
        if is_directory and (path in above or path in own):
            actions.extend(_unmanaged(world, path, own, others, above))
        elif path not in own:
            actions.append(paths.remove(path, is_directory))
    return actions


def managed(node: HostNode) -> list[str]:
    """Return the paths that a node manages: all that it writes, see `NodeType.owns`."""
    if node.attrs.get("absent"):
        return []
    found = identities(node)
    return list(dict.fromkeys(claims.paths([*found, *claims.owned(node, found)])))


def parents(path: str) -> list[str]:
    """Return all directories above a path, the nearest first."""
    directories = []
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        directories.append(path)
    return directories
