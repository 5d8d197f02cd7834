"""The content of large files of the project, which stays on disk until a host requests it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from statecfg.remote.graph.model import Blob

PIECE = 1 << 20  # bytes that are read at once


class FileBlob(Blob):
    """The content of a file, with what shows later whether the file has changed."""

    __slots__ = ("seen",)

    def __init__(self, file: Path) -> None:
        """Read the file.

        :raises OSError: if it can't be read
        """
        total, size = hashlib.sha256(), 0
        with file.open("rb") as stream:
            self.seen = _mark(os.fstat(stream.fileno()))
            while piece := stream.read(PIECE):
                total.update(piece)
                size += len(piece)
        super().__init__(total.hexdigest(), size, None, str(file))

    def untouched(self) -> bool:
        """Tell whether the file looks as it did before it was read."""
        assert self.path is not None
        try:
            return _mark(os.stat(self.path)) == self.seen
        except OSError:
            return False


def _mark(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
