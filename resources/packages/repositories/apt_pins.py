"""Pins of apt as apt reads them: the first record for a package that matches a version decides about this version."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources

ETC = "/etc/apt"
_MAGIC = re.compile(r"[*?\[]")
# A version and its priority in the output of `apt-cache policy`.
_VERSION = re.compile(r"^ (?:\*\*\*|   ) (\S+) (-?\d+)$", re.M)


class PinRecord:
    """A record: which packages it is for, what it matches, and the priority.

    :ivar place: the line with the packages
    """

    def __init__(self, place: sources.Place, packages: Sequence[str], pin: str, priority: str) -> None:
        self.place, self.packages, self.pin, self.priority = place, packages, pin, priority


def effect(node: HostNode, world: World) -> str:
    """Return the earlier record that decides in place of the node's; "" if none does.

    A record for all packages is a default: one for named packages always wins over it.
    """
    path = node.attrs["path"]
    if node.attrs.get("absent"):
        return ""
    if "apt pins" not in world.memo:
        world.memo["apt pins"] = list(_records(world))
    earlier: list[PinRecord] = []
    for record in world.memo["apt pins"]:
        if record.place.path != path:
            earlier.append(record)
            continue
        for other in earlier:
            shared = _shared(other.packages, record.packages)
            if shared and other.priority != record.priority and _wins(world, other, record, shared):
                return f"apt gives {shared} the priority {other.priority}: {other.place} comes first"
        return ""
    return ""


def _records(world: World) -> Iterator[PinRecord]:
    """Yield the records of all files in the order in which apt reads them."""
    folder = f"{ETC}/preferences.d"
    names = [name for name in sources.names(world, folder) if re.match(r"[A-Za-z0-9_-]+\Z|[\w.-]+\.pref\Z", name)]
    for path in [f"{ETC}/preferences", *(posixpath.join(folder, name) for name in sorted(names))]:
        fields: dict[str, str] = {}
        first = None
        for place in [*sources.places(world, path), sources.Place(path, 0, "")]:
            name, separator, value = place.text.partition(":")
            if separator and not place.text.startswith("#"):
                first = place if name.strip().lower() == "package" else first
                fields[name.strip().lower()] = " ".join(value.split())
            elif not place.text.strip():
                if first is not None:
                    pin, priority = fields.get("pin", ""), fields.get("pin-priority", "")
                    yield PinRecord(first, fields["package"].split(), pin, priority)
                fields, first = {}, None


def _shared(others: Sequence[str], mine: Sequence[str]) -> str:
    """Return a package that both records name, "" if there is none. `*` is not a name."""
    for one in others:
        for two in mine:
            if one == two or (
                "*" not in (one, two) and (fnmatch.fnmatchcase(one, two) or fnmatch.fnmatchcase(two, one))
            ):
                return two if _MAGIC.search(one) else one
    return ""


def _wins(world: World, other: PinRecord, mine: PinRecord, package: str) -> bool:
    """Return whether an earlier record matches the versions of a record, as far as this is known."""
    if other.pin == mine.pin:
        return True
    if _MAGIC.search(package):
        return False
    neither = ("-o", "Dir::Etc::preferencesparts=/dev/null", "-o")
    answers = []
    for options in (
        (),
        (*neither, f"Dir::Etc::preferences={mine.place.path}"),
        (*neither, "Dir::Etc::preferences=/dev/null"),
    ):
        said = sources.answer(world, ["apt-cache", *options, "policy", package], [ETC], "")  # apt may not know it yet
        if said is None:
            return False
        answers.append(dict(_VERSION.findall(said)))
    real, alone, plain = answers
    matched = [version for version, priority in alone.items() if priority == mine.priority != plain.get(version)]
    return any(real.get(version) != mine.priority for version in matched)
