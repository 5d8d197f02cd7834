"""Content put away on this host, durably, in files of ours."""

from __future__ import annotations

import errno
import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from statecfg.remote.graph.model import Blob


def keep(folder: str, blob: Blob) -> None:
    """Keep content by its digest, readable by nobody else: all of it or nothing. Raises OSError."""
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, blob.sha256)
    if os.path.exists(path):
        return
    trial = "%s.%d" % (path, os.getpid())
    try:
        if write(trial, blob, 0o600) != blob.sha256:
            raise OSError(errno.EBUSY, "it changes while it is being remembered", blob.path)
        os.rename(trial, path)
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    except BaseException:
        if os.path.exists(trial):
            os.unlink(trial)
        raise


def write(path: str, blob: Blob, mode: int) -> str:
    """Write content to a new file; return its SHA-256. Raises OSError."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as stream:
        for piece in blob.chunks():
            stream.write(piece)
            digest.update(piece)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()
