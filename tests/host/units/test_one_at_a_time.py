"""Hooks of units on the same host run one after the other, because charms share packages and files."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from statecfg.run.deployment import Deployment
from statecfg.store import opened
from statecfg.store.units.records import Declared
from statecfg.units.coordinator import Coordinator


def test_a_host_gets_its_hooks_one_after_the_other(tmp_path: Path) -> None:
    both = [Declared(name, ("one",), name, "d1", {}, {}, 60.0) for name in ("db", "web")]
    told: queue.Queue[dict[str, Any]] = queue.Queue()
    ran = []
    with opened(url=str(tmp_path / "store.db")) as store:
        led = Coordinator(
            store, Deployment("shop", "shop/site.yml", both), "apply", "r1", {"one": {}}, threading.Event()
        )
        led.begin()
        led.take("one", {"type": "units", "phase": "after", "ok": True}, told.put, "192.0.2.1")
        while (frame := told.get(timeout=20))["type"] == "unit":
            assert told.empty()
            ran.append(f"{frame['step']['unit']} {frame['step']['hook']}")
            done = {"type": "unit-done", "ok": True, "ran": True, "error": "", "changes": {}, "seconds": 0.0}
            led.take("one", {**done, "id": frame["id"]}, told.put, "192.0.2.1")
        led.close()
    assert ran == [f"{unit} {hook}" for unit in ("db/0", "web/0") for hook in ("install", "config-changed", "start")]
