"""A state directory that can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.lock import Lock
from statecfg.remote.ledger.state import LEDGER, StateError


def test_reading_the_lock_below_a_file_names_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=rf"cannot read {tmp_path}/file/x/lock: Not a directory"):
        Lock(str(tmp_path / "file/x")).current_holder(0)


def test_damaged_ledger_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_text("this is not a database" * 100)
    with pytest.raises(StateError, match="can't be used: file is not a database") as caught:
        Ledger(str(tmp_path), reading=True)
    assert "Restore the file from a backup, or move it away" in caught.value.hint
