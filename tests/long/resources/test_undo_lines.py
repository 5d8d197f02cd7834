"""The undo of edited lines in random, unusual texts."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statecfg.resources.shared import lines

LINE = st.text(alphabet=st.sampled_from("ab =#\t\x0b\x85é"), max_size=4)
END = st.sampled_from(["\n", "\r\n"])
TEXT = st.tuples(st.lists(LINE, max_size=6), END, LINE).map(
    lambda each: "".join(f"{x}{each[1]}" for x in each[0]) + each[2]
)
MATCH = st.one_of(st.none(), LINE.map(re.escape), st.sampled_from(["a", "^#", "b?$", "."]))
EDIT = st.fixed_dictionaries(
    {"line": LINE, "match": MATCH, "after": MATCH, "before": st.none(), "absent": st.booleans()}
) | st.fixed_dictionaries({"line": LINE, "match": MATCH, "after": st.none(), "before": MATCH, "absent": st.booleans()})


class Edit:
    """A node that manages a line, and the data for its undo."""

    def __init__(self, text: str, line: str, match: str | None, absent: bool, **where: Any) -> None:
        self.line, self.absent = line, absent
        self.was, self.last = lines.removed_lines(text, line, match), lines.open_end(text)
        done = lines.without_line(text, line, match) if absent else lines.with_line(text, line, match, **where)
        self.text = done

    def undone(self, text: str) -> str:
        if self.absent:
            return lines.lines_undone(text, self.was, self.last)
        return lines.line_undone(text, self.line, self.was, self.last)


@given(TEXT, EDIT)
def test_undo_restores_the_text_byte_for_byte(text: str, edit: dict[str, Any]) -> None:
    """The undo restores the original text, and a second undo changes nothing."""
    made = Edit(text, **edit)
    assert made.undone(made.text) == text
    assert made.undone(text) == text


@given(TEXT, st.lists(EDIT, max_size=4))
def test_edits_of_one_file_are_undone_in_reverse_order(text: str, edits: list[dict[str, Any]]) -> None:
    """Several nodes edit one file. The undo starts with the last edit."""
    texts = [text]
    made = []
    for edit in edits:
        made.append(Edit(texts[-1], **edit))
        texts.append(made[-1].text)
    now = texts.pop()
    for each in reversed(made):
        now = each.undone(now)
        assert now == texts.pop()


@given(st.lists(LINE, max_size=5), LINE, EDIT)
def test_undo_keeps_lines_that_others_added(lines: list[str], other: str, edit: dict[str, Any]) -> None:
    """Somebody appends a line before the undo. The undo keeps it and restores the original text."""
    text = "".join(f"{line}\n" for line in lines)
    made = Edit(text, **edit)
    if other == edit["line"] or (edit["match"] is not None and re.search(edit["match"], other)):
        return  # the node itself manages this line
    assert made.undone(f"{made.text}{other}\n") == f"{text}{other}\n"


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_edits_of_different_lines_are_undone_in_any_order(order: tuple[int, ...]) -> None:
    """The nodes manage different lines, so the order of the undo does not matter."""
    text = "one\n#Port 1\ntwo\nold\nthree\n"
    edits: list[dict[str, Any]] = [
        {"line": "Port 22", "match": "^#?Port", "absent": False},
        {"line": "new", "match": None, "absent": False, "after": "^one"},
        {"line": "last", "match": None, "absent": False},
        {"line": "old", "match": None, "absent": True},
    ]
    made, now = [], text
    for edit in edits:
        made.append(Edit(now, **edit))
        now = made[-1].text
    for number in order:
        now = made[number].undone(now)
    assert now == text


def test_undo_never_takes_the_text_of_a_mask_for_a_secret() -> None:
    made = Edit("user = x\n", "password = hunter2", None, False)
    made.line = "password = <secret mail>"
    assert made.undone(made.text) == made.text
