"""Values on the command line, and files with JSON that a user names there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from statecfg.cli.entity import calls
from statecfg.cli.values import json_or_text
from statecfg.problems import InvalidInput
from tests.each import each

TWICE = "an object contains the key 'a' twice"


@each(
    ("text", "value"),
    [
        ("12", 12),
        ("true", True),
        ('{"a": [1]}', {"a": [1]}),
        ("web1", "web1"),
        ("", ""),
        ("[a-z]+", "[a-z]+"),
        ("{{ name }}", "{{ name }}"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
        ("1" * 4301, "1" * 4301),
        ("b\udcff", "b\ufffd"),
    ],
)
def test_a_value_is_json_if_possible_and_otherwise_a_string(text: str, value: Any) -> None:
    assert json_or_text(text) == value


@each(
    ("text", "why"), [('{"a": 1, "a": 2}', TWICE), ("[NaN]", "NaN is not JSON"), ("[" * 100_000, "nested too deeply")]
)
def test_an_object_or_array_must_be_strict(text: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=why):
        json_or_text(text)


def test_the_file_of_an_entity_has_no_key_twice(tmp_path: Path) -> None:
    path = tmp_path / "entity.json"
    path.write_text('{"a": 1, "a": 2}')
    with pytest.raises(InvalidInput) as caught:
        calls.read(str(path))
    assert caught.value.problems[0].detail == f"invalid JSON: {TWICE}"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert calls.read(str(path)) == {"a": 1}
