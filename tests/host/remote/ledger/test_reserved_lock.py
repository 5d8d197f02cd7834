"""The lock of a host that a run has reserved while it reboots the host."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.remote.ledger.lock import Lock

if TYPE_CHECKING:
    from statecfg.remote.ledger.lock import Holder


def held_by(run: str) -> Holder:
    return {"run": run, "who": "me@here", "since": time.time(), "pid": 1}


def reserve(state_dir: Path, seconds: float) -> Holder:
    """Take the lock, reserve it for the run `first`, and end like a process that a reboot ends."""
    lock = Lock(str(state_dir))
    assert lock.take(held_by("first"), 0) is None
    holder: Holder = {**held_by("first"), "until": time.time() + seconds, "boot": "b1", "digest": "d1"}
    lock.write(holder)
    lock.drop()
    return holder


def test_a_reserved_lock_refuses_other_runs(tmp_path: Path) -> None:
    holder = reserve(tmp_path, 60)
    assert Lock(str(tmp_path)).take(held_by("second"), 0) == holder
    assert Lock(str(tmp_path)).current_holder(0) == holder
    assert json.loads((tmp_path / "lock").read_text()) == holder


def test_the_run_that_reserved_the_lock_can_take_it(tmp_path: Path) -> None:
    holder = reserve(tmp_path, 60)
    lock = Lock(str(tmp_path))
    assert lock.take(held_by("first"), 0) is None
    assert lock.previous_holder == holder
    assert "until" not in json.loads((tmp_path / "lock").read_text())
    other = Lock(str(tmp_path)).take(held_by("second"), 0)
    assert other is not None and other["run"] == "first"
    lock.drop()
    assert Lock(str(tmp_path)).take(held_by("second"), 0) is None


def test_a_reservation_ends_by_itself(tmp_path: Path) -> None:
    reserve(tmp_path, -1)
    assert Lock(str(tmp_path)).current_holder(0) is None
    assert Lock(str(tmp_path)).take(held_by("second"), 0) is None


def test_a_run_can_wait_for_the_end_of_a_reservation(tmp_path: Path) -> None:
    reserve(tmp_path, 0.3)
    assert Lock(str(tmp_path)).take(held_by("second"), 30) is None


def test_a_deleted_lock_is_free(tmp_path: Path) -> None:
    reserve(tmp_path, 60)
    (tmp_path / "lock").unlink()
    assert Lock(str(tmp_path)).take(held_by("second"), 0) is None
