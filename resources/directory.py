"""Directories: mode and owner, whole trees, and the removal of unmanaged entries."""

from __future__ import annotations

from statecfg.remote.graph.model import Blob, CheckError, Unknown
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op
from statecfg.resources import _before, _paths, _tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, ActionSpec, Node, Result
    from statecfg.remote.graph.values import AbsolutePath, LocalPath, Mode, NodeOptions, Owner, OwnerGroup
    from statecfg.remote.machine.world import Machine, World


@node_type
def directory(
    path: AbsolutePath,
    *,
    mode: Optional[Mode] = None,
    owner: Optional[Owner] = None,
    group: Optional[OwnerGroup] = None,
    parents: bool = False,
    source: Optional[LocalPath] = None,
    file_mode: Optional[Mode] = None,
    purge: bool = False,
    follow: bool = False,
    absent: bool = False,
    recursive: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a directory, alone or with a tree of files.

    If you omit mode, owner or group, an existing directory keeps its own; a new directory gets mode 0755. With
    `source`, `mode` also applies to every directory of the source, and `owner` and `group` to everything in the source.
    They do not apply to other entries of the directory.

    Undo: statecfg removes what the node created, from the files of the source to the parent directories. It removes a
    directory only if nothing else is in it. It restores what the node replaced, purged or removed. For this, it keeps
    up to 10,000 files and 64 MiB, at most 200 levels deep; the plan of the removal lists what it did not keep.

    :param path: the path of the directory
    :param mode: permission bits as an octal string, such as ``"0755"``
    :param owner: user who owns it, by name or number
    :param group: group that owns it, by name or number
    :param parents: also create missing parent directories
    :param source: a local directory, next to the playbook or in the project's ``files/``; its files are copied into
        this directory
    :param file_mode: permission bits of the files of the source; default: 0755 for executable files, 0644 for others
    :param purge: remove everything in the directory that is not in the source and that no other node manages
    :param follow: if the path is a link, manage the directory that it points to
    :param absent: the directory must not exist
    :param recursive: with `absent`: remove the directory and everything in it; without `recursive`, only an empty
        directory is removed

    In YAML::

        - directory: /etc/nginx/conf.d
          source: conf.d
          purge: true

    In Python::

        directory("/srv/shop", owner="deploy", group="deploy", mode="0750")
    """


@op
def mkdir(
    machine: Machine,
    path: str,
    mode: Optional[int] = None,
    owner: Optional[str] = None,
    group: Optional[str] = None,
    parents: bool = False,
) -> Result:
    """Make a directory."""
    return machine.mkdir(path, mode, owner, group, parents)


directory.claims(_paths.path_claim)


@directory.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse attributes that contradict each other, and the removal of what holds the system."""
    _paths.refuse_with_absent(attrs, ("path", "absent", "recursive"))
    if attrs.get("recursive") and not attrs.get("absent"):
        raise ValueError("recursive goes with absent; parents makes the directories above")
    if attrs.get("file_mode") and not attrs.get("source"):
        raise ValueError("file_mode is for the files of a source, and none is given")
    destructive = attrs.get("purge") or attrs.get("recursive")
    if destructive and attrs["path"].strip("/") in _tree.VITAL:
        raise ValueError("%s holds the system: it is not emptied" % attrs["path"])


@directory.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Read the source, so that only its content crosses the wire."""
    source = node.attrs.get("source")
    if source is None:
        return node
    return node.with_attrs(tree=context.tree(node, source), source=None)


@directory.blobs
def blobs(node: Node, world: World) -> List[Blob]:
    """Return the content of those files of the source that the host's files don't have."""
    lacking = []
    for name, entry in (node.attrs.get("tree") or {}).items():
        if entry["kind"] == "file":
            try:
                if world.digest(node.attrs["path"] + "/" + name) == entry["content"].sha256:
                    continue
            except (OSError, Unknown):  # not there, or not yet to be seen: then it is needed
                pass
            lacking.append(entry["content"])
    return lacking


@directory.check
def check(node: Node, nodes: Mapping[str, Node], world: World) -> List[Action]:
    """Compare the directory, then the tree in it, then look for what nobody manages."""
    attrs = node.attrs
    path = _paths.followed(world, attrs["path"]) if attrs.get("follow") else attrs["path"]
    if attrs.get("absent"):
        return removal(world, path, bool(attrs.get("recursive")))
    actions: List[Action] = []
    stat = _paths.look(world, path)
    if stat is None:
        if not attrs.get("parents"):
            _paths.require_parent(world, path, node, nodes)
        owner, group = _paths.owners(world, node, nodes)
        mode = _paths.mode_bits(attrs.get("mode"))
        actions.append(mkdir(path, mode, owner, group, bool(attrs.get("parents"))))
    else:
        if stat.kind != "directory":
            help = "follow: true manages what it leads to" if stat.kind == "symlink" else ""
            _paths.refuse(path, stat, "a directory", help)
        actions.extend(_paths.attribute_actions(world, path, stat, _paths.mode_bits(attrs.get("mode")), node, nodes))
    actions.extend(_tree.check(world, path, node, nodes))
    if attrs.get("purge") and stat is not None:
        actions.extend(_tree.unmanaged(world, node, nodes, path))
    return actions


def removal(world: World, path: str, recursive: bool) -> List[Action]:
    """Return what removes the directory. Raises CheckError where that would take more than was asked for."""
    stat = world.stat(path)
    if stat is None:
        return []
    if stat.kind != "directory":
        _paths.refuse(path, stat, "a directory", "a %s node with absent: true removes it" % stat.kind)
    if not recursive and world.listdir(path):
        inside = world.listdir(path)
        shown = ", ".join(inside[:3]) + (" and %d more" % (len(inside) - 3) if len(inside) > 3 else "")
        raise CheckError("%s is not empty (%s); recursive: true removes it with all that is in it" % (path, shown))
    return [_paths.remove(path, recursive)]


@directory.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down the directory, and of what is in it all that the node may replace or remove."""
    attrs = node.attrs
    path = _before.followed(world, attrs["path"], bool(attrs.get("follow")))
    looking = _before.Looking(world)
    was, tree = looking.entry(path), attrs.get("tree") or {}
    inside: Dict[str, Any] = {}
    complete = was is None
    if was is not None and was["kind"] == "directory":
        try:
            if attrs.get("purge") or attrs.get("recursive"):
                inside = looking.inside(path)
            elif tree:
                inside = looking.inside(path, tree)
            complete = bool(tree or attrs.get("purge") or attrs.get("recursive"))
        except LookupError as problem:
            looking.lost.append("%s: what was in it is not remembered" % problem)
    above = _before.missing_above(world, path)
    return looking.memory(path=path, was=was, above=above, inside=inside, complete=complete, source=sorted(tree))


@directory.undo
def undo(
    node: Node, memory: Mapping[str, Any], world: World, leaving: Optional[Mapping[str, Node]] = None
) -> ActionSpec:
    """Bring back what was there, directories first; then take away what is ours, directories last."""
    undoing = _before.Undoing(world, memory, leaving)
    attrs, path, was = node.attrs, memory["path"], memory["was"]
    now = world.stat(path)
    if attrs.get("absent"):
        if was is not None:
            if attrs.get("recursive") and not memory["complete"]:
                undoing.left.append("what was in %s does not come back: it is not known" % path)
            undoing.back_if_missing(path, was)
            _before.bring_back(undoing, memory, attrs)
        return undoing.spec()
    if now is not None and now.kind != "directory":
        undoing.left.append("%s is %s by now: it stays" % (path, _paths.KINDS[now.kind]))
        return undoing.spec()
    if now is None and was is not None:
        undoing.back_if_missing(path, was)
    _before.bring_back(undoing, memory, attrs)
    if now is not None and was is not None:
        undoing.attributes(path, now, was, _before.given(attrs))
    elif now is not None:
        undoing.remove(path, now)
    undoing.remove_above(path, memory["above"])
    return undoing.spec()
