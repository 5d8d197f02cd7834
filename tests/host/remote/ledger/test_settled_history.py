"""A question about a run waits until the run has released the host's lock."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from statecfg.remote.ledger.history import of_host
from statecfg.remote.ledger.lock import Lock
from statecfg.remote.ledger.state import StateError


@pytest.fixture
def held(tmp_path: Path) -> Lock:
    """Give a lock that a running run holds."""
    lock = Lock(str(tmp_path))
    assert lock.take({"run": "r1", "who": "me@here", "since": time.time(), "pid": 1}, 0) is None
    return lock


def test_a_lock_that_is_still_held_is_an_error(held: Lock, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="another run still holds the lock"):
        of_host(str(tmp_path), Lock(str(tmp_path)), {"run": "r1", "settled": 0.2})


def test_the_question_waits_until_the_lock_is_released(held: Lock, tmp_path: Path) -> None:
    timer = threading.Timer(0.3, held.drop)
    timer.start()
    answer = of_host(str(tmp_path), Lock(str(tmp_path)), {"run": "r1", "settled": 60})
    timer.join()
    assert held.descriptor is None, "the answer came before the release"
    assert answer["history"] == []


def test_other_questions_do_not_wait(held: Lock, tmp_path: Path) -> None:
    assert of_host(str(tmp_path), Lock(str(tmp_path)), {"run": "r1"})["history"] == []
