"""Read OpenSSH's known_hosts files and compare host keys with them.

Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". Unreadable lines are skipped, as in OpenSSH, and recorded.
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
    """A public key of a host.

    :param key_type: such as "ssh-ed25519"
    :param blob: the encoded key as sent by the host
    """

    key_type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """Return OpenSSH's fingerprint, `SHA256:…`."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.key_type} {self.fingerprint}"


@dataclass(frozen=True)
class KnownHostEntry:
    """One line of a known_hosts file.

    :param patterns: the hosts that it applies to
    :param marker: "@revoked", "@cert-authority" or ""
    """

    patterns: tuple[str, ...]
    marker: str
    key: HostKey
    path: str
    line: int

    @property
    def location(self) -> str:
        """Return `FILE:LINE`."""
        return f"{self.path}:{self.line}"

    def names(self, host: str) -> bool:
        """Return whether the line applies to `host`, a name as `lookup_name` returns it."""
        named = False
        for pattern in self.patterns:
            if pattern.startswith("!"):
                if _matches(pattern[1:], host):
                    return False
            elif _matches(pattern, host):
                named = True
        return named


class Verdict(Enum):
    """The result of comparing a host's key with known_hosts."""

    TRUSTED = "trusted"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"
    AUTHORITY = "authority"


@dataclass(frozen=True)
class KeyCheck:
    """A verdict, and the lines that led to it."""

    verdict: Verdict
    entries: tuple[KnownHostEntry, ...] = ()


@dataclass
class KnownHosts:
    """The entries of some files.

    :ivar entries: all entries
    :ivar bad: `FILE:LINE` of each unreadable line
    :ivar exact: name → entries without wildcards, negations and hashes
    :ivar others: all other entries
    :ivar found: name → its entries, for the names that were looked up. A file may have thousands of hashed names
    :ivar lock: held while an entry is added or a name is looked up
    """

    entries: list[KnownHostEntry] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    exact: dict[str, list[KnownHostEntry]] = field(default_factory=dict)
    others: list[KnownHostEntry] = field(default_factory=list)
    found: dict[str, list[KnownHostEntry]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, entry: KnownHostEntry) -> None:
        """Add one line."""
        with self.lock:
            self.entries.append(entry)
            if all(_is_plain(p) for p in entry.patterns):
                for name in set(entry.patterns):
                    self.exact.setdefault(name, []).append(entry)
                    self.found.pop(name, None)
            else:
                self.others.append(entry)
                self.found.clear()

    def about(self, host: str, port: int = DEFAULT_PORT) -> list[KnownHostEntry]:
        """Return the entries for a host, in any order."""
        name = lookup_name(host, port)
        with self.lock:
            if name not in self.found:
                self.found[name] = self.exact.get(name, []) + [e for e in self.others if e.names(name)]
            return self.found[name]

    def check(self, host: str, port: int, key: HostKey) -> KeyCheck:
        """Compare the key that a host presented with the entries.

        A revoked key is refused even if another entry trusts it. If there are only keys of other types, the key counts
        as changed, because we requested those types first.

        :param host: the host's name as the user wrote it
        """
        entries = self.about(host, port)
        revoked = [e for e in entries if e.marker == "@revoked" and e.key == key]
        if revoked:
            return KeyCheck(Verdict.REVOKED, tuple(revoked))
        plain = [e for e in entries if not e.marker]
        same = [e for e in plain if e.key == key]
        if same:
            return KeyCheck(Verdict.TRUSTED, tuple(same))
        if plain:
            return KeyCheck(Verdict.CHANGED, tuple([e for e in plain if e.key.key_type == key.key_type] or plain))
        authorities = [e for e in entries if e.marker == "@cert-authority"]
        if authorities:
            return KeyCheck(Verdict.AUTHORITY, tuple(authorities))
        return KeyCheck(Verdict.UNKNOWN)

    def key_types(self, host: str, port: int = DEFAULT_PORT) -> list[str]:
        """Return the types of the known keys of a host, which a handshake should request first."""
        return list(dict.fromkeys(e.key.key_type for e in self.about(host, port) if not e.marker))


def lookup_name(host: str, port: int = DEFAULT_PORT) -> str:
    """Return a host's name in known_hosts: lower case, and `[host]:port` unless the port is 22."""
    host = host.lower()
    return host if port == DEFAULT_PORT else f"[{host}]:{port}"


def parse(text: str, path: str = "known_hosts") -> KnownHosts:
    """Parse the text of a known_hosts file. Never raises.

    :param path: the file name for messages
    """
    entries = KnownHosts()
    _read_into(entries, text, path)
    return entries


