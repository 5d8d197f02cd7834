"""The table of cases in one test: every case runs, and every failure is reported with its case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statecfg.graph.opaque import Secret
from statecfg.problems import tokens
from tests.each import check_each, each


def failures(error: BaseExceptionGroup[BaseException]) -> list[tuple[str, list[str]]]:
    return [(str(one), one.__notes__) for one in error.exceptions]


def test_every_case_runs_and_every_failure_names_its_case() -> None:
    seen = []

    def check(number: int) -> None:
        seen.append(number)
        if number > 1:
            raise ValueError(f"wrong {number}")

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases failed") as caught:
        check_each({"a.yml:1: one": 1, "a.yml:5: two": 2, "a.yml:9: three": 3}, check)
    assert seen == [1, 2, 3]
    assert failures(caught.value) == [("wrong 2", ["Case: a.yml:5: two"]), ("wrong 3", ["Case: a.yml:9: three"])]


def test_missing_exception_is_a_failure_of_its_case() -> None:
    def check(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(BaseExceptionGroup) as caught:
        check_each({"a word": "x", "a number": "1"}, check)
    assert [notes for _, notes in failures(caught.value)] == [["Case: a number"]]


def test_a_table_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="there are no cases"):
        check_each({}, str)
    with pytest.raises(AssertionError, match="there are no cases"):
        each("case", [])(lambda case: None)()


def test_each_passes_the_values_of_a_case_by_name() -> None:
    seen = []

    @each("a, b", [(1, 2), pytest.param(3, 4, id="more")])
    @each("c", ["xy", (5, 6)], ids=["text", "pair"])
    def test(a: int, c: object, *, b: int) -> None:
        seen.append((a, b, c))
        assert c != "xy"

    with pytest.raises(BaseExceptionGroup) as caught:
        test()
    assert seen == [(1, 2, "xy"), (1, 2, (5, 6)), (3, 4, "xy"), (3, 4, (5, 6))]
    assert [one.__notes__ for one in caught.value.exceptions] == [["Case: (1, 2)"], ["Case: more"]]
    (inner,) = caught.value.exceptions[0].exceptions
    assert inner.__notes__ == ["Case: text"]


@each("number", [10**6000, "x" * 1000])
def test_each_accepts_values_without_a_short_name(number: object) -> None:
    assert number


@each("number", range(3))
def test_cases_share_no_directory_no_variable_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    assert tmp_path.name == f"case-{number}" and not list(tmp_path.iterdir())
    assert "STATECFG_TEST_CASE" not in os.environ and "a secret of a case" not in tokens._SECRETS
    (tmp_path / "file").touch()
    monkeypatch.setenv("STATECFG_TEST_CASE", str(number))
    tokens._SECRETS["a secret of a case"] = Secret("case", "value of a case")
