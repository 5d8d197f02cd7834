"""Lets hosts with equal results share them in memory: most hosts of a large run report the same."""

from __future__ import annotations

import hashlib
import json
import threading
from typing import Any

from statecfg.run.report_model import HostData

_SHARED = ("layers", "removals", "left", "fingerprints", "facts", "owed", "hooks", "summary")


class Folding:
    """The results of the hosts that have finished. They must no longer change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[bytes, Any] = {}  # digest → value

    def fold(self, host: HostData) -> None:
        """Replace values in the report of a host by equal values of other hosts."""
        report: Any = host  # the keys are not literals
        for key in _SHARED:
            if report.get(key):
                report[key] = self._shared_value(report[key])

    def _shared_value(self, value: Any) -> Any:
        """Return the value that equals a value of a report. If there is none, share the nodes of its layers."""
        digest = hashlib.sha256(json.dumps(value).encode()).digest()
        with self._lock:
            if digest in self._shared:
                return self._shared[digest]
        if isinstance(value, list) and all(isinstance(layer, list) for layer in value):
            value = [[self._shared_value(node) for node in layer] for layer in value]
        with self._lock:
            return self._shared.setdefault(digest, value)
