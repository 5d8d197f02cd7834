"""Symbolic modes: which are valid, and what they make of other modes."""

from __future__ import annotations

from statecfg.remote.graph import symbolic_modes
from tests.each import each

CASES = [
    ("u=rw,go=r", 0o7777, False, 0o0644),
    ("u=rw,go=r", 0o7777, True, 0o6644),
    ("a+x", 0o0640, False, 0o0751),
    ("a+X", 0o0640, False, 0o0640),
    ("a+X", 0o0640, True, 0o0751),
    ("a+X", 0o0740, False, 0o0751),
    ("g=u,o-rwx", 0o0604, False, 0o0660),
    ("u+s,g+s,o+t", 0o0755, True, 0o7755),
    ("a-s", 0o6755, False, 0o0755),
    ("o=", 0o1777, True, 0o0770),
    ("u-w+x", 0o0600, False, 0o0500),
    ("ug=rw,o=g", 0o0000, False, 0o0666),
]


@each(("text", "mode", "directory", "new"), CASES)
def test_a_symbolic_mode_changes_a_mode(text: str, mode: int, directory: bool, new: int) -> None:
    assert symbolic_modes.valid(text)
    assert f"{symbolic_modes.applied(text, mode, directory):04o}" == f"{new:04o}"


@each("text", ["", "+x", "u", "u+x,", "u+rwz", "o+s", "u+t", "g=ru", "u=rw go=r"])
def test_other_texts_are_not_symbolic_modes(text: str) -> None:
    assert not symbolic_modes.valid(text)


STABLE = [("u=rw,go=r", True), ("a+X", True), ("g=u,u=r", False), ("u-r,g=u", True)]


@each(("text", "stable"), STABLE)
def test_a_mode_that_changes_at_every_apply_is_found(text: str, stable: bool) -> None:
    assert symbolic_modes.stable(text) == stable
