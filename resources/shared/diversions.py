"""Diversions of dpkg: which there are, the ops that add and remove one, and the undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class DiversionMemory(TypedDict):
        """The memory of a `diversion`."""

        entry: records.Fields | None


DATABASE = "/var/lib/dpkg/diversions"
LOCAL = ":"  # means the administrator, in place of a package


@facet("diversion")
def diversions(host: World) -> dict[str, records.Fields]:
    """Load the diversions: path → `to`, and `by`, the package that diverts it. Source: db-fsys-divert.c of dpkg."""
    if host.stat(DATABASE) is None:
        raise CheckError("this host has no dpkg, which the node type diversion requires")
    lines = host.read(DATABASE).decode("utf-8", "surrogateescape").splitlines()
    return {lines[at]: {"to": lines[at + 1], "by": lines[at + 2]} for at in range(0, len(lines) - 2, 3)}


@op(mutex="apt")
def divert(machine: Machine, path: str, to: str) -> Result:
    """Divert a path and rename the present file."""
    effect = {"diversion": {path: {"to": to, "by": LOCAL}}, "files": [path, to]}
    return machine.run(["dpkg-divert", "--local", "--rename", "--divert", to, "--add", path], effect)


@op(mutex="apt")
def end_diversion(machine: Machine, path: str, to: str) -> Result:
    """Remove a diversion and rename the file back."""
    effect = {"diversion": {path: None}, "files": [path, to]}
    return machine.run(["dpkg-divert", "--local", "--rename", "--divert", to, "--remove", path], effect)


def check(node: HostNode, world: World) -> list[Action]:
    """Compare the diversion with the wanted one.

    :raises CheckError: if a package diverts the path, or both paths exist
    """
    path = node.attrs["path"]
    to = node.attrs.get("to") or path + ".distrib"
    present = world.entry("diversion", path)
    if present is not None and present["by"] != LOCAL:
        raise CheckError(f"the package {present['by']} diverts {path} to {present['to']}: it stays")
    if node.attrs.get("absent"):
        return [_ended(world, path, present["to"])] if present is not None else []
    if present is not None and present["to"] == to:
        return []
    ended = [_ended(world, path, present["to"])] if present is not None else []
    if not ended:
        _require_free(world, path, to)
    return [*ended, divert(path, to)]


def _ended(world: World, path: str, to: str) -> Action:
    """Return what removes a diversion.

    :raises CheckError: if something else is at the path now
    """
    _require_free(world, to, path)
    return end_diversion(path, to)


def _require_free(world: World, path: str, to: str) -> None:
    """Check that a file can be renamed without replacing another one."""
    if world.apparent(path) is not None and world.apparent(to) is not None:
        raise CheckError(f"{to} exists already, and dpkg-divert would not rename {path}: move one of them away")


def remember(node: HostNode, world: World) -> DiversionMemory:
    """Record the diversion of the path."""
    return {"entry": world.entry("diversion", node.attrs["path"])}


def undo(node: HostNode, memory: DiversionMemory, world: World) -> ActionSpec:
    """Restore the former diversion, or remove the node's."""
    path, was = node.attrs["path"], memory["entry"]
    present = world.entry("diversion", path)
    if present == was:
        return ActionSpec()
    made = None if node.attrs.get("absent") else node.attrs.get("to") or f"{path}.distrib"
    if present is not None and (present["by"] != LOCAL or present["to"] != made):
        return ActionSpec(left=[undoing.stays(f"the diversion of {path}", f"to {present['to']}")])
    actions: list[Action] = []
    if present is not None:
        if world.apparent(path) is not None and world.apparent(present["to"]) is not None:
            return ActionSpec(left=[f"the diversion of {path} stays: there is another file at this path"])
        actions.append(end_diversion(path, present["to"]))
    if was is not None and was["by"] == LOCAL:
        actions.append(divert(path, was["to"]))
    return ActionSpec(actions)
