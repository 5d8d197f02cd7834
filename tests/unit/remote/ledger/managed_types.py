"""Node types for tests of managed resources: one without an undo, and one with several resources."""

from __future__ import annotations

from typing import Any

from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op
from statecfg.remote.machine.world import Machine, World


@op
def put(machine: Machine, path: str) -> Any:
    """Write an empty file."""
    return machine.write(path, Blob.of(""))


@op
def take(machine: Machine, path: str) -> Any:
    """Remove a file."""
    return machine.remove(path)


@node_type
def t_lasting(path: str) -> None:
    """A file that no undo removes."""


@t_lasting.check
def check_lasting(node: HostNode, world: World) -> list[Action]:
    return [] if world.stat(node.attrs["path"]) else [put(node.attrs["path"])]


@node_type
def t_several(name: str, *, paths: list[str]) -> None:
    """Empty files."""


@t_several.identity
def several_identities(attrs: dict[str, Any]) -> list[str]:
    return [f"path:{path}" for path in attrs["paths"]]


@t_several.check
def check_several(node: HostNode, world: World) -> list[Action]:
    return [put(path) for path in node.attrs["paths"] if world.stat(path) is None]


@t_several.remember
def remember_several(node: HostNode, world: World) -> dict[str, Any]:
    return {"new": [path for path in node.attrs["paths"] if world.stat(path) is None]}


@t_several.undo
def undo_several(node: HostNode, memory: dict[str, Any], world: World) -> list[Action]:
    return [take(path) for path in memory["new"] if world.stat(path) is not None]
