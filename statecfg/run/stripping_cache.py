"""Cache stripped source between runs of statecfg, because stripping takes most of the time of a short run.

Each line of the file is a JSON list: the key, the stripped source and the imports of a module. Only the lines that a
run uses are parsed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from functools import lru_cache
from pathlib import Path

from statecfg.remote.machine import durable
from statecfg.run import compacting, stripping

_MOST = 3 << 19  # bytes, because every run reads the file: the source of one version with all its node types fits
_Entry = tuple[str, list[str]]
_KEY = slice(2, 66)  # the key in a line


class StrippingCache:
    """The stripped source and the imports of modules, by the digest of their source.

    :param path: the cache file. If it can't be read or written, nothing is cached.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        code = [Path(file).read_bytes() for file in (stripping.__file__, compacting.__file__)]
        self.version = hashlib.sha256(b"".join(code)).hexdigest()
        self.lines = self._read()  # key → line
        self.used: dict[str, _Entry] = {}
        self.grown = False

    def get(self, text: str) -> _Entry:
        """Return source as hosts receive it, and the names that it imports (see `stripping.imports`).

        :param text: the source of a module
        :raises SyntaxError: if the source does not compile
        """
        key = hashlib.sha256((self.version + text).encode()).hexdigest()
        entry = self.used.get(key) or self._parsed(key)
        if entry is None:
            short = compacting.compacted(stripping.stripped(text))
            entry = short, stripping.imports(short)
            self.grown = True
        self.used[key] = entry
        return entry

    def keep(self) -> None:
        """Write new entries to the file. If it gets too large, it loses the entries whose last use is longest ago."""
        if not self.grown:
            return
        self.grown = False
        older = {key: line for key, line in self.lines.items() if key not in self.used}
        lines = {**older, **{key: json.dumps([key, *entry]).encode() for key, entry in list(self.used.items())}}
        excess = sum(len(line) + 1 for line in lines.values()) - _MOST
        for key in older:
            if excess <= 0:
                break
            excess -= len(lines.pop(key)) + 1
        data = b"".join(line + b"\n" for line in lines.values())
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            durable.replace(str(self.path), [data], synced=False)  # damaged lines count as missing

    def _parsed(self, key: str) -> _Entry | None:
        """Return the entry of a line; None if the file does not have it."""
        try:
            _, text, imports = json.loads(self.lines[key])
        except (KeyError, ValueError):
            return None
        return text, imports

    def _read(self) -> dict[str, bytes]:
        """Return the lines of the file, none if other users can write to it: hosts run this code."""
        try:
            with open(self.path, "rb") as stream:
                info = os.fstat(stream.fileno())
                if info.st_uid != os.geteuid() or not stat.S_ISREG(info.st_mode) or info.st_mode & 0o022:
                    return {}
                lines = stream.read().splitlines()
                whole = (line for line in lines if line.startswith(b'["') and line.endswith(b"]]"))
                return {line[_KEY].decode("ascii", "replace"): line for line in whole}
        except OSError:
            return {}


@lru_cache(maxsize=1)
def cache() -> StrippingCache:
    """Return this user's cache, in the directory that the XDG Base Directory Specification defines."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if base.startswith("/") else Path("~/.cache").expanduser())
    return StrippingCache(folder / "statecfg" / "host-source.jsonl")
