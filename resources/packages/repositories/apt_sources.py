"""The sources of apt in all its files: a repository that two files define differently makes apt unusable."""

from __future__ import annotations

import re
from collections.abc import Iterator

from statecfg.remote.graph.model import Blob, CheckError, HostNode, Unknown
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources, whole

LIST, DIRECTORY = "/etc/apt/sources.list", "/etc/apt/sources.list.d"
# Options that must be equal wherever a repository is defined: field → name in a line of a `.list` file.
OPTIONS = {"Signed-By": "signed-by", "Trusted": "trusted"}
_TRUTH = {"true": "yes", "on": "yes", "1": "yes", "enable": "yes", "with": "yes"}
_FALSE = {"false": "no", "off": "no", "0": "no", "disable": "no", "without": "no"}


class Source:
    """A repository in one of apt's files.

    :param place: where it is defined, for messages
    :param options: the values of `OPTIONS`, "" if there are none
    """

    def __init__(self, place: str, uri: str, suite: str, options: dict[str, str]) -> None:
        self.place, self.options = place, options
        self.name = (uri.rstrip("/") + "/", suite)


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that apt finds in its whole configuration. apt uses no network for this."""
    return whole.complaints(machine, "apt-cache", "policy", mark="E:")


write = whole.writer("apt", "apt", refusal)


def refuse_conflicts(node: HostNode, world: World) -> None:
    """Check that no other file defines a repository of the node with another key or trust.

    :raises CheckError: if one does
    """
    path = node.attrs["path"]
    text = Blob.of(node.attrs["content"]).read().decode("utf-8", "replace")
    own = {source.name: source for source in _deb822(path, text)}
    for other in _others(world, path):
        mine = own.get(other.name)
        if mine is None:
            continue
        for field, value in mine.options.items():
            there = other.options[field]
            if value != there and not (field == "Signed-By" and _first_is_empty(path, mine, other, field)):
                what = f"{field}: {_short(there)}" if there else f"no {field}"
                text = (
                    "%s defines %s %s with %s, and this node with %s; apt then refuses all sources. Remove one of them"
                )
                wanted = f"{field}: {_short(value)}" if value else f"no {field}"
                raise CheckError(
                    text % (other.place, *other.name, what, wanted) + "; if a node removes it, require that node"
                )


def effect(node: HostNode, world: World) -> str:
    """Return the other file because of which apt still uses a repository that the node switches off, or ""."""
    if node.attrs.get("absent"):
        return ""
    path = node.attrs["path"]
    text = Blob.of(node.attrs["content"]).read().decode("utf-8", "replace")
    if next(_deb822(path, text), None) is not None:
        return ""
    own = {source.name for source in _deb822(path, re.sub(r"(?mi)^Enabled:.*\n", "", text))}
    for other in _others(world, path):
        if other.name in own:
            file, _, number = other.place.rpartition(":")
            return f"apt still uses {' '.join(other.name)}: line {number} of {file} defines it, too"
    return ""


def _first_is_empty(path: str, mine: Source, other: Source, field: str) -> bool:
    """Return whether apt reads the definition without a key first: then it accepts both."""
    theirs = other.place.rpartition(":")[0]
    first = other if theirs == LIST or theirs < path else mine
    return not first.options[field]


def _short(value: str) -> str:
    return value if len(value) < 80 and "\n" not in value else "a key in the file"


def _others(world: World, path: str) -> Iterator[Source]:
    """Yield the sources of all other files, as far as they are known."""
    files = [LIST, *(f"{DIRECTORY}/{name}" for name in sources.names(world, DIRECTORY))]
    for file in files:
        if file == path or not (file == LIST or file.endswith((".list", ".sources"))):
            continue
        try:
            lines = [place.text for place in sources.places(world, file)]
        except (OSError, Unknown):
            continue
        yield from _lines(file, lines) if file.endswith(".list") else _deb822(file, "\n".join(lines))


def _lines(path: str, lines: list[str]) -> Iterator[Source]:
    """Yield the sources of a file with one source per line. Source: sources.list(5)."""
    for number, line in enumerate(lines, 1):
        found = re.match(r"\s*deb(?:-src)?\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+([^\s#]+)", line)
        if found:
            pairs = dict(word.partition("=")[::2] for word in (found[1] or "").split())
            options = {field: _value(field, pairs.get(name, "")) for field, name in OPTIONS.items()}
            yield Source(f"{path}:{number}", found[2], found[3], options)


def _deb822(path: str, text: str) -> Iterator[Source]:
    """Yield the sources of a file in the format deb822."""
    number = 1
    for part in re.split(r"(\n[ \t]*\n)", text):
        fields: dict[str, str] = {}
        key = ""
        for line in part.split("\n"):
            if line[:1] in (" ", "\t") and key:
                fields[key] += "\n" + line.strip()
            elif ":" in line and not line.startswith("#"):
                key = line.partition(":")[0].strip().lower()
                fields[key] = line.partition(":")[2].strip()
        if fields.get("enabled", "yes").lower() not in ("no", *_FALSE):
            options = {field: _value(field, fields.get(field.lower(), "")) for field in OPTIONS}
            for uri in fields.get("uris", "").split():
                for suite in fields.get("suites", "").split():
                    yield Source(f"{path}:{number}", uri, suite, options)
        number += part.count("\n")


def _value(field: str, text: str) -> str:
    if field == "Trusted":
        return _TRUTH.get(text.lower()) or _FALSE.get(text.lower()) or text.lower()
    return "\n".join(line for line in text.strip().split("\n") if line not in ("", "."))
