"""Each session sends its own heartbeats, and no host can delay those of others."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack

import pytest

from statecfg.run.host import heartbeats
from tests.lab import processes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send heartbeats often."""
    monkeypatch.setattr(heartbeats, "BEAT", 0.05)


def test_the_threads_of_heartbeats_end_with_their_sessions() -> None:
    before, sent = threading.active_count(), Counter[int]()
    with ExitStack() as sessions:
        for number in range(50):
            sessions.enter_context(heartbeats.sending(lambda number=number: not sent.update([number])))  # type: ignore[misc]  # mypy can't infer it
        processes.wait_until(lambda: len(sent) == 50 and min(sent.values()) > 2, 30, "three heartbeats of each")
    processes.wait_until(lambda: threading.active_count() <= before, 30, "the end of the threads")


def test_a_host_that_reads_nothing_delays_no_other_host() -> None:
    before, sent, reads = threading.active_count(), Counter[str](), threading.Event()

    def stuck() -> bool:
        reads.wait()
        sent["stuck"] += 1
        return True

    with heartbeats.sending(stuck), heartbeats.sending(lambda: not sent.update(["well"])):
        processes.wait_until(lambda: sent["well"] > 2, 30, "heartbeats of the other host")
        assert not sent["stuck"]
        reads.set()
        processes.wait_until(lambda: sent["stuck"] > 2, 30, "heartbeats of the host that reads again")
    processes.wait_until(lambda: threading.active_count() <= before, 30, "the end of the threads")


def test_a_broken_connection_gets_no_further_heartbeats() -> None:
    sent: list[bool] = []
    other = Counter[str]()
    with heartbeats.sending(lambda: bool(sent.append(False))), heartbeats.sending(lambda: not other.update(["well"])):
        processes.wait_until(lambda: other["well"] > 2, 30, "heartbeats of the other host")
    assert sent == [False]
