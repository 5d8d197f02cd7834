"""Whether sshd uses a user's file with keys: which files it reads, in which order, and whose modes it refuses."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import Stat, World
from statecfg.resources.shared import records, sources
from statecfg.resources.ssh import ssh_files

DEBIAN = "/etc/debian_version"
DEFAULT = ".ssh/authorized_keys .ssh/authorized_keys2"
# A line is options, type, key and comment. Quotes in the options protect blanks.
_LINE = re.compile(r'\s*(?:((?:[^\s"]|"(?:\\.|[^"\\])*")+)\s+)??((?:ssh|ecdsa|sk)-\S+)\s+(\S+)')


class KeyLine:
    """A line with a key.

    :ivar key: its type and the key
    :ivar options: the restrictions, "" without any
    """

    def __init__(self, place: sources.Place, key: str, options: str) -> None:
        self.place, self.key, self.options = place, key, options


def keys(world: World, path: str) -> Iterator[KeyLine]:
    """Yield the lines of a file that have a key."""
    for place in sources.places(world, path):
        found = _LINE.match(place.text)
        if found and not place.text.lstrip().startswith("#"):
            yield KeyLine(place, f"{found[2]} {found[3]}", found[1] or "")


def files_of(world: World, user: str, home: str) -> tuple[list[str], sources.Place | None]:
    """Return the files that sshd reads for a user, in its order, and the line that sets them."""
    text, place = ssh_files.setting(world, user, "authorizedkeysfile", DEFAULT)
    uid = str((world.entry("users", user) or {}).get("uid"))
    tokens = {"%h": home, "%u": user, "%U": uid, "%%": "%"}
    found = []
    for word in text.split():
        path = re.sub(r"%[huU%]", lambda token: tokens[token[0]], word.strip('"'))
        found += [posixpath.join(home, path)] if path.lower() != "none" else []
    return found, place


def effect(node: HostNode, world: World) -> str:
    """Return the reason why sshd does not use the node's keys as they are defined; "" if it does."""
    attrs, user = node.attrs, node.attrs["user"]
    entry = world.entry("users", user)
    if world.stat(ssh_files.MAIN) is None or entry is None or not entry.get("home"):
        return ""
    home = str(entry["home"])
    path = posixpath.join(home, ".ssh/authorized_keys")
    read, place = files_of(world, user, home)
    if attrs.get("absent"):
        return _elsewhere(world, attrs["key"], [other for other in read if other != path])
    if path not in read:
        listed = f"reads {', '.join(read)}" if read else "reads no file"
        return f"sshd does not read {path}: for {user} it {listed}{f', because of {place}' if place else ''}"
    for name, wrong, default in (("pubkeyauthentication", "no", "yes"), ("permitrootlogin", "no", "yes")):
        value, place = ssh_files.setting(world, user, name, default)
        if value.lower() == wrong and (user == "root" or name != "permitrootlogin"):
            return f"sshd accepts no keys of {user}: {place or f'{name} is {value}'}"
    why = _denied(world, user) or refused(world, user, home, path)
    return why or _earlier(world, attrs, read[: read.index(path)])


def _denied(world: World, user: str) -> str:
    """Return the line because of which sshd lets a user not log in, or not with a key; "" if there is none."""
    why = ssh_files.denied(world, user)
    if why:
        return f"sshd does not let {user} log in: {why}"
    methods, place = ssh_files.setting(world, user, "authenticationmethods", "any")
    if methods.strip('"') != "any" and not re.search(r"\bpublickey\b", methods):
        return f"sshd accepts no keys of {user}: {place or f'authenticationmethods is {methods}'}"
    return ""


def _elsewhere(world: World, key: str, others: Sequence[str]) -> str:
    """Return where the absent key still is."""
    wanted = " ".join(key.split()[:2])
    for other in others:
        for line in keys(world, other):
            if line.key == wanted:
                return f"the key still lets in: sshd also reads {line.place}"
    return ""


def _earlier(world: World, attrs: records.Fields, others: Sequence[str]) -> str:
    """Return the earlier file that has the key with other restrictions."""
    if attrs.get("all_keys") is not None:
        return ""
    key = " ".join(str(attrs["key"]).split()[:2])
    options = ",".join(attrs.get("restrictions") or ())
    for other in others:
        for line in keys(world, other):
            if line.key == key and line.options != options:
                return f"sshd uses {line.place}, which comes first"
    return ""


def refused(world: World, user: str, home: str, path: str) -> str:
    """Return the mode or owner that makes sshd ignore a file with keys; "" if it reads the file.

    Source: StrictModes in sshd_config(5). The file and all directories up to the home directory count. Debian's sshd
    accepts that the group may write, if only the user is in it.
    """
    if ssh_files.setting(world, user, "strictmodes", "yes")[0].lower() == "no":
        return ""
    uid = str((world.entry("users", user) or {}).get("uid"))
    allowed = 0o002 if world.stat(DEBIAN) is not None and _alone(world, user) else 0o022
    here, top = sources.target(world, path), sources.target(world, home)
    while True:
        stat: Stat | None = world.stat(here)
        if stat is not None and stat.file_type == "symlink":
            here = sources.target(world, here)
            stat = world.stat(here)
        if stat is not None and stat.owner not in ("root", "0", user, uid):
            return f"sshd refuses keys of {user}: {here} belongs to {stat.owner} (StrictModes)"
        if stat is not None and stat.mode & (allowed if stat.group in (user, "root") else 0o022):
            mode = f"{stat.mode:04o}"
            return f"sshd refuses keys of {user}: group or others may write {here}, mode {mode} (StrictModes)"
        if here in (top, "/"):
            return ""
        here = posixpath.dirname(here)


def _alone(world: World, user: str) -> bool:
    """Return whether the primary group of a user has the user's name and no other member."""
    group = world.entry("groups", user) or {}
    entry = world.entry("users", user) or {}
    return group.get("gid") == entry.get("gid") is not None and not set(group.get("members") or ()) - {user}
