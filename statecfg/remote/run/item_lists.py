"""Lists of items for nodes with `for_each_host`: paths, users, mounts, and lines that a read-only command prints.

A list that can't be made raises an exception. It never counts as empty, because the items of earlier runs would be
removed.
"""

from __future__ import annotations

import fnmatch
import re
import time
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

from statecfg.remote.graph.model import LEARNED, Blob, CheckError, Unknown
from statecfg.remote.graph.names import MOST_ITEMS
from statecfg.remote.machine.paths import normal
from statecfg.remote.machine.planned import Planned
from statecfg.remote.run.decisions import followed

Item = Dict[str, str]

LARGEST = 256 << 10  # bytes of all items of one node
VISITED = 100_000  # names that the search for paths reads
TIMEOUT = 30.0  # seconds for one list
USERS = "/etc/passwd"


def items(spec: Mapping[str, Any], world: Planned) -> List[Item]:
    """Return the items of a list, sorted: field → text.

    :param spec: as `statecfg.graph.host_items` returns it
    :raises Unknown: if they can't be known yet
    :raises CheckError: if there are too many, or one can't be used
    :raises OSError: if they can't be read
    """
    list_name = next(list_name for list_name in _LISTS if list_name in spec)
    until = time.monotonic() + TIMEOUT
    found: List[Item] = []
    size = 0
    for item in _LISTS[list_name](spec, world):
        for text in item.values():
            _refuse(text)
            size += len(text.encode())
        found.append(item)
        if len(found) > MOST_ITEMS or size > LARGEST:
            raise CheckError(f"its list has more than {MOST_ITEMS} items or {LARGEST} bytes; make it smaller")
        if time.monotonic() > until:
            raise CheckError(f"its list is not complete after {int(TIMEOUT)} seconds; make it smaller")
    found.sort(key=lambda item: list(item.values()))
    return [item for at, item in enumerate(found) if at == 0 or item != found[at - 1]]


def _refuse(text: str) -> None:
    """Refuse an item that no attribute and no report can contain.

    :raises CheckError: if it contains a control character, a secret, or bytes that are not text
    """
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise CheckError(f"its list contains {text!a}, which is not valid UTF-8")
    if not text.isprintable() or text != text.strip():
        what = "begins or ends with a blank, or contains a character that can't be printed"
        raise CheckError(f"its list contains {text!a}, which {what}")
    data = text.encode()
    if any(secret in data for secret in Blob.secrets) or any(secret in text for secret in LEARNED):
        raise CheckError("its list contains an item with a secret, which names and files would show")


def _paths(spec: Mapping[str, Any], world: Planned) -> Iterator[Item]:
    file_type = spec.get("is")
    until, visited = time.monotonic() + TIMEOUT, 0
    directories = [""]
    parts = normal(spec["glob"])[1:].split("/")
    for depth, part in enumerate(parts):
        wild = re.search(r"[*?\[]", part) is not None
        matches = re.compile(fnmatch.translate(part)).match
        found = []
        for above in directories:
            if not wild:
                names = [part]
            else:
                real = followed(above or "/", world)
                stat = world.stat(real)
                names = world.listdir(real) if stat is not None and stat.file_type == "directory" else []
            visited += len(names)
            if visited > VISITED or time.monotonic() > until:
                raise CheckError(f"its pattern {spec['glob']} matches too much: make it narrower")
            hidden = part[:1] == "."
            chosen = [name for name in names if not wild or (matches(name) and (hidden or name[:1] != "."))]
            found += [f"{above}/{name}" for name in chosen]
        directories = found if depth + 1 == len(parts) else [path for path in found if _is(path, "directory", world)]
    for path in directories:
        if world.stat(path) is not None and (file_type is None or _is(path, file_type, world)):
            yield {"match": path}


def _is(path: str, file_type: str, world: Planned) -> bool:
    stat = world.stat(path if file_type == "link" else followed(path, world))
    return stat is not None and stat.file_type == ("symlink" if file_type == "link" else file_type)


def _users(spec: Mapping[str, Any], world: Planned) -> Iterator[Item]:
    """Yield the users of /etc/passwd, and those that nodes add. Other sources may be out of reach for a while."""
    limits = spec["users"]
    users = world.facet("users")
    planned = world.facets.get("users", {})
    if not any(fields.get("uid") == 0 for fields in users.values()):
        raise CheckError("its list of users can't be read: it does not contain root")
    if world.stat(USERS) is not None:
        lines = world.read(USERS).decode("utf-8", "surrogateescape").split("\n")
        local = {line.partition(":")[0] for line in lines}.union(planned)
        users = {name: fields for name, fields in users.items() if name in local}
    group = limits.get("group")
    members = None
    if group is not None:
        members = world.entry("groups", group)
        if members is None:
            raise CheckError(f"its list needs the group {group}, which does not exist")
    for name, fields in users.items():
        if name in planned and any(fields.get(key) is None for key in ("uid", "gid", "home", "shell")):
            raise Unknown(world.ticks[planned[name][1]], f"the user {name} is")
        if not limits.get("min_uid", 0) <= fields["uid"] <= limits.get("max_uid", fields["uid"]):
            continue
        names_of_group = (
            *(members or {}).get("members", ()),
            *(name for one in fields.get("groups", ()) if one == group),
        )
        if members is not None and name not in names_of_group and members.get("gid") != fields["gid"]:
            continue
        texts = {key: str(fields[key]) for key in ("uid", "gid", "home", "shell")}
        yield dict({"name": name}, **texts)


