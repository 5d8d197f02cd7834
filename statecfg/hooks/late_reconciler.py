"""Creates the reconciler of HTTP hooks only for runs that need it: most projects have no HTTP hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from statecfg.store import objects

if TYPE_CHECKING:
    from statecfg.hooks.http.reconcile import Reconciler
    from statecfg.hooks.registration.model import Registration
    from statecfg.playbook.inventory import Inventory
    from statecfg.store.database import Store


class LateReconciler:
    """The reconciler of a run. It exists if the run has HTTP hooks, or as soon as a host has an object of such hooks.

    Another run may store such an object at any time. Threads may share this class.

    :param hooks: the HTTP hooks of the run
    :param run: the run's id
    :param cancel: set when the user stops the run
    :ivar current: the reconciler; None if no hook and no object needed it so far
    :raises InvalidInput: a hook selects hosts that do not exist
    """

    def __init__(
        self, store: Store, hooks: Sequence[Registration], run: str, inventory: Inventory, cancel: threading.Event
    ) -> None:
        self._store, self._hooks, self._run, self._inventory = store, hooks, run, inventory
        self._cancel, self._lock = cancel, threading.Lock()
        self._tell: Callable[[str], object] = len
        self.current: Reconciler | None = None
        if hooks or objects.exist(store):
            self._create()

    def of(self, host: str, playbook: str) -> Reconciler | None:
        """Return the reconciler if a playbook on a host needs it."""
        with self._lock:
            if self.current is None and objects.get(self._store, playbook, host) is not None:
                self._create()
            return self.current

    def use(self, cancel: threading.Event | None = None, tell: Callable[[str], object] | None = None) -> None:
        """Set what stops the run, or what receives a line about the hook that the run waits for."""
        self._cancel, self._tell = cancel or self._cancel, tell or self._tell
        if self.current is not None:
            self.current.asking.cancel, self.current.asking.tell = self._cancel, self._tell

    def _create(self) -> None:
        from statecfg.hooks.http.reconcile import Reconciler

        self.current = Reconciler(self._store, self._hooks, self._run, self._inventory, self._cancel)
        self.current.asking.tell = self._tell
