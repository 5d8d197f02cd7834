"""The rules of sudo as sudo reads them: with included files, in their order. The last rule that matches counts."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import HostNode, Unknown
from statecfg.remote.machine.world import World
from statecfg.resources.shared import sources

MAIN = "/etc/sudoers"
PROGRAM = "/usr/bin/sudo"
DEEPEST = 128  # levels of included files that sudo follows
_INCLUDE = re.compile(r'\s*[@#]include(dir)?\s+(?:"([^"]+)"|((?:\\.|\S)+))\s*$')
_ALIAS = re.compile(r"\s*(User|Runas|Host|Cmnd|Cmd)_Alias\s+(.*)")
_DEFAULTS = re.compile(r"\s*Defaults([@:!>][^\s]*)?\s+(.*)")
_TAG = re.compile(r"(?:(NO)?(PASSWD)|[A-Z_]+):\s*")


class Permission:
    """What some users may run.

    :ivar users: the list of users, as written
    :ivar run_as: the users as whom, "root" by default
    :ivar password: whether sudo asks for a password; None if its settings decide
    """

    def __init__(
        self, place: sources.Place, users: str, hosts: str, run_as: str, password: bool | None, command: str
    ) -> None:
        self.place, self.users, self.hosts = place, users, hosts
        self.run_as, self.password, self.command = run_as, password, command


class Rules:
    """The whole configuration.

    :ivar read: the files that sudo reads
    :ivar aliases: the kind and the name of each alias → its members
    :ivar defaults: the settings, each with its scope, name and value
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.read: set[str] = set()
        self.aliases: dict[tuple[str, str], list[str]] = {}
        self.rules: list[Permission] = []
        self.defaults: list[tuple[sources.Place, str, str]] = []
        for place, text in self._lines(MAIN, 0):
            self._add(place, text)

    def _lines(self, path: str, depth: int) -> Iterator[tuple[sources.Place, str]]:
        """Yield the logical lines without comments; an included file in place of the line that includes it."""
        self.read.add(path)
        joined, first = "", None
        for place in sources.places(self.world, path):
            first = first or place
            joined += place.text
            if joined.endswith("\\"):
                joined = joined[:-1]
                continue
            found = _INCLUDE.match(joined)
            if found and depth < DEEPEST:
                target = found[2] or re.sub(r"\\(.)", r"\1", found[3])
                target = posixpath.join(posixpath.dirname(path), target)
                inside = self._names(target) if found[1] else [target]
                for name in inside:
                    yield from self._lines(name, depth + 1)
            else:
                yield first, re.sub(r'(?<![\\"])#(?![0-9]).*', "", joined).strip()
            joined, first = "", None

    def _names(self, directory: str) -> list[str]:
        """Return the files of a directory that sudo reads."""
        names = sources.names(self.world, directory)
        return [posixpath.join(directory, name) for name in names if "." not in name and not name.endswith("~")]

    def _add(self, place: sources.Place, text: str) -> None:
        found = _ALIAS.match(text)
        if found:
            for part in re.split(r"\s+:\s+", found[2]):
                name, _, members = part.partition("=")
                kind = "Cmnd" if found[1] == "Cmd" else found[1]
                self.aliases[kind, name.strip()] = split(members)
            return
        found = _DEFAULTS.match(text)
        if found:
            self.defaults += [(place, found[1] or "", part) for part in split(found[2])]
            return
        left, separator, right = text.partition("=")
        words = re.sub(r"\s*,\s*", ",", left.strip()).rsplit(None, 1)
        if not separator or len(words) != 2:
            return
        run_as, password = "root", None
        for part in split(re.split(r"\s:\s+\S+\s*=", right)[0]):
            found = re.match(r"\(([^)]*)\)\s*", part)
            if found:
                run_as, part = re.sub(r"\s", "", found[1]) or "root", part[found.end() :]
            while True:
                tag = _TAG.match(part)
                if not tag:
                    break
                password = password if tag[2] is None else tag[1] is None
                part = part[tag.end() :]
            self.rules.append(Permission(place, words[0], words[1], run_as, password, " ".join(part.split())))

    def concerns(self, rule: Permission, user: str) -> bool:
        """Return whether a rule is for an item of a list of users, on this host."""
        return self.listed(split(rule.users), "User", user) and self.listed(split(rule.hosts), "Host", "")

    def listed(self, items: Sequence[str], kind: str, wanted: str, depth: int = 0) -> bool:
        """Return whether a list names something. The last item that names it decides; `!` excludes it."""
        found = False
        for item in items:
            name = item.lstrip("! ")
            if (kind, name) in self.aliases and depth < DEEPEST:
                named = self.listed(self.aliases[kind, name], kind, wanted, depth + 1)
            else:
                named = self._is(kind, name, wanted)
            if named:
                found = item.count("!", 0, len(item) - len(name)) % 2 == 0
        return found

    def _is(self, kind: str, item: str, wanted: str) -> bool:
        if item in ("ALL", wanted):
            return True
        if kind == "Cmnd":
            return covers(item, wanted)
        if kind == "Host":
            return item.partition(".")[0] == _host(self.world)
        if wanted[:1] in ("%", "#", "+") or wanted == "ALL":
            return False
        try:
            entry = self.world.entry("users", wanted) or {}
            if item[:1] == "%":
                field, name = ("gid", item[2:]) if item[1:2] == "#" else ("name", item[1:])
                groups = self.world.facet("groups")
                group = {**(groups.get(name) or {}), "name": name} if field == "name" else {}
                gid = int(name) if field == "gid" and name.isdigit() else group.get("gid")
                if entry.get("gid") == gid is not None:
                    return True
                names = [each for each, fields in groups.items() if gid is not None and fields.get("gid") == gid]
                listed = any(wanted in (groups[each].get("members") or ()) for each in names)
                # A plan may have changed either side of the membership.
                return listed and ("groups" not in entry or not {*names}.isdisjoint(entry["groups"]))
            return item[:1] == "#" and item[1:] == str(entry.get("uid"))
        except Unknown:
            return False

    def verdict(self, user: str, command: str, run_as: str, rules: Sequence[Permission]) -> Permission | None:
        """Return the rule that decides about a command, None if no rule matches."""
        for rule in reversed(rules):
            same = rule.run_as in (run_as, "ALL") or rule.run_as.startswith(("ALL:", run_as + ":"))
            if same and self.concerns(rule, user) and self.listed([rule.command.lstrip("! ")], "Cmnd", command):
                return rule
        return None

    def unasked(self, rule: Permission, user: str) -> sources.Place | None:
        """Return the setting because of which sudo asks for no password for a rule without a tag.

        Source: sudoers(5): settings for commands win over those for target users, and these over all others.
        """
        ranks = {"": 0, "@": 0, ":": 0, ">": 1, "!": 2}
        kinds = {"@": ("Host", ""), ":": ("User", user), ">": ("Runas", rule.run_as), "!": ("Cmnd", rule.command)}
        rank, found = 0, None
        for place, scope, text in self.defaults if rule.password is None else ():
            kind, sign = scope[:1], re.match(r"(!?)\s*authenticate\Z", text)
            if sign and ranks[kind] >= rank and (not kind or self.listed(split(scope[1:]), *kinds[kind])):
                rank, found = ranks[kind], place if sign[1] else None
        return found


