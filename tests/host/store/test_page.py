"""The commands on the page about the store work as written."""

from __future__ import annotations

from pathlib import Path

from tests import ROOT
from tests.host.pages import Reader


def test_commands_on_the_store_page_work_as_written(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "home")
    assert reader.follow(ROOT / "docs/store.md") == 6
    assert (reader.home / ".local/state/statecfg/store.db").exists()
