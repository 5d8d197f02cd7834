"""Records the files that a playbook is made of, so that a saved plan can name the one that changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# In this order messages list them.
KINDS = (
    "settings",
    "inventory",
    "variables",
    "playbook",
    "include",
    "module",
    "template",
    "file",
    "node type",
    "charm",
    "hook",
)
_PIECE = 1 << 20


class Inputs:
    """The files that were read, by kind and absolute path, each with the SHA-256 of its content.

    A file is noted once: under the kind and with the content with which it was first read.
    """

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str]] = {}  # path → kind, SHA-256

    def add(self, kind: str, path: str, sha256: str) -> None:
        """Add a file; one that is known stays as it is."""
        self.found.setdefault(path, (kind, sha256))

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """Yield kind, absolute path and SHA-256 of each file, sorted by kind and path."""
        listed = ((kind, path, sha256) for path, (kind, sha256) in self.found.items())
        return iter(sorted(listed, key=lambda each: (KINDS.index(each[0]), each[1])))


_RECORDING: ContextVar[Inputs | None] = ContextVar("the inputs being recorded", default=None)


@contextmanager
def recording() -> Iterator[Inputs]:
    """Record the files that are read inside."""
    found = Inputs()
    token = _RECORDING.set(found)
    try:
        yield found
    finally:
        _RECORDING.reset(token)


def active() -> bool:
    """Return whether anybody records."""
    return _RECORDING.get() is not None


def note(kind: str, path: str | os.PathLike[str], data: bytes | None = None, sha256: str = "") -> None:
    """Note that a file was read; does nothing unless somebody records.

    :param kind: one of `KINDS`
    :param path: the file; a relative path starts at the working directory
    :param data: what was read, or
    :param sha256: its digest; without both, the file is read here. A file that can't be read is not noted.
    """
    found = _RECORDING.get()
    if found is None:
        return
    absolute = os.path.abspath(path)
    if not sha256:
        sha256 = hashlib.sha256(data).hexdigest() if data is not None else digest(Path(absolute))
    if sha256:
        found.add(kind, absolute, sha256)


def digest(path: Path) -> str:
    """Return the SHA-256 of a regular file's content in hex; "" if it can't be read."""
    total = hashlib.sha256()
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                total.update(piece)
    except OSError:
        return ""
    return total.hexdigest()
