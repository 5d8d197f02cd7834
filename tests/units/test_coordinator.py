"""The thread that leads units: what it does where the store fails while it waits."""

from __future__ import annotations

import queue
import sqlite3
import threading
from pathlib import Path
from typing import Any

from statecfg.store import opened
from statecfg.store.unit_records import Declared
from statecfg.units.coordinator import Coordinator
from statecfg.units.deployment import Deployment
from tests.hosts import processes


def test_hosts_are_let_go_when_the_store_fails_between_two_frames(tmp_path: Path) -> None:
    """Else they would wait for the word on their units for ever."""
    path = tmp_path / "store.db"
    web = Declared("web", ("one", "two"), "web", "d1", {}, {}, 60.0)
    told: queue.Queue[dict[str, Any]] = queue.Queue()
    with opened(url=str(path)) as store:
        deployment = Deployment("shop", "shop/site.yml", [web])
        led = Coordinator(store, deployment, "apply", "r1", {"one": {}, "two": {}}, threading.Event())
        led.begin()
        try:
            led.take("one", {"type": "units", "phase": "after", "ok": True}, told.put, "192.0.2.1")
            for hook in ("install", "config-changed", "start"):
                frame = told.get(timeout=20)
                assert frame["step"]["hook"] == hook
                done = {"type": "unit-done", "ok": True, "ran": False, "error": "", "changes": {}, "seconds": 0.0}
                led.take("one", {**done, "id": frame["id"]}, told.put, "192.0.2.1")
            processes.wait_until(lambda: led.hosts["one"].units["web/0"].quiet, 20, "the end of its hooks")
            with sqlite3.connect(path) as other:
                other.execute("DROP TABLE unit_event")
            other.close()
            led._wake()  # as a unit that is gone from another host does
            assert told.get(timeout=20)["type"] == "units-go"
            assert led.problems and "unit_event" in led.problems[0]
        finally:
            led.gone("one")
            led.close()
        assert led.report("one")[0]["error"] == led.problems[0]
