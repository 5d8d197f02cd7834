"""Read ssh_config and look up the settings of a host. Names follow ssh_config(5).

The first value of a word wins; IdentityFile collects all values; of ProxyJump and ProxyCommand, the first wins. `Match`
supports `all`, `host`, `originalhost`, `user` and `localuser`, also negated with `!`. A block with another criterion is
ignored with a warning: `exec` runs programs, and the other criteria need information that only ssh has.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import getpass
import glob
import heapq
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError

MAX_INCLUDE_DEPTH = 16
_PATTERN = re.compile(r"[*?!]|^$")
PROXIES = ("proxyjump", "proxycommand")
SUBJECTS = ("host", "originalhost", "user", "localuser")
USER_FILE = "~/.ssh/config"
SYSTEM_FILE = "/etc/ssh/ssh_config"


class ConfigProblem(StatecfgError, ValueError):
    """An ssh_config file can't be read or is invalid. The text contains `FILE:LINE`."""


@dataclass(frozen=True)
class SshConfigLine:
    """One setting.

    :param conditions: the conditions of its block
    :param word: its name in lower case
    :param location: `FILE:LINE`
    """

    conditions: tuple[SshConfigCondition, ...]
    word: str
    values: tuple[str, ...]
    location: str


@dataclass(frozen=True)
class SshConfigCondition:
    """A condition of a block.

    :param patterns: patterns of which one must match
    :param subject: what the patterns are compared with, one of `SUBJECTS`
    :param negated: whether the patterns must not match
    :param skipped: a warning about a criterion that we don't evaluate; "" for none
    """

    patterns: tuple[str, ...] = ("*",)
    subject: str = "originalhost"
    negated: bool = False
    skipped: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the only hosts for which the condition can be true; () if there is no such list."""
        listed = self.subject == "originalhost" and not self.negated and not self.skipped
        plain = listed and not any(_PATTERN.search(pattern) for pattern in self.patterns)
        return self.patterns if plain else ()

    def holds(self, facts: dict[str, str]) -> bool:
        """Return whether the condition is true.

        :param facts: a value for each of `SUBJECTS`
        """
        return not self.skipped and matches(self.patterns, facts[self.subject]) != self.negated


@dataclasses.dataclass
class HostConfig:
    """The settings of one host.

    :ivar original_name: the name that the user gave
    :ivar values: lower-case word → values
    """

    original_name: str
    values: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    identity_files: list[str] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def get(self, word: str) -> str | None:
        """Return the first value of a word, or None."""
        values = self.values.get(word)
        return values[0] if values else None

    @property
    def hostname(self) -> str:
        """Return the name to connect to: HostName, with its tokens, or the given name."""
        return (self.get("hostname") or "%h").replace("%%", "\0").replace("%h", self.original_name).replace("\0", "%")


@dataclass(frozen=True)
class SshConfig:
    """The lines of one or more ssh_config files, in order."""

    lines: tuple[SshConfigLine, ...] = ()

    @functools.cached_property
    def _of_names(self) -> Mapping[str, Sequence[int]]:
        """The positions of the lines in blocks for single names: name → positions; "" → positions of all others.

        A file may have a block for each of thousands of hosts.
        """
        positions: dict[str, list[int]] = {"": []}
        for position, line in enumerate(self.lines):
            names = next(filter(None, (condition.names for condition in line.conditions)), ("",))
            for name in dict.fromkeys(names):
                positions.setdefault(name, []).append(position)
        return positions

    def _about(self, host: str) -> Iterator[SshConfigLine]:
        """Yield the lines that may apply to a host, in order."""
        own = self._of_names.get(host, ()) if host else ()
        return (self.lines[position] for position in heapq.merge(self._of_names[""], own))

    def lookup(self, host: str, user: str | None = None) -> HostConfig:
        """Return the settings of a host.

        :param host: the name that a user would pass to ssh
        :param user: the user to log in as, if the user's name was given
        """
        config = HostConfig(host)
        facts = {"originalhost": host, "localuser": local_user()}
        for line in self._about(host):
            facts["host"] = config.hostname
            facts["user"] = user or config.get("user") or facts["localuser"]
            skipped = [c.skipped for c in line.conditions if c.skipped]
            if not all(c.holds(facts) for c in line.conditions if not c.skipped):
                continue
            if skipped:
                config.warnings += [text for text in skipped if text not in config.warnings]
            elif line.word in PROXIES and any(word in config.values for word in PROXIES):
                continue
            elif line.word == "identityfile":
                if line.values[0] not in config.identity_files:
                    config.identity_files.append(line.values[0])
            else:
                config.values.setdefault(line.word, line.values)
        return config


def load(path: str | None) -> SshConfig:
    """Read ssh_config. Files are read again only if they changed.

    :param path: a file that must exist; None for the user's and then the system's file, if they exist; "none" for no
        file
    :raises ConfigProblem: a file can't be read or is invalid
    """
    if path == "none":
        return SshConfig()
    names = tuple(os.path.expanduser(p) for p in ((USER_FILE, SYSTEM_FILE) if path is None else (path,)))
    with _lock:
        cached = _cache.get(names)
        if cached is None or any(_stamp(name) != stamp for name, stamp in cached[0].items()):
            stamps = {name: _stamp(name) for name in names}
            lines: list[SshConfigLine] = []
            for name in names:
                if path is not None or stamps[name] is not None:
                    lines += _SshConfigReader(name == SYSTEM_FILE, stamps).read(name, (), 0)
            cached = _cache[names] = (stamps, SshConfig(tuple(lines)))
        return cached[1]


def parse(text: str, path: str = "ssh_config") -> SshConfig:
    """Parse the text of an ssh_config file.

    :param path: the file name for messages
    :raises ConfigProblem: the text is invalid
    """
    return SshConfig(tuple(_SshConfigReader(False, {}).lines(text, path, (), 0)))


def matches(patterns: tuple[str, ...], name: str) -> bool:
    """Return whether a pattern list of ssh matches `name`. As in ssh, case matters.

    :param patterns: patterns with `*` and `?`; a leading `!` excludes
    """
    named = False
    for pattern in patterns:
        excluded = pattern.startswith("!")
        if fnmatch.fnmatchcase(name, pattern.removeprefix("!").replace("[", "[[]")):
            if excluded:
                return False
            named = True
    return named


def expand(text: str, tokens: dict[str, str]) -> str:
    """Replace `%x` tokens, `${NAME}` and a leading `~`.

    :raises ConfigProblem: a token is unknown
    """
    out = []
    parts = iter(text.split("%"))
    out.append(next(parts))
    for part in parts:
        if part == "":
            out.append("%" + next(parts, ""))
        elif part[0] in tokens:
            out.append(tokens[part[0]] + part[1:])
        else:
            raise ConfigProblem(f"ssh_config: unknown token %{part[0]} in {text!r}")
    return os.path.expanduser(os.path.expandvars("".join(out)))


def local_user() -> str:
    """Return the user name that ssh uses if none is configured."""
    return getpass.getuser()


Stamps = dict[str, tuple[int, int, int] | None]

_lock = threading.Lock()
_cache: dict[tuple[str, ...], tuple[Stamps, SshConfig]] = {}


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size


@dataclass(frozen=True)
class _SshConfigReader:
    """Reads a file and the files that it includes.

    :param system: whether relative names start in /etc/ssh instead of ~/.ssh
    :param stamps: the state of each file that was read is added here
    """

    system: bool
    stamps: Stamps

    def read(self, path: str, outer: tuple[SshConfigCondition, ...], depth: int) -> Iterator[SshConfigLine]:
        if depth > MAX_INCLUDE_DEPTH:
            raise ConfigProblem(f"{path}: Include is nested more than {MAX_INCLUDE_DEPTH} files deep")
        self.stamps[path] = _stamp(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError as error:
            raise ConfigProblem(f"{path}: {error.strerror}") from error
        return self.lines(text, path, outer, depth)

    def lines(self, text: str, path: str, outer: tuple[SshConfigCondition, ...], depth: int) -> Iterator[SshConfigLine]:
        block: tuple[SshConfigCondition, ...] = ()
        for number, raw in enumerate(text.splitlines(), 1):
            location = f"{path}:{number}"
            word, values = _split(raw, location)
            if not word:
                continue
            if not values:
                raise ConfigProblem(f"{location}: {word} has no value")
            if word == "host":
                block = (SshConfigCondition(values),)
            elif word == "match":
                block = _match(values, location)
            elif word == "include":
                for name in self.included(values):
                    yield from self.read(name, outer + block, depth + 1)
            else:
                yield SshConfigLine(outer + block, word, values, location)

    def included(self, patterns: tuple[str, ...]) -> Iterator[str]:
        for pattern in patterns:
            name = os.path.expanduser(pattern)
            if not os.path.isabs(name):
                name = os.path.join("/etc/ssh" if self.system else os.path.expanduser("~/.ssh"), name)
            yield from sorted(glob.glob(name))


def _split(raw: str, location: str) -> tuple[str, tuple[str, ...]]:
    line = raw.strip()
    if not line or line.startswith("#"):
        return "", ()
    end = next((i for i, c in enumerate(line) if c in " \t="), len(line))
    rest = line[end:].lstrip(" \t")
    return line[:end].lower(), tuple(_values(rest.removeprefix("=").lstrip(), location))


# Like OpenSSH's argv_split: single and double quotes anywhere; a backslash escapes a quote, a space or a backslash; a
# `#` at the beginning of a word starts a comment.
_WORD = re.compile(r"""(?:\\["'\\ ]|"(?:\\["'\\]|[^"])*"|'(?:\\["'\\]|[^'])*'|[^\s"'\\]+|\\)+""")
_PIECE = re.compile(r"""\\(["'\\ ])|"((?:\\["'\\]|[^"])*)"|'((?:\\["'\\]|[^'])*)'|(.)""", re.DOTALL)


