"""Texts that users wrote: the editors need time in proportion to the size of the text, and refuse larger files."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources.shared import lines, utf8
from statecfg.resources.text import ini_text, json_text, toml_text, yaml_text
from statecfg.resources.text.key_texts import UNKNOWN, NotEditable
from tests.each import each


def many(form: str, size: int) -> str:
    return "".join(form.replace("N", str(number)) for number in range(size))


# Each text has `size` spaces, keys or signs.
TEXTS: dict[str, tuple[Any, Callable[[int], str]]] = {
    "yaml, spaces in a value": (yaml_text, lambda size: f"k: a{' ' * size}b\n"),
    "yaml, spaces in a key": (yaml_text, lambda size: f"a{' ' * size}b\n"),
    "yaml, keys": (yaml_text, lambda size: many("kN: v\n", size)),
    "yaml, comment signs": (yaml_text, lambda size: "k: [" + " #" * size + "\n"),
    "yaml, strings in a list": (yaml_text, lambda size: "k: [" + '"a#", ' * size + "1] # c\n"),
    "yaml, quotes": (yaml_text, lambda size: "k: " + "'" * (size | 1) + "x\n"),
    "ini, spaces in a value": (ini_text, lambda size: f"k = a{' ' * size}b\n"),
    "ini, spaces in a key": (ini_text, lambda size: f"k{' ' * size}b\n"),
    "ini, keys": (ini_text, lambda size: many("kN = v\n", size)),
    "json, keys": (json_text, lambda size: "{" + many('"kN": 1,', size) + '"z": 1}'),
    "toml, keys": (toml_text, lambda size: many("kN = 1\n", size)),
    "toml, tables": (toml_text, lambda size: many("[tN]\nx = 1\n", size)),
    "toml, escapes": (toml_text, lambda size: f'k = """{chr(92) * (size | 1)}\n'),
}


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of a call, which may refuse the text."""
    before = process_time()
    try:
        call()
    except NotEditable:
        pass
    return process_time() - before


def grows(call: Callable[[int], Callable[[], object]], small: int) -> float:
    """Return the time of eight times the text, divided by that of the text. A quadratic editor would give 64."""
    return min(seconds(call(8 * small)) / max(seconds(call(small)), 0.002) for _ in range(3))


@each("name", TEXTS)
def test_the_time_of_an_edit_is_proportional_to_the_text(name: str) -> None:
    editor, text = TEXTS[name]
    key = ["", "zz"] if editor is ini_text else ["zz"]

    def edit(size: int) -> Callable[[], object]:
        content = text(size)
        return lambda: editor.put(content, key, 1)

    assert grows(edit, 5_000) < 32


def test_the_time_to_put_lines_back_is_proportional_to_the_text() -> None:
    def undo(size: int) -> Callable[[], object]:
        was = lines.removed_lines("a\nb\n" * size, "a")
        return lambda: lines.lines_undone("b\n" * size, was, None)

    assert grows(undo, 2_000) < 32


@each(
    ("editor", "text"),
    [
        (json_text, '{"a": ' + "9" * 5000 + "}"),
        (yaml_text, "a: " + "9" * 5000 + "\n"),
        (toml_text, "a = " + "9" * 5000 + "\n"),
    ],
)
def test_a_number_with_thousands_of_digits_is_an_unknown_value(editor: Any, text: str) -> None:
    assert editor.get(text, ["a"]) is UNKNOWN


@each(
    ("editor", "text"),
    [(json_text, '{"a":' * 9000 + "1" + "}" * 9000), (toml_text, "a = " + "[" * 9000 + "]" * 9000 + "\n")],
)
def test_values_that_are_nested_too_deeply_are_refused(editor: Any, text: str) -> None:
    with pytest.raises(NotEditable, match="nested too deeply"):
        editor.get(text, ["z"])


@each(
    ("data", "message"),
    [
        ("\ufeffa".encode("utf-16-le"), "/f is UTF-16 text; convert it to UTF-8 first"),
        (b"a" * (utf8.LARGEST + 1), "/f has 67,108,865 bytes; statecfg edits text files of up to 67,108,864 bytes"),
    ],
)
def test_other_files_are_refused_before_they_are_edited(data: bytes, message: str) -> None:
    machine = MemoryMachine()
    machine.write("/f", data)
    with pytest.raises(CheckError, match=message):
        utf8.text(machine, "/f")
