"""Write whole files in one step: after a crash, a path has its former or its new content. Both halves use this."""

from __future__ import annotations

import errno
import os
from typing import Callable, Iterable, Iterator

from statecfg.remote.graph.model import Blob

COPIED = 1 << 20  # bytes of a file to copy at once


def create(path: str, pieces: Iterable[bytes], mode: int, synced: bool = True) -> None:
    """Write a new file.

    :param mode: the permissions, which the umask reduces
    :param synced: make its content durable
    :raises OSError: if the file exists or cannot be written
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as stream:
        for piece in pieces:
            stream.write(piece)
        if synced:
            stream.flush()
            os.fsync(stream.fileno())


def put(path: str, make: Callable[[str], object], trial: str = "") -> None:
    """Make a file or a link under a temporary name, and then give it its name in one step.

    :param make: makes it at the path that it receives
    :param trial: the temporary name. The default is unique to this process; a fixed one needs a lock, but killed
        processes leave at most one file
    :raises OSError: if that fails; `path` is then unchanged
    """
    trial = trial or f"{path}.{os.getpid()}"
    if os.path.lexists(trial):  # left by a killed process
        os.unlink(trial)
    try:
        make(trial)
        os.rename(trial, path)
    except BaseException:
        if os.path.lexists(trial):
            os.unlink(trial)
        raise


def replace(
    path: str, pieces: Iterable[bytes], mode: int = 0o600, sha256: str = "", synced: bool = True, trial: str = ""
) -> None:
    """Replace or create a file in one step. A link at `path` is replaced, not followed.

    :param mode: the permissions, which the umask reduces
    :param sha256: the digest that the content must have, "" for any
    :param synced: make it durable. Without this, the file may be incomplete or missing after a power failure
    :param trial: see `put`
    :raises OSError: if the file cannot be written or the content has another digest; `path` is then unchanged
    """
    checked = _checked(path, pieces, sha256) if sha256 else pieces
    put(path, lambda name: create(name, checked, mode, synced), trial)
    if synced:
        sync(os.path.dirname(path) or ".")


def _checked(path: str, pieces: Iterable[bytes], sha256: str) -> Iterator[bytes]:
    """Yield the pieces of a content.

    :raises OSError: at the end, if the content has another digest
    """
    import hashlib

    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.hexdigest() != sha256:
        raise OSError(errno.EBUSY, "it changed while statecfg saved it", path)


def keep(folder: str, blob: Blob) -> None:
    """Store content under its digest in a directory that only this user can read.

    :raises OSError: if it cannot be written, or changes while it is read
    """
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, blob.sha256)
    if not os.path.exists(path):
        replace(path, blob.chunks(), sha256=blob.sha256)


def sync(folder: str) -> None:
    """Make the entries of a directory durable.

    :raises OSError: if that fails
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy(source: str, opened: int) -> None:
    """Copy a file into an open one. The kernel copies it if it can."""
    with open(source, "rb", 0) as stream:
        try:
            while os.sendfile(opened, stream.fileno(), None, COPIED):
                pass
        except OSError as problem:
            if problem.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            for piece in iter(lambda: stream.read(COPIED), b""):
                write(opened, piece)


def write(opened: int, data: bytes) -> None:
    """Write all of `data` to an open file."""
    view = memoryview(data)
    while view:
        view = view[os.write(opened, view) :]