def _host(world: World) -> str:
    """Return the name of the host without its domain."""
    lines = sources.places(world, "/etc/hostname")
    return lines[0].text.strip().partition(".")[0] if lines else ""


def split(text: str) -> list[str]:
    r"""Return the items of a list with commas. `\,` and quotes protect a comma, and so do parentheses."""
    parts = re.findall(r'(?:\\.|"[^"]*"|\([^)]*\)|[^,\\])+', text)
    return [part.strip() for part in parts if part.strip()]


def covers(item: str, command: str) -> bool:
    """Return whether a command of a rule covers another command, as written."""
    path, _, given = item.partition(" ")
    wanted, _, arguments = command.partition(" ")
    if path.endswith("/"):
        return posixpath.dirname(wanted) + "/" == path
    if not fnmatch.fnmatchcase(wanted, path):
        return False
    return not given or fnmatch.fnmatchcase(arguments, given) or (given == '""' and not arguments)


def rules_of(world: World) -> Rules:
    """Return the whole configuration; it is read once for all nodes."""
    if "sudo rules" not in world.memo:
        world.memo["sudo rules"] = Rules(world)
    rules: Rules = world.memo["sudo rules"]
    return rules


def effect(node: HostNode, world: World) -> str:
    """Return the rule that wins over one of the node's file; "" if none does."""
    path = node.attrs["path"]
    if node.attrs.get("absent") or world.stat(MAIN) is None:
        return ""
    whole = rules_of(world)
    if path not in whole.read:
        folder = posixpath.dirname(path)
        return f"sudo does not read {path}: add the line `@includedir {folder}` at the end of {MAIN}"
    for at, rule in enumerate(whole.rules):
        if rule.place.path != path:
            continue
        later = [other for other in whole.rules[at + 1 :] if other.place.path != path]
        for user in split(rule.users):
            why = _differs(rule, whole.verdict(user, rule.command.lstrip("! "), rule.run_as, later), user)
            why = why or _without_password(whole, rule, user, path)
            if why:
                return why
    return _default(whole, path) or (_asked(world, whole, path) if world.due else "")


