"""The configuration of sshd as sshd reads it: with its included files, in their order, and with Match blocks."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from statecfg.remote.graph.model import HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources

MAIN = "/etc/ssh/sshd_config"
DIRECTORY = "/etc/ssh"
PROGRAM = "/usr/sbin/sshd"
UNITS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
GENERATOR = "/usr/lib/systemd/system-generators/sshd-socket-generator"  # of Ubuntu since 24.04
# Files with options of sshd's command line: Debian's, and that of Fedora and SUSE.
STARTED_WITH = {"/etc/default/ssh": "SSHD_OPTS", "/etc/sysconfig/sshd": "OPTIONS", "/etc/sysconfig/ssh": "SSHD_OPTS"}
DEEPEST = 16  # levels of included files that sshd follows
# Several lines of these add up; of all other settings, the first line counts. Source: sshd_config(5).
ADDING = frozenset((
    "acceptenv", "allowgroups", "allowusers", "denygroups", "denyusers", "hostcertificate", "hostkey", "listenaddress",
    "permitlisten", "permitopen", "port", "setenv", "subsystem",
))  # fmt: skip
SAME = {"without-password": "prohibit-password", "true": "yes", "false": "no"}


class Directive:
    """A setting, an Include or a Match.

    :ivar keyword: its name in lower case
    :ivar text: its values
    :ivar blocks: the criteria of the Match blocks that contain it, the outer one first
    """

    def __init__(self, place: sources.Place, keyword: str, text: str, blocks: tuple[str, ...]) -> None:
        self.place, self.keyword, self.text, self.blocks = place, keyword, text, blocks

    @property
    def value(self) -> str:
        """The values in a form in which they can be compared."""
        words = [word.strip('"') for word in self.text.split()]
        return " ".join(SAME.get(word.lower(), word) for word in words).lower()

    @property
    def always(self) -> bool:
        """Whether the line counts for every connection."""
        return all(block.strip().lower() == "all" for block in self.blocks)


def read(world: World) -> list[Directive]:
    """Return the lines of the whole configuration, in the order in which sshd reads them."""
    if "sshd lines" not in world.memo:
        world.memo["sshd lines"] = list(lines_of(world, MAIN, server_block))
    lines: list[Directive] = world.memo["sshd lines"]
    return lines


def server_block(keyword: str, text: str) -> str:
    """Return the criteria of the block that a line of sshd's configuration begins; "" if it begins none."""
    return text if keyword == "match" else ""


def lines_of(
    world: World, path: str, begins: Callable[[str, str], str], outer: tuple[str, ...] = (), depth: int = 0
) -> Iterator[Directive]:
    """Yield the lines of a file of ssh or sshd, and those of the files that it includes, in their order.

    :param begins: tells from a keyword and its values which block the line begins, as `server_block`
    :param outer: the blocks that contain the file
    """
    blocks = outer  # a block of an included file ends with the file
    for place in sources.places(world, path):
        found = re.match(r"\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+)(.*?)\s*$", place.text)
        if not found:
            continue
        keyword, text = found[1].lower(), re.sub(r"\s+#.*", "", found[2])
        criteria = begins(keyword, text)
        if criteria:
            blocks = (*outer, criteria)
        line = Directive(place, keyword, text, blocks)
        yield line
        if keyword == "include" and depth < DEEPEST:
            for pattern in text.split():
                for included in sources.expanded(world, posixpath.join(DIRECTORY, pattern.strip('"'))):
                    yield from lines_of(world, included, begins, blocks, depth + 1)