def _values(text: str, location: str) -> Iterator[str]:
    at = 0
    while (rest := text[at:].lstrip()) and not rest.startswith("#"):
        at = len(text) - len(rest)
        match = _WORD.match(text, at)
        if match is None or (match.end() < len(text) and not text[match.end()].isspace()):
            raise ConfigProblem(f"{location}: a quote is not closed")
        yield _PIECE.sub(_unquoted, match[0])
        at = match.end()


def _unquoted(piece: re.Match[str]) -> str:
    inner = piece[2] if piece[2] is not None else piece[3]
    return re.sub(r"""\\(["'\\])""", r"\1", inner) if inner is not None else piece[1] or piece[4]


def _match(values: tuple[str, ...], location: str) -> tuple[SshConfigCondition, ...]:
    conditions: list[SshConfigCondition] = []
    words = iter(values)
    for word in words:
        subject = word.lower().removeprefix("!")
        if subject == "all":
            continue
        if subject not in SUBJECTS:
            text = f"{location}: `Match {subject}` is not supported, so its block is ignored"
            return (*conditions, SshConfigCondition(skipped=text))
        patterns = next(words, None)
        if patterns is None:
            raise ConfigProblem(f"{location}: Match {word} has no pattern")
        conditions.append(SshConfigCondition(tuple(patterns.split(",")), subject, word.startswith("!")))
    return tuple(conditions)