def load(paths: Iterable[str]) -> KnownHosts:
    """Read known_hosts files. They are read again only if they changed.

    :param paths: file names; missing files count as empty
    :returns: the entries of all files
    :raises OSError: a file can't be read
    """
    names = tuple(os.path.expanduser(p) for p in paths)
    with _lock:
        stamps = [_stamp(name) for name in names]
        loaded = _cache.get(names)
        if loaded is None or loaded.stamps != stamps:
            loaded = _Loaded(KnownHosts(), stamps, [0] * len(names))
            for number, name in enumerate(names):
                if stamps[number] is not None:
                    with open(name, "rb") as file:
                        loaded.read(number, file.read(), name)
            _cache[names] = loaded
        return loaded.entries


def append(path: str, host: str, port: int, key: HostKey) -> None:
    """Append a host's key to a file. A missing file is created with mode 0600, its directory with mode 0700.

    The entries that `load` has returned for this file get the new one, unless another process has changed the file. So
    a run with thousands of new hosts does not read the file again for each of them.
    """
    path = os.path.expanduser(path)
    line = f"{lookup_name(host, port)} {key.key_type} {base64.b64encode(key.blob).decode()}\n".encode()
    with _lock:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(fd)
            # Without this, our line would continue an unfinished last line.
            if before.st_size and os.pread(fd, 1, before.st_size - 1) != b"\n":
                line = b"\n" + line
            os.write(fd, line)
            after = os.fstat(fd)
        finally:
            os.close(fd)
        if after.st_size == before.st_size + len(line):  # otherwise another process has written, too
            for names, loaded in _cache.items():
                for number in (number for number, name in enumerate(names) if name == path):
                    loaded.append(number, line, path, before, after)


_MARKERS = ("@revoked", "@cert-authority")
_GLOB = re.compile(r"[*?]")

_Stamp = tuple[int, int, int]


@dataclass
class _Loaded:
    """What `load` has read.

    :ivar stamps: the state of each file; None if it was missing
    :ivar lines: the number of complete lines of each file
    """

    entries: KnownHosts
    stamps: list[_Stamp | None]
    lines: list[int]

    def read(self, number: int, data: bytes, path: str) -> None:
        """Add the next lines of a file.

        :param number: the file's position among all files
        """
        _read_into(self.entries, data.decode("utf-8", "replace"), path, self.lines[number])
        self.lines[number] += data.count(b"\n")

    def append(self, number: int, data: bytes, path: str, before: os.stat_result, after: os.stat_result) -> None:
        """Add what this process has appended to a file, unless the file had changed since it was read.

        :param before: the file's state before that
        :param after: its state now
        """
        known = self.stamps[number]
        if known == _stamp_of(before) or (known is None and not before.st_size):
            self.stamps[number] = _stamp_of(after)
            self.read(number, data, path)


_lock = threading.Lock()
_cache: dict[tuple[str, ...], _Loaded] = {}


def _stamp(path: str) -> _Stamp | None:
    try:
        return _stamp_of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stamp_of(info: os.stat_result) -> _Stamp:
    return info.st_ino, info.st_mtime_ns, info.st_size


def _read_into(entries: KnownHosts, text: str, path: str, before: int = 0) -> None:
    """Add some lines of a file, which follow `before` other lines."""
    for number, line in enumerate(text.split("\n"), before + 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        entry = _entry(words, path, number)
        if entry is None:
            entries.bad.append(f"{path}:{number}")
        else:
            entries.add(entry)


def _entry(words: Sequence[str], path: str, number: int) -> KnownHostEntry | None:
    marker = ""
    if words[0].startswith("@"):
        marker, words = words[0], words[1:]
        if marker not in _MARKERS:
            return None
    if len(words) < 3:
        return None
    names, key_type, encoded = words[0], words[1], words[2]
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not _names_its_type(blob, key_type):
        return None
    # A hashed name is base64, so its case matters.
    patterns = tuple(n if n.startswith("|") else n.lower() for n in names.split(",") if n)
    return KnownHostEntry(patterns, marker, HostKey(key_type, blob), path, number) if patterns else None


def _names_its_type(blob: bytes, key_type: str) -> bool:
    length = int.from_bytes(blob[:4], "big")
    return len(blob) > 4 + length and blob[4 : 4 + length] == key_type.encode()


def _is_plain(pattern: str) -> bool:
    return not (pattern.startswith(("|", "!")) or _GLOB.search(pattern))


def _matches(pattern: str, host: str) -> bool:
    if pattern.startswith("|"):
        return _matches_hash(pattern, host)
    if not _GLOB.search(pattern):
        return pattern == host
    # OpenSSH supports only `*` and `?`; `[` is an ordinary character, as in `[*.example.org]:2222`.
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
