"""What all locks of a store share: the held lock, the pauses while waiting for it, and the error if it is busy."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from statecfg.store.errors import Busy

if TYPE_CHECKING:
    from statecfg.store.connection import Connection
    from statecfg.store.database import Store


class StoreLock:
    """A lock that is held.

    :param token: in PostgreSQL, larger than the token of every earlier holder; in SQLite, 0
    """

    def __init__(self, token: int = 0) -> None:
        self.token = token

    def hold(self, connection: Connection) -> None:
        """Ensure, inside a transaction that writes, that this process holds the lock until the transaction ends.

        :raises StoreError: the lock was lost; the transaction must be rolled back
        """


def pauses(wait: float, first: float, longest: float) -> Iterator[None]:
    """Yield immediately, then after increasing pauses, until `wait` seconds have passed."""
    deadline = time.monotonic() + wait
    yield
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(first, left))
        first = min(2 * first, longest)
        yield


def busy(store: Store, name: str, holder: str) -> Busy:
    """Return the error for a lock that another process or thread holds."""
    return Busy(f"{store.label}: {holder} holds the lock {name}", "wait until it is done, or end it")


def who() -> str:
    """Return the user and the machine of this process."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
