"""Settings that several files can make, such as those of a directory: which file wins. See `NodeType.effect`."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Sequence

from statecfg.remote.graph.model import CheckError, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.shared import paths, text_files

SHOWN = 120  # characters of a line that a message shows


class Place:
    """A line of a file.

    :param path: the file, as the program that reads it finds it
    :param number: the number of the line, from 1
    :param text: the line
    """

    def __init__(self, path: str, number: int, text: str) -> None:
        self.path, self.number, self.text = path, number, text

    def __str__(self) -> str:
        text = self.text.strip()
        return f"line {self.number} of {self.path} ({text[:SHOWN]}{'…' if len(text) > SHOWN else ''})"


def places(world: World, path: str) -> list[Place]:
    """Return the lines of a file without their line ends; none if there is no such file."""
    try:
        text = text_files.content(world, path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Place(path, number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1)]


def in_directories(world: World, directories: Iterable[str], suffix: str = ".conf") -> list[str]:
    """Return the files that programs read which merge several directories, in the order of their names.

    A file in an earlier directory hides those of its name in later ones. Links to /dev/null are left out.
    """
    found: dict[str, str] = {}
    for directory in directories:
        for name in names(world, directory):
            if name.endswith(suffix):
                found.setdefault(name, posixpath.join(directory, name))
    return [found[name] for name in sorted(found) if target(world, found[name]) != "/dev/null"]


def names(world: World, directory: str) -> Sequence[str]:
    """Return the sorted names in a directory; none if it does not exist."""
    try:
        return world.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def expanded(world: World, pattern: str) -> Sequence[str]:
    """Return the files that a pattern names, in their order."""
    directory, name = posixpath.split(pattern)
    if not re.search(r"[*?\[]", name):
        return [pattern]
    found = sorted(each for each in names(world, directory) if fnmatch.fnmatchcase(each, name))
    return [posixpath.join(directory, each) for each in found if not each.startswith(".")]


def target(world: World, path: str) -> str:
    """Return the file to which a path leads; the path itself if its links can't be followed."""
    try:
        return paths.followed(world, path)
    except CheckError:
        return path


def answer(world: World, argv: Sequence[str], inputs: Sequence[str], sign: str) -> str | None:
    """Ask the program that decides; return its answer, None if it can't be asked.

    :param inputs: the paths on which the answer depends: a plan that changes them can't ask
    :param sign: a string that each valid answer contains
    :raises CheckError: if the program answers nonsense
    """
    try:
        probe = world.probe(argv, inputs=("settings", list(inputs)))
    except Unknown:
        return None
    if probe.status != 0:
        return None
    if sign not in probe.text:
        said = probe.text.strip().splitlines()[:1] or ["nothing"]
        raise CheckError(f"`{' '.join(argv)}` gave an answer that statecfg does not understand: {said[0][:SHOWN]}")
    return probe.text
