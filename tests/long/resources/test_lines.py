"""Edits of lines in random, unusual texts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from statecfg.resources.shared import lines

LINE = st.text(alphabet=st.sampled_from("ab =#\t\r\x0b\x85\u2028é"), max_size=6).filter(lambda line: "\r" not in line)
TEXT = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\r\n"])), max_size=6).map(
    lambda lines: "".join(line + end for line, end in lines)
)
WHERE = st.one_of(st.none(), LINE.map(re.escape))


def bare(text: str) -> list[str]:
    """Return the lines of a text without their ends."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


@given(TEXT, LINE, WHERE, WHERE, st.booleans(), LINE)
def test_with_line_adds_the_line_and_is_idempotent(
    text: str, line: str, match: str | None, where: str | None, after: bool, rest: str
) -> None:
    """The result contains the line, the other lines are unchanged, and a second edit changes nothing."""
    text += rest
    place = {"after": where} if after else {"before": where}
    new = lines.with_line(text, line, match, **place)
    assert line in bare(new)
    assert lines.with_line(new, line, match, **place) == new
    if line in bare(text):
        assert new == text
    elif match is None or not any(re.search(match, each) for each in bare(text)):
        left = bare(new)
        left.remove(line)
        assert left == bare(text)
    else:
        assert len(bare(new)) == len(bare(text))


@given(TEXT, LINE, WHERE)
def test_without_line_removes_only_matching_lines(text: str, line: str, match: str | None) -> None:
    """The result contains all other lines in their order, and a second edit changes nothing."""
    new = lines.without_line(text, line, match)
    wanted = [each for each in bare(text) if each != line and not (match is not None and re.search(match, each))]
    assert bare(new) == wanted
    assert lines.without_line(new, line, match) == new


def test_empty_text_gains_a_line_and_loses_none() -> None:
    """A line added to an empty text gets a line end. Removing a line from an empty text leaves it empty."""
    assert lines.with_line("", "a") == "a\n"
    assert lines.without_line("", "a") == ""
