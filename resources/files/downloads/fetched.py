"""Content that the controller downloads when the first host needs it. Hosts don't get this module."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine import durable
from statecfg.resources.files.downloads.downloads import Download

# The size is known only later, but saved plans and the wire need one that stays the same. It is larger than any content
# that is sent inside a definition or searched for secrets.
UNSIZED = (1 << 20) + 1  # bytes
_LOCKS: dict[str, threading.Lock] = {}  # digest → held while it is fetched


class Fetched(Blob):
    """Content of a URL. The controller keeps it in its cache.

    :param how: see `Download`
    """

    __slots__ = ("how", "url")

    def __init__(self, url: str, sha256: str, how: Mapping[str, Any]) -> None:
        Blob.__init__(self, sha256, UNSIZED)
        self.url, self.how = url, how

    def chunks(self, size: int = 1 << 18) -> Iterator[bytes]:
        """Fetch the content if it is not in the cache, and yield it in pieces.

        :raises OSError: if it can't be fetched
        """
        with _LOCKS.setdefault(self.sha256, threading.Lock()):
            path = directory() / self.sha256
            if not path.exists():
                self._fetch(path)
        self.size = path.stat().st_size
        with path.open("rb") as stream:
            while piece := stream.read(size):
                yield piece

    def _pieces(self) -> Iterator[bytes]:
        """Fetch the content in pieces.

        :raises LookupError: if it can't be fetched, or has another digest
        """
        return Download(self.url, f"sha256:{self.sha256}", self.how, str(directory())).chunks()

    def _fetch(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            # Not synced: the host checks the digest of everything that it gets.
            durable.replace(str(path), self._pieces(), 0o666, synced=False)
        except LookupError as problem:
            raise OSError(str(problem)) from None


def directory() -> Path:
    """Return the directory of the cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "statecfg" / "downloads"
