"""Named locks: a kernel lock on a file beside the SQLite file, or a lease in PostgreSQL."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from statecfg.store.errors import StoreError
from statecfg.store.lock import StoreLock, busy, pauses, who

if TYPE_CHECKING:
    from statecfg.store.database import Store


def taken(store: Store, name: str, wait: float) -> contextlib.AbstractContextManager[StoreLock]:
    """Hold the lock with this name. It has one holder at a time, across all processes and threads.

    :param wait: seconds to wait for the lock
    :raises Busy: on entering, another process or thread still holds the lock after that time
    """
    store.check_process()
    if store.shared:
        from statecfg.store import leases

        return leases.leased(store, name, wait)
    return _locked(store, name, wait)


@contextlib.contextmanager
def _locked(store: Store, name: str, wait: float) -> Iterator[StoreLock]:
    assert store.address.path is not None
    path = f"{store.address.path}-turn-{quote(name, safe='')}"
    holder = "another process"
    for _ in pauses(wait, 0.001, 0.05):
        handle = _open(path)
        try:
            if not _flock(handle):
                holder = _holder(handle)
                continue
            if not _is_at(handle, path):
                continue  # the last holder removed the file between our open and our lock
            me = {"who": who(), "pid": os.getpid(), "since": time.time()}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(me).encode(), 0)  # only for messages of other processes
            try:
                yield StoreLock()
            finally:
                os.unlink(path)  # while this process holds the lock: no other process can have locked this file
            return
        finally:
            os.close(handle)
    raise busy(store, name, holder)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        raise StoreError(f"{path}: {problem.strerror}", "check the permissions of the file and its directory") from None


def _is_at(handle: int, path: str) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _flock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        if problem.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _holder(handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        return f"{holder['who']} (process {holder['pid']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
