"""Limits for hosts while units run: a host that floods or does not read delays only itself."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.wire import frames as wire
from statecfg.run.deployment import Deployment
from statecfg.run.host.outbox import MOST, Outbox
from statecfg.run.host.outgoing import answer_frame
from statecfg.store import opened
from statecfg.store.units.records import Declared
from statecfg.transport import TransportError
from statecfg.transport.local import LocalConnection, LocalStream
from statecfg.units import inbox
from statecfg.units.coordinator import Coordinator
from tests.lab import processes

Json = dict[str, Any]
PHASE = {"type": "units", "phase": "after", "ok": True}
LINE = {"type": "unit-log", "unit": "web/0", "hook": "install", "level": 20, "text": "x", "id": None}


@pytest.fixture
def led(tmp_path: Path) -> Iterator[Coordinator]:
    web = Declared("web", ("one", "two"), "web", "d1", {}, {}, 60.0)
    with opened(url=str(tmp_path / "store.db")) as store:
        deployment = Deployment("shop", "shop/site.yml", [web])
        found = Coordinator(store, deployment, "apply", "r1", {"one": {}, "two": {}}, threading.Event())
        found.begin()
        yield found
        found.close()


@pytest.mark.parametrize(("text", "most"), [("x", inbox.FRAMES), ("x" * (1 << 20), inbox.MEMORY >> 20)])
def test_a_flood_of_one_host_does_not_delay_other_hosts(led: Coordinator, text: str, most: int) -> None:
    """The frames of one host must neither fill the memory nor block the frames of other hosts."""
    busy, go_on, count = threading.Event(), threading.Event(), 4 * most
    told: queue.Queue[Json] = queue.Queue()

    def stuck(answer: Json) -> None:
        busy.set()
        go_on.wait(60)

    led.take("one", PHASE, stuck, "192.0.2.1")
    assert busy.wait(20)
    taken: list[int] = []

    def flood() -> None:
        for number in range(count):
            led.take("one", {**LINE, "text": text + str(number)}, stuck, "")
            taken.append(number)

    flooding = threading.Thread(target=flood, daemon=True)
    flooding.start()
    processes.wait_until(lambda: len(taken) >= most - 1, 20, "the flood to arrive")
    led.take("two", PHASE, told.put, "192.0.2.2")  # this call must not wait
    assert len(taken) <= most
    go_on.set()
    assert told.get(timeout=20)["step"]["hook"] == "install"
    flooding.join(60)
    assert len(taken) == count
    for host in ("one", "two"):
        led.session_ended(host)


def test_unit_frames_before_the_coordinator_begins_are_dropped(tmp_path: Path) -> None:
    """Before that, no thread handles the frames."""
    web = Declared("web", ("one",), "web", "d1", {}, {}, 60.0)
    with opened(url=str(tmp_path / "store.db")) as store:
        led = Coordinator(store, Deployment("shop", "s.yml", [web]), "apply", "r", {"one": {}}, threading.Event())
        for _ in range(2 * inbox.FRAMES):
            led.take("one", LINE, print, "")
        led.session_ended("one")
        led.close()


@pytest.fixture
def deaf() -> Iterator[LocalStream]:
    """Give a stream to a program that reads nothing."""
    connection = LocalConnection("deaf")
    yield connection.open([sys.executable, "-c", "import time; time.sleep(600)"])
    connection.close()


def test_writing_to_a_host_that_does_not_read_never_blocks(deaf: LocalStream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer continues at once. The host may send no more questions until it has read the answers."""
    monkeypatch.setattr("statecfg.run.host.outbox.LATEST", 0.5)
    outbox = Outbox(deaf.write)
    assert outbox.room()
    left = threading.Thread(target=lambda: [outbox.put(b"x" * (MOST // 4)) for _ in range(5)], daemon=True)
    left.start()
    left.join(20)  # shorter than the time after which the host is given up
    assert not left.is_alive()
    assert not outbox.room()
    outbox.close()
    assert outbox.room()


def test_settings_too_large_for_a_frame_fail_only_their_hook() -> None:
    answer = {"type": "unit-told", "id": 1, "ask": 2, "values": {"a": "\u20ac" * wire.CONTROL_LIMIT}}
    ((said, _),) = wire.Decoder().feed(answer_frame(answer))
    assert (said["id"], said["ask"], said["error"][0]) == (1, 2, "UNKNOWN") and "values" not in said


def test_a_closed_connection_is_reported_by_the_outbox(deaf: LocalStream) -> None:
    outbox = Outbox(deaf.write)
    assert outbox.cut is None
    deaf.close()
    outbox.put(b"x")
    processes.wait_until(lambda: outbox.cut is not None, 20, "the end of the connection")
    assert isinstance(outbox.cut, TransportError)
