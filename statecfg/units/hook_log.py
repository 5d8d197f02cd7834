"""Buffer the output of hooks, and write it to the store in batches."""

from __future__ import annotations

import time

from statecfg.remote.machine.redact import Redactor
from statecfg.run.deployment import Deployment
from statecfg.store import services
from statecfg.store.database import Store

LINES = 200  # maximum number of buffered lines
LENGTH = 1 << 20  # maximum characters of the buffered lines


class HookLog:
    """The buffer of one run."""

    def __init__(self, store: Store, deployment: Deployment) -> None:
        self.store, self.project = store, deployment.project
        # A host masks the secrets of its own units. But a hook can also print a secret of another unit.
        secrets = [item for values in deployment.secrets.values() for item in values.items()]
        self._redactor = Redactor(dict(secrets))
        self._lines: list[tuple[float, str, str, int, str]] = []
        self._length = 0

    def add(self, unit: str, hook: str, level: int, text: str) -> None:
        """Add a line, with masked secrets. Write the buffer to the store if it is full.

        :raises StoreError: the store can't be written
        """
        masked = self._redactor.text(text)
        self._lines.append((time.time(), unit, hook, level, masked))
        self._length += len(masked)
        if len(self._lines) >= LINES or self._length >= LENGTH:
            self.write()

    def write(self) -> None:
        """Write the buffered lines to the store.

        :raises StoreError: the store can't be written
        """
        lines, self._lines, self._length = self._lines, [], 0
        if lines:
            services.log(self.store, self.project, lines)
