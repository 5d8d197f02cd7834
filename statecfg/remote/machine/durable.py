"""Write whole files safely: after a crash, a file has its former or its new content. The controller uses this, too."""

from __future__ import annotations

import errno
import os
from typing import Iterable

from statecfg.remote.graph.model import Blob

COPIED = 1 << 20  # bytes of a file to copy at once


def create(path: str, pieces: Iterable[bytes], mode: int) -> str:
    """Write a new file and make its content durable.

    :returns: the SHA-256 of the content
    :raises OSError: if the file exists or cannot be written
    """
    from hashlib import sha256

    digest = sha256()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as stream:
        for piece in pieces:
            stream.write(piece)
            digest.update(piece)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()


def replace(path: str, pieces: Iterable[bytes], mode: int = 0o600, sha256: str = "") -> None:
    """Replace or create a file in one step, durably. A link at `path` is replaced, not followed.

    :param mode: the permissions, which the umask reduces
    :param sha256: the digest that the content must have, "" for any
    :raises OSError: if the file cannot be written or the content has another digest; `path` is then unchanged
    """
    trial = "%s.%d" % (path, os.getpid())
    if os.path.lexists(trial):  # left by a killed process with the same id
        os.unlink(trial)
    try:
        if create(trial, pieces, mode) != sha256 and sha256:
            raise OSError(errno.EBUSY, "it changed while statecfg saved it", path)
        os.rename(trial, path)
    except BaseException:
        if os.path.lexists(trial):
            os.unlink(trial)
        raise
    sync(os.path.dirname(path) or ".")


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