def _differs(rule: Permission, winner: Permission | None, user: str) -> str:
    if winner is None:
        return ""
    denied = winner.command.startswith("!")
    if denied == rule.command.startswith("!") and (denied or _asks(winner) == _asks(rule)):
        return ""
    what = f"denies {user} {rule.command}" if denied else f"allows {user} {rule.command}"
    if not denied and not rule.command.startswith("!"):
        what = f"asks {user} for {'a' if _asks(winner) else 'no'} password for {rule.command}"
    return f"sudo {what}: {winner.place} comes later"


def _asks(rule: Permission) -> bool:
    return rule.password is not False


def _without_password(whole: Rules, rule: Permission, user: str, path: str) -> str:
    """Return the setting because of which sudo asks for no password, though the rule has no NOPASSWD."""
    free = None if rule.command.startswith("!") else whole.unasked(rule, user)
    if free is None or free.path == path:
        return ""
    return f"sudo asks {user} for no password for {rule.command}: {free}"


def _default(whole: Rules, path: str) -> str:
    """Return the later setting that wins over one of the file."""
    for at, (place, scope, text) in enumerate(whole.defaults):
        name = re.match(r"!?\s*([a-z_]+)", text)
        if place.path != path or name is None or re.search(r"[+-]=", text):
            continue
        for other, other_scope, other_text in whole.defaults[at + 1 :]:
            same = re.match(rf"!?\s*{name[1]}\b(?!\s*[+-]=)", other_text)
            if other.path != path and other_scope == scope and same and other_text.split() != text.split():
                return f"sudo uses {other_text}: {other} comes later"
    return ""


def _asked(world: World, whole: Rules, path: str) -> str:
    """Ask sudo whether it allows the commands of the file to the users that it names."""
    for rule in whole.rules:
        simple = re.match(r"/[A-Za-z0-9/_. -]+\Z", rule.command)
        if rule.place.path != path or not simple:
            continue
        words = rule.command.split()
        if world.stat(words[0]) is None:  # sudo finds only programs that exist
            continue
        for user in split(rule.users):
            if not re.match(r"[a-z_][a-z0-9_-]*\Z", user) or world.entry("users", user) is None:
                continue
            as_user = (
                [] if rule.run_as.partition(":")[0] in ("ALL", "root", "") else ["-u", rule.run_as.partition(":")[0]]
            )
            probe = world.probe([PROGRAM, "-n", "-l", "-U", user, *as_user, "--", *words], timeout=30.0)
            if probe.status not in (0, 1):
                said = probe.errors.decode("utf-8", "replace").strip()[:200]
                return f"`sudo -l` gave an answer that statecfg does not understand: {said or 'nothing'}"
            if probe.status == 1 and not probe.text.strip():
                return f"sudo does not allow {user} to run {rule.command}; see `sudo -l -U {user}`"
    return ""
