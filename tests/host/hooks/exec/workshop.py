"""A store and a directory of hook types for tests of exec hooks, and processes that use both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statecfg.hooks.exec.engine import HookEngine
from statecfg.hooks.exec.types import HookTypes
from statecfg.store import hosts, leases
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log
from statecfg.store.hooks import objects as hook_objects
from statecfg.store.hooks.records import HookObject, Spec
from tests import ROOT

BOOTED = "node-booted"
BOUND = "node-bound-to-policy"

# Adds one to a counter in the configuration and in the metadata. Reports an error if another call runs meanwhile.
COUNTER = """#!/bin/bash
set -eu
exec 9>../one-at-a-time
if ! flock -n 9; then
    echo '{"error": {"message": "two at once"}}'
    exit 1
fi
sleep 0.01
jq '(.hook.configuration.count + 1) as $n | {
    hook: {configuration: {update: {count: $n, again: $n}}},
    node: {metadata: {update: {count: ((.node.metadata.count // 0) + 1)}}}
}'
"""

DRAINS = """
import sys
from pathlib import Path
from statecfg.hooks.exec.engine import HookEngine
from statecfg.hooks.exec.types import HookTypes
from statecfg.store import hosts, leases, opened
url, folder, event, host, count, drain, lease = sys.argv[1:]
leases.LEASE, leases.RENEW = float(lease), float(lease) / 3
with opened(url=url) as store:
    engine = HookEngine(store, HookTypes((Path(folder),)))
    for _ in range(int(count)):
        engine.trigger(event, hosts.get(store, host))
        if drain == "each":
            engine.drain(300)
    engine.drain(300)
"""


class Workshop:
    """A directory of hook types, and a store for hooks of these types."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        folder.mkdir(exist_ok=True)
        self.engine = HookEngine(store, HookTypes((folder,)))
        self.host = hosts.tag(store, "web1", ["blue"])

    def type(self, name: str, schema: str = "", **programs: str) -> Path:
        """Create a hook type. A `_` in a program's name stands for `-`."""
        folder = self.folder / f"{name}.hook"
        folder.mkdir(exist_ok=True)
        (folder / "configuration.yaml").write_text(schema)
        for event, script in programs.items():
            path = folder / event.replace("_", "-")
            path.write_text(script)
            path.chmod(0o755)
        return folder

    def hook(self, name: str, type: str, spec: Spec | None = None, **configuration: Any) -> HookObject:
        """Create a hook of a type."""
        kind = self.engine.types.find(type)
        complete = kind.configured(configuration)
        made, differs = hook_objects.create(self.store, name, type, str(kind.folder), complete, spec or Spec(), "me")
        assert not differs
        return made

    def simple(self, name: str, script: str, event: str = BOOTED, schema: str = "", **configuration: Any) -> HookObject:
        """Create a type with one program, and a hook of this type. Both have the same name."""
        self.type(name, schema, **{event: script})
        return self.hook(name, name, **configuration)

    def configuration(self, name: str) -> dict[str, Any]:
        """Return the current configuration of a hook."""
        found = hook_objects.get(self.store, name)
        assert found is not None
        return found.configuration

    def metadata(self) -> Any:
        """Return the current metadata of the host."""
        found = hosts.get(self.store, "web1")
        assert found is not None
        return found.metadata

    def entries(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the severity and the content of all log entries, the oldest first."""
        return [(event.severity, event.entry) for event in reversed(hook_log.events(self.store))]

    def process(
        self, url: str, event: str, count: int, drain: str = "each", lease: float = leases.LEASE
    ) -> subprocess.Popen[str]:
        """Start a process that fires an event `count` times and drains the queue.

        :param drain: "each" drains the queue after each event, any other value only at the end
        :param lease: seconds until PostgreSQL releases the lock of a process that stops renewing it
        """
        given = (url, str(self.folder), event, "web1", str(count), drain, str(lease))
        argv: Sequence[str] = (sys.executable, "-c", DRAINS, *given)
        return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
