"""The cache of stripped source: it stays small, and keeps what was used last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statecfg.run import stripping_cache
from statecfg.run.stripping_cache import StrippingCache


def source(number: int) -> str:
    return f"NUMBER = {number}  # a comment\nimport os\n"


def used(path: Path, *numbers: int) -> set[str]:
    """Use the cache in a run for some sources. Return what it has in its file afterwards."""
    cache = StrippingCache(path)
    for number in numbers:
        assert tuple(cache.get(source(number))) == (f"NUMBER={number}\nimport os\n", ["os"])
    cache.keep()
    return {json.loads(line)[1].partition("\n")[0] for line in StrippingCache(path).lines.values()}


def test_a_run_finds_what_another_run_has_stripped(tmp_path: Path) -> None:
    used(tmp_path / "cache.jsonl", 1, 2)
    cache = StrippingCache(tmp_path / "cache.jsonl")
    cache.get(source(2))
    assert not cache.grown
    cache.get(source(3))
    assert cache.grown


def test_a_full_cache_loses_what_was_not_used_for_the_longest_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.jsonl"
    used(path, 0, 1, 2)
    monkeypatch.setattr(stripping_cache, "_MOST", path.stat().st_size + 10)
    assert used(path, 0, 3) == {"NUMBER=2", "NUMBER=0", "NUMBER=3"}
    assert path.stat().st_size <= stripping_cache._MOST
    assert used(path, 4, 5, 6, 7) == {"NUMBER=4", "NUMBER=5", "NUMBER=6", "NUMBER=7"}  # a run keeps all that it uses


@pytest.mark.parametrize("content", ["", "[", "[]", "[\n[]\n"])
def test_a_broken_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / "cache.jsonl").write_text(content)
    assert used(tmp_path / "cache.jsonl", 1) == {"NUMBER=1"}
