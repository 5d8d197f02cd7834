"""Repositories of pacman: the file of a repository, the line of pacman.conf that includes it, and its lists."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import package_manager, package_steps
from statecfg.resources.shared import drop_ins, files, paths, sources, whole

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
_HEADER = re.compile(r"[ \t]*\[([^\]]+)\]")
DEPTH = 10  # files that include each other


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that pacman finds in its whole configuration. pacman does nothing else then."""
    return whole.errors(machine, "pacman", "--deptest", mark="error:")


write = whole.writer("pacman", "pacman.conf", refusal)


@op(mutex="pacman.conf")
def include(machine: Machine, path: str) -> Result:
    """Let pacman.conf include a file: add a line at the end."""
    text = machine.read(CONFIGURATION).decode("utf-8", "surrogateescape")
    new = text + ("" if text.endswith("\n") or not text else "\n") + f"Include = {path}\n"
    result: Result = write.function(machine, CONFIGURATION, Blob.of(new.encode("utf-8", "surrogateescape")))
    return result


@op(mutex="pacman.conf")
def leave_out(machine: Machine, path: str) -> Result:
    """Remove the line of pacman.conf that includes a file."""
    text = machine.read(CONFIGURATION).decode("utf-8", "surrogateescape")
    lines = [line for line in text.splitlines(True) if _INCLUDE.findall(line) != [path]]
    return machine.write(CONFIGURATION, "".join(lines).encode("utf-8", "surrogateescape"))


@op(mutex="pacman")
def fetch_lists(machine: Machine, path: str) -> Result:
    """Fetch the lists of all repositories; pacman can't fetch those of a single one.

    If there are none of the repository then, pacman.conf leaves it out again, because pacman would install nothing.

    :param path: the file of the repository
    """
    result = machine.run(["pacman", "-Sy", "--noconfirm"], {"files": [LISTS]}, timeout=package_steps.TIMEOUT)
    if result["status"] != "ok" and machine.stat(f"{LISTS}/{posixpath.basename(path)[:-5]}.db") is None:
        undone: Result = leave_out.function(machine, path)
        left = "leaves it out" if undone["status"] == "ok" else f"still includes it ({undone['reason']})"
        text = "%s; %s %s, because pacman installs nothing without these lists"
        result = {**result, "reason": text % (result["reason"], CONFIGURATION, left)}
    return result


def included(world: World, path: str) -> bool:
    """Return whether pacman.conf includes a file.

    :raises CheckError: if the host has no pacman.conf
    """
    if world.stat(CONFIGURATION) is None:
        raise CheckError(f"{CONFIGURATION} does not exist")
    patterns = _INCLUDE.findall(world.read(CONFIGURATION).decode("utf-8", "surrogateescape"))
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def refuse_conflicts(node: HostNode, world: World) -> None:
    """Check that no other file defines the node's repository.

    :raises CheckError: if one does
    """
    for name, place in _defined(world, CONFIGURATION, node.attrs["path"], DEPTH):
        if name == node.attrs["name"]:
            text = "%s:%d defines the repository %s, too; pacman then refuses to work. Remove one of them"
            found = text % (place.path, place.number, name)
            raise CheckError(found + "; if a node removes it, require that node")


def _defined(world: World, path: str, without: str, depth: int) -> Iterator[tuple[str, sources.Place]]:
    """Yield the repositories of a file and of those that it includes, as far as they are known.

    :param without: a file that does not count
    """
    try:
        lines = sources.places(world, path) if path != without and depth else []
    except (OSError, Unknown):
        return
    for place in lines:
        header, pattern = _HEADER.match(place.text), _INCLUDE.match(place.text)
        if header:
            yield header[1], place
        for name in _matching(world, pattern[1]) if pattern else ():
            yield from _defined(world, name, without, depth - 1)


def _matching(world: World, pattern: str) -> list[str]:
    """Return the files that an `Include` names, as far as they are known."""
    directory, name = posixpath.split(pattern)
    try:
        names = sources.names(world, directory)
    except (OSError, Unknown):
        return []
    return [f"{directory}/{each}" for each in names if fnmatch.fnmatchcase(each, name)]


def _list(node: HostNode) -> str:
    return f"{LISTS}/{node.attrs['name']}.db"


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file of a repository, whether pacman.conf includes it, and whether pacman has its lists.

    :raises CheckError: if the host has another package manager, or if another file defines the repository; see also
        `drop_ins.compare`
    """
    package_manager.require(world, node, "pacman")
    path, absent = node.attrs["path"], bool(node.attrs.get("absent"))
    actions = drop_ins.compare(node, nodes, world, write)
    if not absent:
        refuse_conflicts(node, world)
    if included(world, path) is absent and not (absent and not _own_line(world, path)):
        # pacman fails if a file that it includes does not exist.
        actions.insert(0, leave_out(path)) if absent else actions.append(include(path))
    if not absent and node.attrs.get("fetch") and (actions or world.stat(_list(node)) is None):
        actions.append(fetch_lists(path))
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
