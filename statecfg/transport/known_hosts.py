"""Which host keys we trust: OpenSSH's known_hosts files, read as OpenSSH reads them.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". A line that makes no sense is skipped, as OpenSSH does, and counted.
"""

from __future__ import annotations

import base64
import binascii
import fnmatch
import functools
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

DEFAULT_PORT = 22


@dataclass(frozen=True)
class HostKey:
    """A public key as it is on the wire. `kind` is e.g. "ssh-ed25519"; `blob` the encoded key."""

    kind: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Return OpenSSH's fingerprint, `SHA256:…`."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint}"


@dataclass(frozen=True)
class Entry:
    """One line of a known_hosts file: whom it names, what it says, where it stands."""

    patterns: tuple[str, ...]
    marker: str
    key: HostKey
    path: str
    line: int

    @property
    def place(self) -> str:
        """Return `FILE:LINE`."""
        return f"{self.path}:{self.line}"

    def names(self, host: str) -> bool:
        """Say whether the line is about `host` (a lookup name, see `lookup_name`)."""
        found = False
        for pattern in self.patterns:
            if pattern.startswith("!"):
                if _matches(pattern[1:], host):
                    return False
            elif _matches(pattern, host):
                found = True
        return found


class Verdict(Enum):
    """What known_hosts says about a key that a host has shown."""

    TRUSTED = "trusted"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"
    AUTHORITY = "authority"


@dataclass(frozen=True)
class Answer:
    """A verdict, and the lines that it rests on."""

    verdict: Verdict
    entries: tuple[Entry, ...] = ()


@dataclass
class KnownHosts:
    """The entries of some files, with an index of the plain names. `bad` holds the places of unreadable lines."""

    entries: list[Entry] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    exact: dict[str, list[Entry]] = field(default_factory=dict)
    others: list[Entry] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        """Add one line."""
        self.entries.append(entry)
        if all(_is_plain(p) for p in entry.patterns):
            for name in set(entry.patterns):
                self.exact.setdefault(name, []).append(entry)
        else:
            self.others.append(entry)

    def about(self, host: str, port: int = DEFAULT_PORT) -> list[Entry]:
        """Return the entries that name the host, in no promised order."""
        name = lookup_name(host, port)
        return self.exact.get(name, []) + [e for e in self.others if e.names(name)]

    def check(self, host: str, port: int, key: HostKey) -> Answer:
        """Judge the `key` that `host` (as the user named it) has shown at `port`.

        A revoked key is refused for whatever reason it might be trusted. A host known by keys of other types only
        counts as changed: we asked it for those types first.
        """
        entries = self.about(host, port)
        revoked = [e for e in entries if e.marker == "@revoked" and e.key == key]
        if revoked:
            return Answer(Verdict.REVOKED, tuple(revoked))
        plain = [e for e in entries if not e.marker]
        same = [e for e in plain if e.key == key]
        if same:
            return Answer(Verdict.TRUSTED, tuple(same))
        if plain:
            return Answer(Verdict.CHANGED, tuple([e for e in plain if e.key.kind == key.kind] or plain))
        authorities = [e for e in entries if e.marker == "@cert-authority"]
        if authorities:
            return Answer(Verdict.AUTHORITY, tuple(authorities))
        return Answer(Verdict.UNKNOWN)

    def kinds(self, host: str, port: int = DEFAULT_PORT) -> list[str]:
        """Return the key types known for the host, to be asked for first."""
        return list(dict.fromkeys(e.key.kind for e in self.about(host, port) if not e.marker))


def lookup_name(host: str, port: int = DEFAULT_PORT) -> str:
    """Return the name under which a host stands in known_hosts: lower case, `[host]:port` for other ports than 22."""
    host = host.lower()
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def parse(text: str, path: str = "known_hosts") -> KnownHosts:
    """Read the text of a known_hosts file; `path` is for places. Never raises."""
    known = KnownHosts()
    _read_into(known, text, path)
    return known


def load(paths: Iterable[str]) -> KnownHosts:
    """Read known_hosts files, once per process as long as they stay as they are; missing ones are empty.

    Parameters: `paths` file names. Returns the entries of all. Raises OSError for a file that can't be read.
    """
    names = tuple(os.path.expanduser(p) for p in paths)
    stamp = tuple(_stamp(name) for name in names)
    with _lock:
        cached = _cache.get(names)
        if cached is None or cached[0] != stamp:
            known = KnownHosts()
            for name, mark in zip(names, stamp, strict=True):
                if mark is not None:
                    with open(name, "rb") as file:
                        _read_into(known, file.read().decode("utf-8", "replace"), name)
            cached = _cache[names] = (stamp, known)
        return cached[1]


def append(path: str, host: str, port: int, key: HostKey) -> None:
    """Add a host's key to a file, creating it (0600, directory 0700) if need be; nothing in it is changed."""
    path = os.path.expanduser(path)
    line = f"{lookup_name(host, port)} {key.kind} {base64.b64encode(key.blob).decode()}\n".encode()
    with _lock:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            # A file whose last line has no end would swallow ours.
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(fd, line)
        finally:
            os.close(fd)


_MARKERS = ("@revoked", "@cert-authority")
_GLOB = re.compile(r"[*?]")
_lock = threading.Lock()
_cache: dict[tuple[str, ...], tuple[tuple[object, ...], KnownHosts]] = {}


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return info.st_ino, info.st_mtime_ns, info.st_size


def _read_into(known: KnownHosts, text: str, path: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        entry = _entry(words, path, number)
        if entry is None:
            known.bad.append(f"{path}:{number}")
        else:
            known.add(entry)


def _entry(words: Sequence[str], path: str, number: int) -> Entry | None:
    marker = ""
    if words[0].startswith("@"):
        marker, words = words[0], words[1:]
        if marker not in _MARKERS:
            return None
    if len(words) < 3:
        return None
    names, kind, encoded = words[0], words[1], words[2]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not _names_its_kind(blob, kind):
        return None
    # A hashed name keeps its case; it is base64.
    patterns = tuple(n if n.startswith("|") else n.lower() for n in names.split(",") if n)
    return Entry(patterns, marker, HostKey(kind, blob), path, number) if patterns else None


def _names_its_kind(blob: bytes, kind: str) -> bool:
    length = int.from_bytes(blob[:4], "big")
    return len(blob) > 4 + length and blob[4 : 4 + length] == kind.encode()


def _is_plain(pattern: str) -> bool:
    return not (pattern.startswith(("|", "!")) or _GLOB.search(pattern))


def _matches(pattern: str, host: str) -> bool:
    if pattern.startswith("|"):
        return _matches_hash(pattern, host)
    if not _GLOB.search(pattern):
        return pattern == host
    # OpenSSH knows only `*` and `?`; `[` stands for itself, as in `[*.example.org]:2222`.
    return fnmatch.fnmatchcase(host, pattern.replace("[", "[[]"))


def _matches_hash(pattern: str, host: str) -> bool:
    parts = _hash_parts(pattern)
    return parts is not None and hmac.compare_digest(hmac.digest(parts[0], host.encode(), "sha1"), parts[1])


@functools.lru_cache(maxsize=65536)
def _hash_parts(pattern: str) -> tuple[bytes, bytes] | None:
    parts = pattern.split("|")
    if len(parts) != 4 or parts[1] != "1":
        return None
    try:
        return base64.b64decode(parts[2], validate=True), base64.b64decode(parts[3], validate=True)
    except (binascii.Error, ValueError):
        return None
