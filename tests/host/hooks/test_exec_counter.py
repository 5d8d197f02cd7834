"""Hooks that count: no event is lost and no two run together, even with many processes and killed engines."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from statecfg.hooks.exec.engine import HookEngine
from statecfg.hooks.exec.types import SHIPPED, HookTypes
from statecfg.store import opened
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log
from statecfg.store.hooks import objects as hook_objects
from statecfg.store.hooks import queue, records
from tests.host.hooks.exec.workshop import BOOTED, BOUND, COUNTER, Workshop
from tests.host.remote.machine.test_process import alive

PROCESSES, EVENTS = 8, 10
KILLS = 25
LEASE = 3.0  # seconds; tests/host/store/test_together.py tests the lease that users have
SCHEMA = "count: {default: 0}\nagain: {default: 0}"

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="not run on this machine: there is no jq (Debian: jq)")
# The counter of the original's documentation, including its mistakes.
LITERAL = """#! /bin/bash

json=$(< /dev/stdin)

name=$(jq '.hook.name' <<< $json)
value=$(( $(jq '.hook.config.count' <<< $json) + 1 ))

cat <<EOF
{
  "hook": {
    "configuration": {
      "count": $value
    }
  },
  "metadata": {
    $name: $value
  }
}
EOF
"""


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Workshop:
    return Workshop(store, tmp_path / "hooks")


@needs_jq
def test_the_shipped_counter_counts_in_configuration_and_metadata(shop: Workshop) -> None:
    engine = HookEngine(shop.store, HookTypes((SHIPPED,)))
    kind = engine.types.find("counter")
    hook_objects.create(
        shop.store, "mine", "counter", str(kind.folder), kind.configured({"count": 41}), records.Spec(), "me"
    )
    engine.trigger(BOUND, shop.host, "p.yml")
    engine.drain()
    assert [severity for severity, _ in shop.entries()] == ["info"]
    assert (shop.configuration("mine"), shop.metadata()) == ({"count": 42}, {"mine": 42})


@needs_jq
def test_the_counter_as_documented_fails_as_in_the_original(shop: Workshop) -> None:
    shop.simple("counter", LITERAL, BOUND, "count: {default: 0}")
    shop.engine.run("counter", BOUND, shop.host)
    ((severity, entry),) = shop.entries()
    assert (severity, entry["exit_status"]) == ("error", 0)
    assert entry["error"] == (
        "unexpected key in hook's output: metadata and "
        "undefined operation on hook: count; should be 'update' or 'remove'"
    )
    assert (shop.configuration("counter"), shop.metadata()) == ({"count": 0}, {})


def test_the_shipped_counter_reports_that_jq_is_missing(shop: Workshop) -> None:
    script = (SHIPPED / "counter.hook" / BOUND).read_text().replace("set -eu", "set -eu\nPATH=/no/such/place")
    shop.simple("counter", script, BOUND, "count: {default: 0}")
    shop.engine.run("counter", BOUND, shop.host)
    ((severity, entry),) = shop.entries()
    said = {"message": "the hook type counter needs the program jq: apt-get install jq"}
    assert (severity, entry["error"]) == ("error", said)


@needs_jq
def test_events_of_many_processes_are_all_counted_in_order(shop: Workshop, url: str) -> None:
    shop.simple("counter", COUNTER, schema=SCHEMA)
    # On PostgreSQL, the lock is a lease and takes longer. So the test uses fewer events.
    events = EVENTS if not url.startswith("postgresql") else EVENTS // 2
    running = [shop.process(url, BOOTED, events) for _ in range(PROCESSES)]
    try:
        for process in running:
            said, wrong = process.communicate(timeout=300)
            assert process.returncode == 0, said + wrong
    finally:
        for process in running:
            process.kill()
            process.wait()
    total = PROCESSES * events
    assert queue.waiting(shop.store) == 0
    assert [severity for severity, _ in shop.entries()] == ["info"] * total
    assert shop.configuration("counter") == {"count": total, "again": total}
    assert shop.metadata() == {"count": total}
    invocations = [event.invocation or 0 for event in reversed(hook_log.events(shop.store))]
    assert invocations == sorted(set(invocations)), "the invocations run in the order of their events"


@needs_jq
def test_killed_engines_lose_no_event_and_make_no_partial_change(tmp_path: Path) -> None:
    # This test uses SQLite, because on PostgreSQL the lock of a killed engine lasts 30 s longer.
    url, total, kills = str(tmp_path / "store.db"), 60, 0
    dice = random.Random(20)
    end = time.monotonic() + 240
    with opened(url=url) as store:
        shop = Workshop(store, tmp_path / "hooks")
        shop.simple("counter", COUNTER, schema=SCHEMA)
        for _ in range(total):
            shop.engine.trigger(BOOTED, shop.host)
        while queue.waiting(store) and time.monotonic() < end:
            process = shop.process(url, BOOTED, 0)
            try:
                process.wait(dice.uniform(0.2, 0.6) if kills < KILLS else 120)
            except subprocess.TimeoutExpired:
                kills += 1
            process.kill()
            process.communicate()
            found = shop.configuration("counter")
            assert found["count"] == found["again"] == shop.metadata().get("count", 0)
        assert [severity for severity, _ in shop.entries()] == ["info"] * total
        assert shop.configuration("counter")["count"] == total
    assert kills >= 6


def test_the_next_engine_ends_programs_left_by_a_killed_one(shop: Workshop, url: str) -> None:
    folder = shop.type("h", **{BOOTED: "#!/bin/sh\necho $$ >>pids\n[ -e again ] || exec sleep 1000\n"})
    shop.hook("h", "h")
    shop.engine.trigger(BOOTED, shop.host)
    pids = folder / "pids"
    process = shop.process(url, BOOTED, 0, lease=LEASE)
    try:
        deadline = time.monotonic() + 30
        while not (pids.exists() and pids.read_text().endswith("\n")) and time.monotonic() < deadline:
            time.sleep(0.01)
        (folder / "again").touch()
    finally:
        process.kill()
        process.communicate()
    first = int(pids.read_text())
    assert alive(first), "the program outlives its killed engine"
    with opened(url=url) as mine:
        # On PostgreSQL, the lease of the killed engine has to expire first.
        HookEngine(mine, HookTypes((folder.parent,))).drain(LEASE + 20)
    assert not alive(first)
    assert len(pids.read_text().split()) == 2
    assert [severity for severity, _ in shop.entries()] == ["info"]
