"""Where hosts wait for permission."""

from __future__ import annotations

from statecfg.run.host.barrier import Barrier
from statecfg.run.host.gate import Gate, Pass, Slots


def _passes(count: int, slots: Slots, gate: Gate | None) -> list[Pass]:
    """Return the passes of hosts, each of which has taken a slot."""
    assert all(slots.busy.acquire(blocking=False) for _ in range(count))
    return [Pass(slots, gate, Barrier(None, ())) for _ in range(count)]


def test_only_some_hosts_stay_connected_while_they_wait_for_the_answer() -> None:
    slots, gate = Slots(4, 2), Gate(4)
    passes = _passes(4, slots, gate)
    assert [host.wait() for host in passes] == [True, True, False, False]
    assert gate.waiting.is_set()
    assert not any(host.has_slot for host in passes)


def test_a_host_that_continues_or_ends_leaves_its_place_to_another_one() -> None:
    slots, gate = Slots(3, 1), Gate(3)
    first, second, third = _passes(3, slots, gate)
    assert first.wait()
    assert first.enter() and first.has_slot
    assert second.wait()
    second.leave()
    second.leave()
    assert third.wait()
    assert slots.connected.acquire(blocking=False) is False


def test_a_host_that_waits_without_a_connection_needs_a_new_slot() -> None:
    slots, gate = Slots(1, 0), Gate(1)
    (host,) = _passes(1, slots, gate)
    assert not host.wait()
    host.disconnect()
    assert not host.has_slot and slots.busy.acquire(blocking=False)
    assert not host.enter()
    slots.busy.release()
    gate.answer = True
    host.acquire()
    assert host.wait() and host.has_slot, "the answer is known: it does not wait"


def test_a_host_whose_connection_is_lost_releases_its_slot_once() -> None:
    slots = Slots(1, 1)
    (host,) = _passes(1, slots, None)
    host.disconnect()
    host.disconnect()
    assert slots.busy.acquire(blocking=False) and not slots.busy.acquire(blocking=False)
