"""What the node type `directory` leaves alone: entries that match the patterns of `exclude`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from statecfg.remote.machine.world import World


def excluded(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern matches a path, or one of the directories above it.

    :param name: the path, relative to the directory of the node
    :param patterns: see `exclude` of the node type
    """
    parts = name.split("/")
    for pattern in patterns:
        wanted = pattern.strip("/").split("/")
        anchored = "/" in pattern.rstrip("/")
        for start in range(1 if anchored else len(parts)):
            part = parts[start : start + len(wanted)]
            if len(part) == len(wanted) and all(map(fnmatchcase, part, wanted)):
                return True
    return False


def present(world: World, root: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield the paths below `root` that are excluded, without those below them."""
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        for name in world.listdir(directory):
            path = posixpath.join(directory, name)
            if excluded(posixpath.relpath(path, root), patterns):
                yield path
                continue
            stat = world.stat(path)
            if stat is not None and stat.file_type == "directory":
                waiting.append(path)
