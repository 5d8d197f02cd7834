"""Repositories of dnf and zypper: the file of a repository, and the key that signs its packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, HostNode
from statecfg.remote.graph.nodetype import NodeType, facet
from statecfg.remote.graph.ops import Op, op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_manager
from statecfg.resources.packages.managers.rpm import rpm
from statecfg.resources.packages.repositories import rpm_key_users
from statecfg.resources.shared import drop_ins, files, records

if TYPE_CHECKING:
    from typing import TypedDict

    class RpmRepositoryMemory(TypedDict):
        """The memory of a repository of dnf or zypper: its files, and the keys that rpm accepted already."""

        file: files.FileMemory
        key: files.FileMemory | None
        keys: list[str]


KEYS = "/etc/pki/rpm-gpg"
KEY = KEYS + "/RPM-GPG-KEY-"  # and the name of the repository


@facet("rpm_keys")
def rpm_keys(host: Any) -> dict[str, records.Fields]:
    """Load the keys whose signatures rpm accepts: VERSION-RELEASE of each gpg-pubkey package, one per key.

    :raises CheckError: if rpm fails
    """
    return {line: {} for line in rpm.query(host, ["--query", "--all", "--queryformat", rpm.KEY_FORMAT, rpm.KEYS])}


@op(mutex="rpm")
def import_key(machine: Machine, path: str, keys: list[str]) -> Result:
    """Let rpm accept the signatures of the keys in a file."""
    return machine.run([rpm.PROGRAM, "--import", path], {"rpm_keys": {key: {} for key in keys}})


@op(mutex="rpm")
def forget_key(machine: Machine, keys: list[str]) -> Result:
    """Let rpm no longer accept the signatures of these keys."""
    argv = [rpm.PROGRAM, "--erase", "--", *(f"{rpm.KEYS}-{key}" for key in keys)]
    return machine.run(argv, {"rpm_keys": dict.fromkeys(keys)})


@op
def make_directory(machine: Machine, path: str) -> Result:
    """Make the directory of the keys."""
    return machine.mkdir(path, parents=True)


def register(node_type: NodeType[...], directory: str) -> None:
    """Let a node type manage repositories in a directory. Its files and that of its key are its identities."""
    node_type.identity(lambda attrs: [f"path:{directory}{attrs['name']}.repo", "path:" + KEY + attrs["name"]])
    node_type.blobs(blobs)
    node_type.remember(remember)
    node_type.undo(undo)


def key_file(node: HostNode) -> HostNode | None:
    """Return a node that manages the file with the key; None if the repository has no such file."""
    attrs = node.attrs
    if not attrs.get("key_path"):
        return None
    own = {"path": attrs["key_path"], "absent": bool(attrs.get("absent")), "mode": 0o644}
    own.update(content=attrs.get("key_content"), owner="root", group="root")
    return HostNode(node.provides, node.type, node.requires, own)


class RpmManager:
    """A package manager, as far as it differs from the others.

    :param name: the name of its program
    :param write: the op that writes the file of a repository, with the parameters of `files.write`
    :param fetch_lists: the op that fetches the lists of a repository
    :param listed: returns whether the package manager has the lists of a repository
    :param refuse_conflicts: checks that no other file defines the node's repository differently
    """

    def __init__(
        self,
        name: str,
        write: Callable[..., Action],
        fetch_lists: Op,
        listed: Callable[[World, str], bool],
        refuse_conflicts: Callable[[HostNode, World], None],
    ) -> None:
        self.name, self.write, self.fetch_lists = name, write, fetch_lists
        self.listed, self.refuse_conflicts = listed, refuse_conflicts


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World, manager: RpmManager) -> list[Action]:
    """Compare the files of a repository and its key, whether rpm accepts the key, and whether there are lists.

    :raises CheckError: if the host has another package manager, or if another file defines the repository
        differently; see also `drop_ins.compare`
    """
    package_manager.require(world, node, manager.name)
    name, key, absent, actions = node.attrs["name"], key_file(node), node.attrs.get("absent"), []
    if key is not None:
        if not absent and world.stat(KEYS) is None:
            actions.append(make_directory(KEYS))
            content = Blob.of(key.attrs["content"])
            actions.append(files.write(key.attrs["path"], content, 0o644, "root", "root"))
        else:
            actions += drop_ins.check(key, nodes, world)
    keys = node.attrs.get("keys") or []
    if key is not None and keys and not absent and any(world.entry("rpm_keys", each) is None for each in keys):
        actions.append(import_key(key.attrs["path"], keys))
    actions += drop_ins.compare(node, nodes, world, manager.write)
    if not absent:
        manager.refuse_conflicts(node, world)
    if not absent and node.attrs.get("fetch") and (actions or not manager.listed(world, name)):
        actions.append(manager.fetch_lists(name))
    return actions


def blobs(node: HostNode, world: World) -> list[Blob]:
    """Return the content that the host lacks."""
    key = key_file(node)
    return [*files.blobs(node, world), *(files.blobs(key, world) if key is not None else ())]


def remember(node: HostNode, world: World) -> RpmRepositoryMemory:
    """Record the files, and which keys rpm accepts already."""
    key = key_file(node)
    return {
        "file": files.remember(node, world),
        "key": files.remember(key, world) if key is not None else None,
        "keys": sorted(each for each in node.attrs.get("keys") or () if world.entry("rpm_keys", each) is not None),
    }


def undo(
    node: HostNode, memory: RpmRepositoryMemory, world: World, to_remove: Mapping[str, HostNode] | None = None
) -> ActionSpec:
    """Restore the former files, or remove the repository and its key. A key that another repository uses stays.

    :raises CheckError: if the key of a repository can't be read
    """
    spec, key, was = files.undo(node, memory["file"], world), key_file(node), memory["key"]
    if key is not None and was is not None:
        more = files.undo(key, was, world)
        spec.actions.extend(more.actions)
        spec.left.extend(more.left)
    new = [each for each in node.attrs.get("keys") or () if each not in memory["keys"]]
    imported = [each for each in new if world.entry("rpm_keys", each) is not None]
    if imported and key is not None and not node.attrs.get("absent"):
        others = [str(other.attrs.get("path")) for other in (to_remove or {}).values() if other.type == node.type]
        there = world.stat(key.attrs["path"]) is not None
        users = (
            rpm_key_users.users(world, node.attrs["path"], key.attrs["path"], others) if there else ["its file is gone"]
        )
        if users:
            text = "rpm still accepts the key gpg-pubkey-%s, because another repository may use it: %s"
            spec.left += [text % (each, ", ".join(users)) for each in imported]
        else:
            spec.actions.insert(0, forget_key(imported))  # while its file is there, an interrupted undo can continue
    return spec
