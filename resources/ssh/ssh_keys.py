"""Key pairs of SSH: their check, the ops that let the host's ssh-keygen make them, and the undo."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine import process
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import files, paths, restore
from statecfg.resources.tls import tls


def public(path: str) -> str:
    """Return the path of the public key that belongs to a private key."""
    return path + ".pub"


@op
def create_pair(
    machine: Machine,
    path: str,
    algorithm: str,
    bits: int | None = None,
    comment: str = "",
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
) -> Result:
    """Create a key pair. The private key never leaves the host."""
    sizes = {"ecdsa": 256, "rsa": 3072}
    argv = ["ssh-keygen", "-q", "-t", algorithm, "-N", "", "-C", comment]
    if algorithm in sizes:
        argv += ["-b", str(bits or sizes[algorithm])]

    def perform() -> Result:
        assert isinstance(machine, RealMachine)
        # ssh-keygen does not write files in one step, so it writes them into a directory that only its user can read.
        with tempfile.TemporaryDirectory(prefix="statecfg-") as directory:
            made = os.path.join(directory, "key")
            outcome = process.run([*argv, "-f", made], 600.0, apart=True)
            if outcome.reason or outcome.status:
                lines = (outcome.errors or outcome.output).decode("utf-8", "replace").strip().splitlines()
                return error("ssh-keygen: %s" % (outcome.reason or (lines[-1] if lines else "it failed")))
            with open(made, "rb") as private, open(public(made), "rb") as other:
                contents = private.read(), other.read()
        written = machine.write(path, contents[0], mode=mode, owner=owner, group=group)
        if written["status"] != "ok":
            return written
        return machine.write(public(path), contents[1], mode=0o644, owner=owner, group=group)

    tls.show_new(machine, path, f"a new {algorithm} key", mode, owner, group)
    tls.show_new(machine, public(path), "its public key", 0o644, owner, group)
    # A plan runs nothing: it only knows that the content of the files is another one afterwards.
    return machine.run([*argv, "-f", path], {"files": [path, public(path)]}, first=perform)


@op
def publish(machine: Machine, path: str, owner: str | None = None, group: str | None = None) -> Result:
    """Write the public key that belongs to an existing private key."""
    return tls.made(machine, ["ssh-keygen", "-y", "-f", path], "", public(path), mode=0o644, owner=owner, group=group)


def _public(node: HostNode) -> HostNode:
    """Return the public key's file as a node."""
    attrs = {**node.attrs, "path": public(node.attrs["path"]), "mode": 0o644}
    return HostNode(node.provides, node.type, node.requires, attrs)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Create what is missing, and compare mode, owner and group of what exists.

    :raises CheckError: if something else is at one of the paths
    """
    attrs, path = node.attrs, node.attrs["path"]
    absent = bool(attrs.get("absent"))
    private, other = paths.look(world, path), paths.look(world, public(path))
    files.check_type(public(path), other, absent)
    if private is None and not absent:
        paths.require_parent(world, path, node, nodes)
        owner, group = paths.owners(world, node, nodes)
        mode, comment = paths.mode_bits(attrs["mode"]), attrs.get("comment") or ""
        return [create_pair(path, attrs["algorithm"], attrs.get("bits"), comment, mode=mode, owner=owner, group=group)]
    actions = tls.check_key(node, nodes, world)
    if absent:
        return [*actions, paths.remove(public(path))] if other is not None else actions
    if other is None:
        owner, group = paths.owners(world, node, nodes)
        return [*actions, publish(path, owner=owner, group=group)]
    return [*actions, *paths.attribute_actions(world, public(path), other, 0o644, _public(node), nodes)]


def remember(node: HostNode, world: World) -> dict[str, tls.PrivateKeyMemory]:
    """Record the public key, and mode, owner and group of the private key; its content if the node removes it."""
    gone = HostNode(node.provides, node.type, node.requires, {"path": public(node.attrs["path"]), "absent": True})
    return {"private": tls.remember_key(node, world), "public": tls.remember_key(gone, world)}


def undo(node: HostNode, memory: Any, world: World) -> ActionSpec:
    """Remove the files that the node created, or restore mode, owner and group of older ones.

    A public key whose private key was missing gets its content back, too.
    """
    restoring = restore.Restore(world, {})
    tls.put_back(restoring, node, memory["private"])
    replaced = memory["private"]["was"] is None and memory["public"]["was"] is not None
    if replaced and not node.attrs.get("absent"):
        restoring.back(public(node.attrs["path"]), memory["public"]["was"], ("file",))
    else:
        tls.put_back(restoring, _public(node), memory["public"])
    return restoring.spec()
