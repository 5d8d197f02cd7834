"""Repositories in files with sections: those of dnf and zypper, in which two files can define the same repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from statecfg.remote.graph.model import Blob, CheckError, HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources

_HEADER = re.compile(r"\[([^\]]*)\]")
_FIELD = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:]\s*(.*)\Z")
_ON = {"yes": "1", "true": "1", "on": "1", "no": "0", "false": "0", "off": "0"}


class RepositorySection:
    """A repository in a file.

    :param place: where its section begins, for messages
    """

    def __init__(self, place: str, name: str) -> None:
        self.place, self.name = place, name
        self.fields: dict[str, str] = {}


def refuse_conflicts(node: HostNode, world: World, files: Iterable[str], effect: str) -> None:
    """Check that no other file defines the node's repository differently.

    :param files: the other files whose definitions count
    :param effect: what the program does then, for messages
    :raises CheckError: if one does
    """
    path, name = node.attrs["path"], node.attrs["name"]
    text = Blob.of(node.attrs["content"]).read().decode("utf-8", "replace")
    mine = next(each for each in _definitions(path, text.split("\n")) if each.name == name)
    for other in _others(world, path, files):
        different = sorted(
            field
            for field in {*mine.fields, *other.fields}
            if field != "name" and mine.fields.get(field) != other.fields.get(field)
        )
        if other.name == name and different:
            text = "%s defines the repository %s, too, with another value of %s; %s. Remove one of them"
            found = text % (other.place, name, ", ".join(different), effect)
            raise CheckError(found + "; if a node removes it, require that node")


def _others(world: World, path: str, files: Iterable[str]) -> Iterator[RepositorySection]:
    """Yield the repositories of the other files, as far as they are known."""
    for file in files:
        if file == path:
            continue
        try:
            lines = [place.text for place in sources.places(world, file)]
        except (OSError, Unknown):
            continue
        yield from _definitions(file, lines)


def _definitions(path: str, lines: Iterable[str]) -> Iterator[RepositorySection]:
    """Yield the sections of a file. A line that begins with a space continues the value before it."""
    current, key = None, ""
    for number, line in enumerate(lines, 1):
        header, field = _HEADER.match(line), _FIELD.match(line)
        if header:
            if current is not None:
                yield current
            current, key = RepositorySection(f"{path}:{number}", header[1]), ""
        elif current is not None and field:
            key = field[1].lower()
            value = field[2].strip()
            current.fields[key] = _ON.get(value.lower(), value)
        elif current is not None and key and line[:1] in (" ", "\t") and line.strip():
            current.fields[key] = f"{current.fields[key]} {line.strip()}".strip()
    if current is not None:
        yield current