def effect(node: HostNode, world: World) -> str:
    """Return the line that wins over a line of the node's file; "" if none does."""
    path = node.attrs["path"]
    if node.attrs.get("absent") or world.stat(MAIN) is None:
        return ""
    lines = read(world)
    mine = [line for line in lines if line.place.path == path and line.keyword not in ("match", "include")]
    if not mine and not any(line.place.path == path for line in lines):
        text = world.read(path).decode("utf-8", "replace")
        empty = not re.search(r"^\s*[^#\s]", text, re.M)
        return "" if empty else f"sshd does not read {path}: no Include of {MAIN} names it"
    includes = [line for line in lines if line.keyword == "include" and line.blocks and not line.always]
    for include in includes:
        patterns = [posixpath.join(DIRECTORY, each) for each in include.text.split()]
        inside = [line for line in mine if line.blocks[: len(include.blocks)] == include.blocks]
        if inside and any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            block = f"{include.place} is in the block Match {include.blocks[-1]}"
            return f"sshd reads {path} only for some connections: {block}"
    winners = {id(line): _winner(lines, line) for line in mine}
    asked = _asked(world, [line for line in mine if not line.blocks])
    for line in mine:
        winner = winners[id(line)]
        if winner is not None and (asked is None or line.blocks or line.keyword in asked):
            after = winner.always and winner.blocks and not line.blocks
            how = "overrides it for all connections" if after else "comes first"
            return f"sshd uses {winner.keyword} {winner.text}: {winner.place} {how}"
    why = _option(world, mine) or _socket(world, mine)
    if why:
        return why
    wrong = next(iter(asked or {}), None)
    if wrong is not None:
        return f"sshd does not use {wrong} of {path}: `sshd -T` answers {(asked or {})[wrong]}"
    return ""


def _option(world: World, lines: Sequence[Directive]) -> str:
    """Return the option of sshd's command line that wins over one of these lines."""
    for path, variable in STARTED_WITH.items():
        for place in sources.places(world, path):
            found = re.match(rf"\s*{variable}\s*=\s*([\"']?)(.*)\1\s*$", place.text)
            given = re.findall(r"-o\s*[\"']?(\w+)[=\s]\s*([^\s\"']+)|-(p)\s*(\d+)", found[2]) if found else ()
            for name, value, port, number in given:
                keyword = "port" if port else name.lower()
                used = SAME.get(value.lower(), value.lower() or number)
                if any(line.keyword == keyword and line.value != used for line in lines):
                    return f"sshd uses {keyword} {value or number}: {place} is on its command line"
    return ""


def _socket(world: World, lines: Sequence[Directive]) -> str:
    """Return the socket of systemd that listens in place of sshd, and not on the ports of these lines."""
    ports = [line for line in lines if line.keyword == "port"]
    if not ports or world.stat(GENERATOR) is not None:  # it makes the socket listen on sshd's ports
        return ""
    for name in ("ssh.socket", "sshd.socket"):
        if world.stat(f"/etc/systemd/system/sockets.target.wants/{name}") is None:
            continue
        units = [f"{folder}/{name}" for folder in UNITS if world.stat(f"{folder}/{name}") is not None][:1]
        drop_ins = sources.in_directories(world, [f"{folder}/{name}.d" for folder in UNITS])
        streams: list[sources.Place] = []
        for place in (place for path in [*units, *drop_ins] for place in sources.places(world, path)):
            key, separator, value = map(str.strip, place.text.partition("="))
            if separator and key == "ListenStream":
                streams = [*streams, place] if value else []
        listening = {place.text.strip().rpartition("=")[2].rpartition(":")[2].strip() for place in streams}
        missing = next((line for line in ports if line.value not in listening), None)
        if missing is not None:
            where = streams[0] if streams else f"it has no ListenStream={missing.value}"
            return f"sshd does not use port {missing.text}: systemd listens for it with {name}, {where}"
    return ""


def _winner(lines: Sequence[Directive], mine: Directive) -> Directive | None:
    """Return the line that sshd uses in place of a line; None if it is this line, or if both have the same value."""
    if mine.keyword in ADDING:
        return None
    same = [line for line in lines if line.keyword == mine.keyword]
    # A block overrides all lines outside of blocks, also earlier ones. Within each, the first line counts.
    rivals = [line for line in same if line.blocks and line.always] if not mine.blocks else []
    rivals += [line for line in same if (line.blocks == mine.blocks) or (mine.blocks and line.blocks and line.always)]
    first = rivals[0]
    return None if first is mine or first.place.path == mine.place.path or first.value == mine.value else first


def _asked(world: World, lines: Sequence[Directive]) -> dict[str, str] | None:
    """Ask sshd which settings it uses.

    Settings on the command line win. So if they change sshd's answer, it did not use them.

    :returns: the settings that it does not use, each with its answer; None if it can't be asked
    """
    if not lines:
        return {}
    options = [part for line in lines for part in ("-o", f"{line.keyword} {line.text}")]
    plain = settings(world)
    wanted = sources.answer(world, [PROGRAM, "-T", *options], [DIRECTORY, PROGRAM], "port ") if plain else None
    if plain is None or wanted is None:
        return None
    present = set(plain.splitlines())
    missing = [line.partition(" ")[0] for line in wanted.splitlines() if line not in present]
    names = {line.keyword for line in lines}
    found = {}
    for name in missing:
        if name in names:
            found[name] = next((line for line in plain.splitlines() if line.partition(" ")[0] == name), "nothing")
    return found


