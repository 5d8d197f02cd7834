"""The thread that coordinates units: plans, failures of the store, and runs that the user stops."""

from __future__ import annotations

import queue
import sqlite3
import threading
from pathlib import Path
from typing import Any

from statecfg.run import charms
from statecfg.run.deployment import Deployment
from statecfg.store import opened
from statecfg.store.units.records import Declared
from statecfg.units.coordinator import Coordinator
from statecfg.units.state import wake
from statecfg.views import units as view
from statecfg.views.lines import plain
from tests.lab import processes

DONE = {"type": "unit-done", "ok": True, "ran": True, "error": "", "changes": {}, "seconds": 0.0}


def test_a_failing_store_releases_the_waiting_hosts(tmp_path: Path) -> None:
    """Without this they would wait forever for instructions about their units."""
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
            processes.wait_until(lambda: led.hosts["one"].units["web/0"].quiet, 20, "the hooks of web/0 to end")
            with sqlite3.connect(path) as other:
                other.execute("DROP TABLE unit_event")
            other.close()
            wake(led.hosts.values())  # as after the end of a unit on another host
            assert told.get(timeout=20)["type"] == "units-go"
            assert led.problems and "unit_event" in led.problems[0]
        finally:
            led.session_ended("one")
            led.close()
        assert led.report("one")[0]["error"] == led.problems[0]


def test_a_stopped_run_reports_how_far_units_came(tmp_path: Path) -> None:
    told: queue.Queue[dict[str, Any]] = queue.Queue()
    stopped = threading.Event()
    with opened(url=str(tmp_path / "store.db")) as store:
        web = Declared("web", ("one",), "web", "d1", {}, {}, 60.0)
        led = Coordinator(store, Deployment("shop", "shop/site.yml", [web]), "apply", "r1", {"one": {}}, stopped)
        led.begin()
        led.take("one", {"type": "units", "phase": "after", "ok": True}, told.put, "192.0.2.1")
        frame = told.get(timeout=20)
        stopped.set()  # while install runs
        led.take("one", {**DONE, "id": frame["id"]}, told.put, "192.0.2.1")
        assert told.get(timeout=20)["type"] == "units-go"
        led.session_ended("one")
        led.close()
        (unit,) = led.report("one")
    assert (unit["state"], [hook["hook"] for hook in unit["hooks"]]) == ("installed", ["install"])


def test_a_plan_shows_only_hooks_that_the_charm_has(tmp_path: Path) -> None:
    for hook in ("install", "start"):
        path = tmp_path / "web/hooks" / hook
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    charm = charms.read(tmp_path / "web")
    assert charm is not None
    with opened(url=str(tmp_path / "store.db")) as store:
        web = Declared("web", ("one",), charm.name, charm.digest, {}, {}, 60.0)
        for known, shown in (({"web": charm}, ["install", "start"]), ({}, ["install", "config-changed", "start"])):
            deployment = Deployment("shop", "shop/site.yml", [web], charms=known)
            led = Coordinator(store, deployment, "apply", "r1", {"one": {}}, threading.Event())
            assert [hook["hook"] for hook in led.orders.ahead.due["one"]] == ["install", "config-changed", "start"]
            report = {"status": "ok", "units": [{"unit": "web/0", "due": led.orders.ahead.due["one"]}]}
            assert view.due(report) == len(shown)
            assert plain(view.due_lines(report, verbose=False)) == f"  ⚑ web/0  {', '.join(shown)}\n"


def test_units_of_an_unreachable_host_are_not_reported_as_idle() -> None:
    host = {"units": [{"unit": "web/0", "state": "new", "hooks": []}]}
    assert "Nothing to do" in plain(view.done_lines({**host, "status": "ok"}, verbose=False))
    for status in ("unreachable", "refused", "locked"):
        assert plain(view.done_lines({**host, "status": status}, verbose=False)) == ""
