"""Cache stripped source between runs of statecfg, because stripping takes most of the time of a short run."""

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


class StrippingCache:
    """The stripped source and the imports of modules, by the digest of their source.

    :param path: the cache file. If it can't be read or written, nothing is cached.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        code = [Path(file).read_bytes() for file in (stripping.__file__, compacting.__file__)]
        self.version = hashlib.sha256(b"".join(code)).hexdigest()
        self.entries = self._read()
        self.used: dict[str, _Entry] = {}
        self.grown = False

    def get(self, text: str) -> _Entry:
        """Return source as hosts receive it, and the names that it imports (see `stripping.imports`).

        :param text: the source of a module
        :raises SyntaxError: if the source does not compile
        """
        key = hashlib.sha256((self.version + text).encode()).hexdigest()
        entry = self.used.get(key) or self.entries.get(key)
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
        older = {key: entry for key, entry in self.entries.items() if key not in self.used}
        written = {key: json.dumps({key: entry})[1:-1] for key, entry in {**older, **self.used}.items()}
        excess = sum(len(entry) + 2 for entry in written.values()) - _MOST
        for key in older:
            if excess <= 0:
                break
            excess -= len(written.pop(key)) + 2
        data = f"{{{', '.join(written.values())}}}".encode()
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            durable.replace(str(self.path), [data], synced=False)  # damaged JSON counts as no cache

    def _read(self) -> dict[str, _Entry]:
        """Return the entries of the file, none if other users can write to it: hosts run this code."""
        try:
            with open(self.path, encoding="utf-8") as stream:
                info = os.fstat(stream.fileno())
                if info.st_uid != os.geteuid() or not stat.S_ISREG(info.st_mode) or info.st_mode & 0o022:
                    return {}
                return dict(json.load(stream))
        except (OSError, ValueError):
            return {}


@lru_cache(maxsize=1)
def cache() -> StrippingCache:
    """Return this user's cache, in the directory that the XDG Base Directory Specification defines."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base if base.startswith("/") else Path("~/.cache").expanduser())
    return StrippingCache(folder / "statecfg" / "host-source.json")
