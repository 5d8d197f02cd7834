"""Repositories of pacman: the file of a repository, the line of pacman.conf that includes it, and its lists."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, files, package_manager, package_steps, paths

if TYPE_CHECKING:
    from typing import TypedDict

    class PacmanRepositoryMemory(TypedDict):
        """The memory of a `pacman_repository`.

        :ivar included: whether pacman.conf included its file
        :ivar lists: whether pacman had its lists
        """

        file: files.FileMemory
        included: bool
        lists: bool


CONFIGURATION = "/etc/pacman.conf"
LISTS = "/var/lib/pacman/sync"
_INCLUDE = re.compile(r"^[ \t]*Include[ \t]*=[ \t]*(\S+)", re.M)


@op(mutex="pacman.conf")
def include(machine: Machine, path: str) -> Result:
    """Let pacman.conf include a file: add a line at the end."""
    text = machine.read(CONFIGURATION).decode("utf-8", "surrogateescape")
    whole = text + ("" if text.endswith("\n") or not text else "\n") + f"Include = {path}\n"
    return machine.write(CONFIGURATION, whole.encode("utf-8", "surrogateescape"))


@op(mutex="pacman.conf")
def leave_out(machine: Machine, path: str) -> Result:
    """Remove the line of pacman.conf that includes a file."""
    text = machine.read(CONFIGURATION).decode("utf-8", "surrogateescape")
    lines = [line for line in text.splitlines(True) if _INCLUDE.findall(line) != [path]]
    return machine.write(CONFIGURATION, "".join(lines).encode("utf-8", "surrogateescape"))


@op(mutex="pacman")
def fetch_lists(machine: Machine) -> Result:
    """Fetch the lists of all repositories; pacman can't fetch those of a single one."""
    return machine.run(["pacman", "-Sy", "--noconfirm"], {"files": [LISTS]}, timeout=package_steps.TIMEOUT)


def included(world: World, path: str) -> bool:
    """Return whether pacman.conf includes a file.

    :raises CheckError: if the host has no pacman.conf
    """
    if world.stat(CONFIGURATION) is None:
        raise CheckError(f"{CONFIGURATION} does not exist")
    patterns = _INCLUDE.findall(world.read(CONFIGURATION).decode("utf-8", "surrogateescape"))
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _list(node: HostNode) -> str:
    return f"{LISTS}/{node.attrs['name']}.db"


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file of a repository, whether pacman.conf includes it, and whether pacman has its lists.

    :raises CheckError: if the host has another package manager; see also `drop_ins.compare`
    """
    package_manager.require(world, node, "pacman")
    path, absent = node.attrs["path"], bool(node.attrs.get("absent"))
    actions = drop_ins.check(node, nodes, world)
    if included(world, path) is absent and not (absent and not _own_line(world, path)):
        # pacman fails if a file that it includes does not exist.
        actions.insert(0, leave_out(path)) if absent else actions.append(include(path))
    if not absent and node.attrs.get("fetch") and (actions or world.stat(_list(node)) is None):
        actions.append(fetch_lists())
    return actions


def _own_line(world: World, path: str) -> bool:
    """Return whether a line includes only this file, and not a pattern that matches others, too."""
    return path in _INCLUDE.findall(world.read(CONFIGURATION).decode("utf-8", "surrogateescape"))


def remember(node: HostNode, world: World) -> PacmanRepositoryMemory:
    """Record the file, whether pacman.conf includes it, and whether pacman has its lists."""
    return {
        "file": files.remember(node, world),
        "included": included(world, node.attrs["path"]),
        "lists": world.stat(_list(node)) is not None,
    }


def undo(node: HostNode, memory: PacmanRepositoryMemory, world: World) -> ActionSpec:
    """Restore the former file and the line, or remove the repository and its lists."""
    path, spec = node.attrs["path"], files.undo(node, memory["file"], world)
    if not memory["included"] and _own_line(world, path):
        spec.actions.insert(0, leave_out(path))
    elif memory["included"] and not included(world, path):
        spec.actions.append(include(path))
    if not memory["lists"] and not node.attrs.get("absent") and world.stat(_list(node)) is not None:
        spec.actions.append(paths.remove(_list(node)))
    return spec
