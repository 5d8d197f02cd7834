"""The log of hooks that run on hosts: the controller records the calls that hosts report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.names import HookStatus
from statecfg.remote.hooks.output import ERROR, INFO
from statecfg.remote.hooks.result import Judged
from statecfg.store import hosts
from statecfg.store.database import Store
from statecfg.store.hooks import log, objects
from statecfg.store.hooks.records import Queued


class HostLog:
    """Records the results of hooks that ran on hosts."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._metadata: dict[str, Mapping[str, Any]] = {}  # host → metadata that its hooks saw last

    def expect(self, host: str, metadata: Mapping[str, Any]) -> None:
        """Remember the metadata that a host receives at the start of the run."""
        self._metadata[host] = metadata

    def enter(self, host: str, playbook: str, fired: Mapping[str, Any]) -> None:
        """Log a call, and store the metadata that the hook changed.

        :param fired: the call, as in the host's report
        """
        record, hook = hosts.get(self.store, host), objects.get(self.store, fired["hook"])
        if record is None or hook is None:
            return
        severity = fired.get("severity") or (INFO if fired["status"] == HookStatus.OK else ERROR)
        entry = fired.get("entry") or {"event": fired["event"], "error": fired.get("error", "")}
        item = Queued(0, hook, fired["event"], record.id, {}, playbook)
        error = fired.get("error", "")
        detail = "" if error in json.dumps(entry, ensure_ascii=False) else error
        judged = Judged(severity, {**entry, "resource": fired["name"]}, {}, None, detail)
        self.store.attempt(lambda connection: log.write(connection, item, judged))
        if fired.get("metadata") is not None:
            self._update(host, fired["metadata"])

    def _update(self, host: str, now: Mapping[str, Any]) -> None:
        """Store only the changes of this hook, because others may have changed the metadata in the meantime."""
        before = self._metadata.get(host, {})
        changed = {key: value for key, value in now.items() if key not in before or before[key] != value}
        hosts.set_metadata(self.store, host, changed, [key for key in before if key not in now])
        self._metadata[host] = now
