"""Problems: collection, codes, and suggestions such as "did you mean"."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import statecfg
from statecfg.problems import (
    CODES,
    InvalidInput,
    SourceLocation,
    collecting,
    did_you_mean,
    nearest,
    problem,
    report,
    sentence,
    suggest,
)
from statecfg.remote.graph.suggestions import typing_errors
from tests.each import each

ONE = problem("SC0101", "one", "do this", SourceLocation("a.py", 3, 5), SourceLocation("b.py", 1))


def test_report_outside_collecting_raises_invalid_input() -> None:
    with pytest.raises(InvalidInput) as caught:
        report(ONE)
    assert caught.value.problems == [ONE]


def test_collecting_gathers_each_problem_once() -> None:
    with collecting() as outer:
        with collecting() as inner:
            report(ONE, ONE)
            report(ONE)
        assert inner == [ONE] and outer == []
        report()
    assert outer == []


def test_text_of_invalid_input_has_code_places_and_help() -> None:
    assert str(InvalidInput([ONE])) == (
        "error[SC0101]: unknown attribute: one\n  --> a.py:3:5\n  --> b.py:1\n  help: do this"
    )


def test_invalid_input_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(InvalidInput([ONE]))).problems == [ONE]


def test_problem_keeps_a_repeated_place_once() -> None:
    assert len(problem("SC0110", "", "", SourceLocation("a", 1), SourceLocation("a", 1)).locations) == 1


def test_locations_have_their_former_name_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="Problem.places is now Problem.locations"):
        assert ONE.places == ONE.locations


def test_problem_codes_are_well_formed_and_used() -> None:
    root = Path(statecfg.__file__).parent
    table = root / "problems/codes.py"
    used = set()
    for path in (*root.rglob("*.py"), *root.rglob("*.hy")):
        if path != table:
            used.update(re.findall(r"SC\d{4}", path.read_text()))
    assert sorted(CODES) == list(CODES)
    assert used <= set(CODES)
    assert set(CODES) <= used
    for code, (summary, meaning) in CODES.items():
        assert re.fullmatch(r"SC\d{4}", code)
        assert len(summary) <= 40 and not summary.endswith(".") and meaning.endswith("."), code


@each(
    ("one", "other", "far"),
    [("content", "content", 0), ("contnet", "content", 1), ("mod", "mode", 1), ("ab", "ba", 1), ("owner", "group", 3)],
)
def test_typing_errors_are_counted_up_to_a_limit(one: str, other: str, far: int) -> None:
    assert typing_errors(one, other, 2) == min(far, 3) == typing_errors(other, one, 2)


def test_suggestion_names_the_nearest_and_lists_at_most_eight() -> None:
    names = ["content", "mode", "owner", "group", "source", "template", "validate", "backup", "absent", "follow"]
    assert suggest("contnet", names).startswith("did you mean `content`? (also valid: mode, owner")
    assert suggest("dst", names, "takes") == (
        "takes: content, mode, owner, group, source, template, validate, backup, …"
    )
    assert suggest("Mode", names).startswith("did you mean `mode`?")
    assert suggest("x", []) == ""


def test_did_you_mean_names_at_most_two_similar_names() -> None:
    assert did_you_mean("mod", ["mode", "owner"]) == "did you mean `mode`?"
    assert did_you_mean("mod", ["mode", "moda", "modi"]) == "did you mean `moda` or `mode`?"
    assert did_you_mean("mod", ["owner"]) == ""


def test_sentence_follows_another_one() -> None:
    assert sentence("did you mean `Mode`?") == " Did you mean `Mode`?"
    assert sentence("") == ""


def test_nearest_suggests_no_long_name_for_a_single_letter() -> None:
    assert nearest("a", ["bcd", "owner"]) == []


def test_nearest_finds_a_name_among_very_many() -> None:
    names = [f"file:/etc/app/{index}.conf" for index in range(20_000)]
    assert nearest("file:/etc/app/ngnix.conf", [*names, "file:/etc/app/nginx.conf"]) == ["file:/etc/app/nginx.conf"]
