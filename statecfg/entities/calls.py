"""What the calls of the API have in common: the store they work on and the clock they go by."""

from __future__ import annotations

import time
from collections.abc import Callable

from statecfg.store.database import Store


class Calls:
    """Calls of the API: each takes who asks first, raises ApiError where it refuses, StoreError where it can't.

    :param store: what they work on; threads may share both
    :param clock: gives seconds since 1970
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self.store, self.clock = store, clock