def settings(world: World, user: str | None = None) -> str | None:
    """Return the settings that sshd uses, for all connections or for a user; None if it can't be asked.

    :raises CheckError: if its answer is nonsense
    """
    who = ["-C", f"user={user},host=localhost,addr=127.0.0.1"] if user is not None else []
    said = sources.answer(world, [PROGRAM, "-T", *who], [DIRECTORY, PROGRAM], "port ")
    return None if said is None else "\n" + said


def setting(world: World, user: str, name: str, default: str) -> tuple[str, sources.Place | None]:
    """Return the value that sshd uses for a user, and the line that sets it, as far as it is known.

    :param name: the setting in lower case
    """
    if world.stat(MAIN) is None:
        return default, None
    lines = [line for line in read(world) if line.keyword == name]
    matching = [line for line in lines if line.blocks and all(_matches(world, block, user) for block in line.blocks)]
    first = next(iter([*matching, *(line for line in lines if not line.blocks)]), None)
    said = settings(world, user)
    if said is not None:
        values = [line.partition(" ")[2] for line in said.splitlines() if line.partition(" ")[0] == name]
        return " ".join(values) or default, first.place if first is not None else None
    return (first.text, first.place) if first is not None else (default, None)


def patterns(world: World, user: str, name: str) -> tuple[list[str], sources.Place | None]:
    """Return the patterns of all lines of a setting that adds up, and its first line, as far as they are known.

    :param name: the setting in lower case, such as `allowusers`
    """
    lines = [line for line in read(world) if line.keyword == name]
    lines = [line for line in lines if all(_matches(world, block, user) for block in line.blocks)]
    said = settings(world, user)
    texts = [line.text for line in lines]
    if said is not None:
        answers = (line.partition(" ") for line in said.splitlines())
        texts = [value for keyword, _, value in answers if keyword == name]
    return [word.strip('"') for text in texts for word in text.split()], lines[0].place if lines else None


def denied(world: World, user: str) -> str:
    """Return the line because of which sshd does not let a user log in, from any address; "" if there is none."""
    for name in ("DenyUsers", "AllowUsers", "DenyGroups", "AllowGroups"):
        candidates = [user] if name.endswith("Users") else groups_of(world, user)
        items, place = patterns(world, user, name.lower())
        # Lists may also contain USER@ADDRESS: whether that denies or allows depends on the connection.
        users = [each.partition("@")[0] if name == "AllowUsers" else each for each in items]
        named = any(listed(each, ",".join(users)) for each in candidates)
        if items and candidates and named == name.startswith("Deny"):
            return str(place or f"{name} {' '.join(items)}")
    return ""


def _matches(world: World, block: str, user: str) -> bool:
    """Return whether the criteria of a block hold for a user; False if only the connection could tell."""
    words = block.split()
    if [word.lower() for word in words] == ["all"]:
        return True
    for criterion, pattern in zip(words[::2], words[1::2]):
        candidates = [user] if criterion.lower() == "user" else groups_of(world, user)
        if criterion.lower() not in ("user", "group") or not any(listed(name, pattern) for name in candidates):
            return False
    return len(words) >= 2


def groups_of(world: World, user: str) -> list[str]:
    """Return the names of a user's groups, as far as they are known."""
    try:
        entry: Mapping[str, object] = world.entry("users", user) or {}
        groups = world.facet("groups")
    except Unknown:
        return []
    return [
        name
        for name, fields in groups.items()
        if fields.get("gid") == entry.get("gid") or user in (fields.get("members") or ())
    ]


def listed(name: str, patterns: str) -> bool:
    """Return whether a list of patterns with commas names something. A pattern with `!` excludes it."""
    found = False
    for pattern in patterns.split(","):
        if fnmatch.fnmatchcase(name, pattern.lstrip("!")):
            if pattern.startswith("!"):
                return False
            found = True
    return found
