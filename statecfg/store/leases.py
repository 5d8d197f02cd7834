"""Locks of a store in PostgreSQL: a row with the holder and the end of its lease."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from statecfg.store import tables
from statecfg.store.connection import Connection
from statecfg.store.errors import StoreError
from statecfg.store.lock import StoreLock, busy, pauses, who
from statecfg.store.postgresql import server_time

if TYPE_CHECKING:
    from statecfg.store.database import Store

# Seconds.
LEASE = 30.0
RENEW = 10.0


class _Lease(StoreLock):
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
        mine = {"holder": self.holder, "who": who(), "expires": server_time() + LEASE}
        free = (self.row.c.expires < server_time()) | (self.row.c.holder == self.holder)
        statement = (
            insert(self.row)
            .values(name=self.name, token=1, **mine)
            .on_conflict_do_update(index_elements=["name"], set_={**mine, "token": self.row.c.token + 1}, where=free)
            .returning(self.row.c.token)
        )
        token = self.store.attempt(lambda connection: connection.execute(statement).scalar())
        if token is None:
            self._limit()
            return False
        self.token = int(token)
        return True

    def _limit(self) -> None:
        """Let the holder's lease end at most one lease from now.

        It ends later if the clock of the database was set back. A holder that lives renews it every 10 s.
        """
        other = (self.row.c.name == self.name) & (self.row.c.expires > server_time() + 2 * LEASE)
        limited = update(self.row).where(other).values(expires=server_time() + LEASE)
        self.store.attempt(lambda connection: connection.execute(limited))

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
def leased(store: Store, name: str, wait: float) -> Iterator[StoreLock]:
    """Hold the lock with this name. See `locks.taken`."""
    lease = _Lease(store, name)
    for _ in pauses(wait, 0.02, 0.25):
        if lease.take():
            break
    else:
        with store.reading() as connection:
            holder = connection.execute(select(tables.lease.c.who).where(tables.lease.c.name == name)).scalar()
        raise busy(store, name, str(holder or "another process"))
    lease.thread.start()
    try:
        yield lease
    finally:
        lease.give_back()
