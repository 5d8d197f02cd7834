"""Files of recorded facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.facts import recorded
from statecfg.problems import InvalidInput
from tests.each import each


def test_recorded_facts_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(recorded.text({"web1": {"cpus": 2}}))
    assert recorded.read(path)["web1"].values == {"cpus": 2}


def test_half_of_a_surrogate_pair_can_be_recorded(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(recorded.text({"web1": {"hostname": "a\ud800b", "kernel": "é"}}), encoding="utf-8")
    assert recorded.read(path)["web1"].values == {"hostname": "a\ud800b", "kernel": "é"}


@each(
    ("text", "why"),
    [
        ('{"format": 1, "hosts": {}, "hosts": {}}', "an object contains the key 'hosts' twice"),
        ('{"format": 1, "at": NaN, "hosts": {}}', "NaN is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ("[1]", "is not a file of recorded facts"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path_factory: pytest.TempPathFactory, text: str, why: str) -> None:
    path = tmp_path_factory.mktemp("facts") / "facts.json"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        recorded.read(path)
    assert why in caught.value.problems[0].detail