def _mounts(spec: Mapping[str, Any], world: Planned) -> Iterator[Item]:
    types = spec["mounts"].get("type")
    mounts = world.facet("mount")
    if not mounts:
        raise CheckError("its list of mounts can't be read: it is empty")
    for path, fields in mounts.items():
        if types is None or fields["fstype"] in types:
            yield {"path": path, "device": fields["source"], "type": fields["fstype"]}


def _lines(spec: Mapping[str, Any], world: Planned) -> Iterator[Item]:
    argv = list(spec["command"])
    inputs = ("files", [world.canonical(path) for path in spec["reads"]])
    probe = world.probe(argv, TIMEOUT, inputs=inputs)
    if probe.status != 0:
        why = probe.errors.decode("utf-8", "replace").strip()[-500:]
        ended = "can't be run or was stopped" if probe.status < 0 else f"ended with the exit status {probe.status}"
        raise CheckError(f"its command {argv[0]} {ended}{': ' + why if why else ''}")
    if len(probe.output) > LARGEST:
        raise CheckError(f"its command prints more than {LARGEST} bytes")
    for line in probe.output.decode("utf-8", "surrogateescape").split("\n"):
        if line.strip():
            yield {"line": line.strip()}


_LISTS = {"glob": _paths, "users": _users, "mounts": _mounts, "command": _lines}


class Insertion:
    """Puts one item into the attributes of a node.

    :param samples: sample → its field, the characters that it must not contain or begin with, and its maximum length
    :param item: field → text
    """

    def __init__(self, samples: Mapping[str, Tuple[str, str, str, int]], item: Item) -> None:
        self.samples, self.item = samples, item
        self.pattern = re.compile("|".join(map(re.escape, samples)))
        self.bytes = re.compile(self.pattern.pattern.encode())

    def text(self, sample: str) -> str:
        """Return what replaces a sample.

        :raises CheckError: if the node can't take it
        """
        field, inside, first, longest = self.samples[sample]
        text = self.item[field]
        if not text or (sample[:1] == "/" and text[:1] != "/"):
            raise CheckError(f"the {field} of its item {next(iter(self.item.values()))} is {text!r}")
        letters = {"é" if letter > "~" else letter for letter in text}
        wrong = sorted(letters.intersection(inside)) or sorted({text[:1]}.intersection(first))
        if wrong:
            raise CheckError(f"its item {text} contains {wrong[0]!r} where this node can't take it")
        if len(text.encode()) > longest:
            raise CheckError(f"its item {text} is longer than {longest} bytes, which this node takes")
        return text

    def into(self, value: Any, secret: bool = False, name: str = "") -> Any:
        """Return an attribute with the item in place of samples.

        :param secret: whether the attribute contains a secret
        :param name: the name of the attribute
        :raises CheckError: if the item would have another meaning there than plain text
        """
        if isinstance(value, str):
            return self._line(value, name) if self.pattern.search(value) else value
        if isinstance(value, Blob) and (value.data is not None or value.path is not None):
            data = value.read()
            if not self.bytes.search(data):
                return value
            value = Blob.of(self.bytes.sub(lambda match: self.text(match.group().decode()).encode(), data))
            value.secret = secret or None
            return value
        if isinstance(value, dict):
            return {key: self.into(inner, secret, name) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.into(inner, secret, name) for inner in value]
        return value

    def _line(self, value: str, name: str) -> str:
        result, end = "", 0
        for match in self.pattern.finditer(value):
            before = value[end : match.start()]
            text = self.text(match.group())
            result += before
            inside = "/" in (result[:1], result[-1:], value[match.end() : match.end() + 1])
            if inside and match.group()[:1] != "/" and ("/" in text or text in (".", "..")):
                raise CheckError(f"its item {text} is part of a path, so it must be one name")
            if not result and text[:1] == "-" and name != "env":
                raise CheckError(f"its item {text} begins with `-`: a program could read it as an option")
            result += "" if text == "/" and value[match.end() : match.end() + 1] == "/" else text
            end = match.end()
        result += value[end:]
        if result[:1] == "/" and ".." in result.split("/"):
            raise CheckError(f"its item makes the path {result}, which contains `..`")
        return result


def names(labels: Iterable[str], most: int = 10) -> str:
    """Return names for a message."""
    listed = list(labels)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
