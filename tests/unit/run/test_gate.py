"""Where hosts wait for permission."""

from __future__ import annotations

import threading
import time

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.gate import Gate, Pace, Pass, Slots


def _slots(forks: int, connected: int) -> Slots:
    return Slots(forks, connected, Pace(None, threading.Event()))


def _passes(count: int, slots: Slots, gate: Gate | None) -> list[Pass]:
    """Return the passes of hosts, each of which has taken a slot."""
    assert all(slots.try_acquire() for _ in range(count))
    return [Pass(slots, gate, Barrier(None, ())) for _ in range(count)]


def test_only_some_hosts_stay_connected_while_they_wait_for_the_answer() -> None:
    slots, gate = _slots(4, 2), Gate(4)
    passes = _passes(4, slots, gate)
    assert [host.wait() for host in passes] == [True, True, False, False]
    assert gate.waiting.is_set()
    assert not any(host.has_slot for host in passes)


def test_a_host_that_continues_or_ends_leaves_its_place_to_another_one() -> None:
    slots, gate = _slots(3, 1), Gate(3)
    first, second, third = _passes(3, slots, gate)
    assert first.wait()
    assert first.enter() and first.has_slot
    assert second.wait()
    second.leave()
    second.leave()
    assert third.wait()
    assert not slots.idle_connections.acquire(blocking=False)


def test_a_host_that_waits_without_a_connection_needs_a_new_slot() -> None:
    slots, gate = _slots(1, 0), Gate(1)
    (host,) = _passes(1, slots, gate)
    assert not host.wait()
    host.disconnect()
    assert not host.has_slot and slots.try_acquire()
    slots.release()
    gate.answer = True
    host.acquire()
    assert host.wait() and host.has_slot, "the answer is known: it does not wait"


def test_a_host_whose_connection_is_lost_releases_its_slot_once() -> None:
    slots = _slots(1, 1)
    (host,) = _passes(1, slots, None)
    host.disconnect()
    host.disconnect()
    assert slots.try_acquire() and not slots.try_acquire()


def test_connected_hosts_come_before_those_that_have_to_connect_again() -> None:
    slots, gate = _slots(1, 1), Gate(2)
    (host,) = _passes(1, slots, gate)
    assert host.wait()
    (other,) = _passes(1, slots, gate)
    gate.answer = True
    assert not host.enter(), "the other host has the slot"
    other.leave()
    again = threading.Thread(target=other.acquire, daemon=True)
    again.start()
    again.join(0.2)
    assert again.is_alive(), "it waits, although a slot is free"
    assert host.enter()
    host.leave()
    again.join(10)
    assert other.has_slot


def test_connections_keep_their_pace_until_the_user_stops_the_run() -> None:
    cancel, begun = threading.Event(), time.monotonic()
    pace = Pace(20, cancel)
    for _ in range(5):
        pace.wait()
    assert time.monotonic() - begun >= 4 / 20
    slow = Pace(0.001, cancel)
    cancel.set()
    slow.wait()
    slow.wait()
