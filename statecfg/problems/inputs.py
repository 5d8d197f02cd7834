"""Record the files that a playbook uses, so that a saved plan can name the file that changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# The categories of input files, in the order in which messages list them.
CATEGORIES = (
    "settings",
    "inventory",
    "inventory source",
    "variables",
    "playbook",
    "include",
    "role",
    "module",
    "template",
    "file",
    "node type",
    "fact",
    "charm",
    "hook",
)
_CHUNK = 1 << 20


class Inputs:
    """The files that were read, each with its category and the SHA-256 of its content.

    A file is recorded once, with the category and content of its first read.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, str]] = {}  # path → category, SHA-256

    def add(self, category: str, path: str, sha256: str) -> None:
        """Add a file unless it was already added.

        :param category: one of `CATEGORIES`
        :param path: its absolute path
        """
        self._files.setdefault(path, (category, sha256))

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """Yield category, absolute path and SHA-256 of each file, sorted by category and path."""
        rows = ((category, path, sha256) for path, (category, sha256) in self._files.items())
        return iter(sorted(rows, key=lambda row: (CATEGORIES.index(row[0]), row[1])))


_RECORDING: ContextVar[Inputs | None] = ContextVar("the inputs being recorded", default=None)


@contextmanager
def recording() -> Iterator[Inputs]:
    """Record the files that are read in the block."""
    inputs = Inputs()
    token = _RECORDING.set(inputs)
    try:
        yield inputs
    finally:
        _RECORDING.reset(token)


@contextmanager
def recording_into(inputs: Inputs | None) -> Iterator[None]:
    """Record the files that are read in the block, in addition to those of an earlier block.

    :param inputs: the result of `current`
    """
    token = _RECORDING.set(inputs)
    try:
        yield
    finally:
        _RECORDING.reset(token)


def current() -> Inputs | None:
    """Return where input files are being recorded; None if they are not."""
    return _RECORDING.get()


def active() -> bool:
    """Return whether input files are being recorded."""
    return _RECORDING.get() is not None


def note(category: str, path: str | os.PathLike[str], data: bytes | None = None, sha256: str = "") -> None:
    """Record that a file was read, if input files are being recorded.

    Without `data` and `sha256`, the file is read here. A file that can't be read is not recorded.

    :param category: one of `CATEGORIES`
    :param path: the file; a relative path starts at the working directory
    :param data: its content, if the caller has it
    :param sha256: the digest of its content, if the caller has it
    """
    inputs = _RECORDING.get()
    if inputs is None:
        return
    absolute = os.path.abspath(path)
    if not sha256:
        sha256 = hashlib.sha256(data).hexdigest() if data is not None else digest(Path(absolute))
    if sha256:
        inputs.add(category, absolute, sha256)


def digest(path: Path) -> str:
    """Return the SHA-256 of a regular file's content in hex; "" if it can't be read."""
    total = hashlib.sha256()
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                total.update(chunk)
    except OSError:
        return ""
    return total.hexdigest()
