"""The page on the store is true word for word."""

from __future__ import annotations

from pathlib import Path

from tests import ROOT
from tests.host.pages import Reader


def test_the_page_on_the_store_works_word_for_word(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "home")
    assert reader.follow(ROOT / "docs/store.md") == 6
    assert (reader.home / ".local/state/statecfg/store.db").exists()
