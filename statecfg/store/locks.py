"""Named locks: a kernel lock on a file beside the SQLite file, or a lease in PostgreSQL."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import select, update

from statecfg.store import tables
from statecfg.store.errors import Busy, StoreError
from statecfg.store.postgresql import server_time

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from statecfg.store.database import Store

# Seconds.
LEASE = 30.0
RENEW = 10.0


class Lock:
    """A lock that is held.

    :param token: in PostgreSQL, larger than the token of every earlier holder; in SQLite, 0
    """

    def __init__(self, token: int = 0) -> None:
        self.token = token

    def hold(self, connection: Connection) -> None:
        """Ensure, inside a transaction that writes, that this process holds the lock until the transaction ends.

        :raises StoreError: the lock was lost; the transaction must be rolled back
        """


def taken(store: Store, name: str, wait: float) -> contextlib.AbstractContextManager[Lock]:
    """Hold the lock with this name. It has one holder at a time, across all processes and threads.

    :param wait: seconds to wait for the lock
    :raises Busy: on entering, another process or thread still holds the lock after that time
    """
    store.check_process()
    return _leased(store, name, wait) if store.shared else _locked(store, name, wait)


def _pauses(wait: float, first: float, longest: float) -> Iterator[None]:
    """Yield immediately, then after increasing pauses, until `wait` seconds have passed."""
    deadline = time.monotonic() + wait
    yield
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(first, left))
        first = min(2 * first, longest)
        yield


@contextlib.contextmanager
def _locked(store: Store, name: str, wait: float) -> Iterator[Lock]:
    assert store.address.path is not None
    path = f"{store.address.path}-turn-{quote(name, safe='')}"
    holder = "another process"
    for _ in _pauses(wait, 0.001, 0.05):
        handle = _open(path)
        try:
            if not _flock(handle):
                holder = _holder(handle)
                continue
            if not _is_at(handle, path):
                continue  # the last holder removed the file between our open and our lock
            me = {"who": _who(), "pid": os.getpid(), "since": time.time()}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(me).encode(), 0)  # only for messages of other processes
            try:
                yield Lock()
            finally:
                os.unlink(path)  # while this process holds the lock: no other process can have locked this file
            return
        finally:
            os.close(handle)
    raise _busy(store, name, holder)


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


def _busy(store: Store, name: str, who: str) -> Busy:
    return Busy(f"{store.label}: {who} holds the lock {name}", "wait until it is done, or end it")


def _who() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"


class _Lease(Lock):
    """A row with the holder of the lock and the end of its lease, which a thread renews while the lock is held."""

    def __init__(self, store: Store, name: str) -> None:
        super().__init__()
        self.store, self.name, self.holder, self.row = store, name, uuid.uuid4().hex, tables.lease
        self.mine = (self.row.c.name == name) & (self.row.c.holder == self.holder)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._renew, daemon=True)

    def take(self) -> bool:
        """Take the lease if it is free or already ours; return whether this succeeded.

        It can be ours already if the response to an earlier attempt was lost.
        """
        from sqlalchemy.dialects.postgresql import insert

        mine = {"holder": self.holder, "who": _who(), "expires": server_time() + LEASE}
        free = (self.row.c.expires < server_time()) | (self.row.c.holder == self.holder)
        statement = (
            insert(self.row)
            .values(name=self.name, token=1, **mine)
            .on_conflict_do_update(index_elements=["name"], set_={**mine, "token": self.row.c.token + 1}, where=free)
            .returning(self.row.c.token)
        )
        token = self.store.attempt(lambda connection: connection.execute(statement).scalar())
        if token is None:
            return False
        self.token = int(token)
        return True

    def hold(self, connection: Connection) -> None:
        """Ensure that no other process took the lease meanwhile, and lock its row until the transaction ends."""
        query = select(self.row.c.token).where(self.mine).with_for_update()
        if connection.execute(query).scalar() != self.token:
            raise StoreError(
                f"{self.store.label}: the lock {self.name} was lost: it was not renewed for {LEASE:.0f} s",
                "run the command again",
            )

    def _renew(self) -> None:
        """Renew the lease every 10 s. If the store does not respond, the lease expires."""
        while not self.ended.wait(RENEW):
            with contextlib.suppress(StoreError):
                self._expire(server_time() + LEASE)

    def give_back(self) -> None:
        """End the lease now."""
        self.ended.set()
        self.thread.join()
        self._expire(0.0)

    def _expire(self, when: Any) -> None:
        statement = update(self.row).where(self.mine).values(expires=when)
        self.store.attempt(lambda connection: connection.execute(statement))


@contextlib.contextmanager
def _leased(store: Store, name: str, wait: float) -> Iterator[Lock]:
    lease = _Lease(store, name)
    for _ in _pauses(wait, 0.02, 0.25):
        if lease.take():
            break
    else:
        with store.reading() as connection:
            who = connection.execute(select(tables.lease.c.who).where(tables.lease.c.name == name)).scalar()
        raise _busy(store, name, str(who or "another process"))
    lease.thread.start()
    try:
        yield lease
    finally:
        lease.give_back()
