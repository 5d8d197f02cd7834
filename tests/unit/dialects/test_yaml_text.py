"""Strict YAML: ambiguous text is an error. The message gives the position and a correction."""

from __future__ import annotations

import resource

import pytest

from statecfg.dialects import yaml_composer, yaml_text, yaml_tree
from statecfg.problems import InvalidInput, Problem
from tests.each import each

AMBIGUOUS = """
NO no No on ON off y Y n yes Yes
0755 0644 00 010 0o755 0x1F 0b101 1_000 +1 -0 99999999999999999999 1.1111111111111111111111111111111
1:30 12:30:45 3.10 1.0e3 1e3 .5 5. .inf -.inf .nan
2024-01-01 2024-1-1 2024-01-01T10:00:00Z =
"""


def problems(data: str | bytes) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        yaml_text.parse(data, "f.yml", "a map")
    return caught.value.problems


def value(data: str):
    return yaml_tree.plain(yaml_text.parse(data, "f.yml", "a map"))


@each(
    "word",
    AMBIGUOUS.split(),
)
def test_parser_refuses_ambiguous_plain_words(word):
    found = problems(f"a: 1\nb: {word}\n")
    assert [(item.code, str(item.locations[0])) for item in found] == [("SC0309", "f.yml:2:4")]
    assert "quote it" in found[0].help
    assert value(f"b: '{word}'") == {"b": word}


@each(
    ("word", "meaning"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("8080", 8080),
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("1.2.3", "1.2.3"),
        ("10.0.0.1", "10.0.0.1"),
        ("80:80", "80:80"),
        ("nginx", "nginx"),
        ("yesterday", "yesterday"),
        ("package:nginx", "package:nginx"),
        ("/etc/motd", "/etc/motd"),
        ("2024", 2024),
        ("12abc", "12abc"),
        ("-x", "-x"),
        ("1-2", "1-2"),
    ],
)
def test_parser_reads_unambiguous_words_with_their_type(word, meaning):
    found = value(f"a: {word}\n")["a"]
    assert (found, type(found)) == (meaning, type(meaning))


@each(
    ("text", "code", "places", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "SC0306", "f.yml:3:1 f.yml:1:1", "keep one"),
        ("a: {b: 1, b: 2}", "SC0306", "f.yml:1:11 f.yml:1:5", "keep one"),
        ("a:\n  - b\n c: d\n", "SC0315", "f.yml:3:2 f.yml:1:1", "line 1"),
        ("a: 1\n\tb: 2\n", "SC0315", "f.yml:2:1", "spaces"),
        ("a: @local\n", "SC0315", "f.yml:1:4", "starts with @"),
        ("a: b: c\n", "SC0315", "f.yml:1:5", "quote"),
        ("a: [1, 2\n", "SC0315", "f.yml:2:1 f.yml:1:4", "line 1"),
        ("a: 'x\n", "SC0315", "f.yml:2:1 f.yml:1:4", "line 1"),
        ('a: "\\q"\n', "SC0315", "f.yml:1:", "single quotes"),
        ("a: {{ x }}\n", "SC0308", "f.yml:1:5", '"{{ name }}"'),
        ("? [a]\n: b\n", "SC0308", "f.yml:1:3", "quote"),
        ("1: b\n", "SC0308", "f.yml:1:1", "quote"),
        ("on: b\n", "SC0309", "f.yml:1:1", "quote"),
        ("~: b\n", "SC0308", "f.yml:1:1", "quote"),
        ("b: &b {x: 1}\nc:\n  <<: *b\n", "SC0308", "f.yml:3:3", "copy the keys to this map"),
        ("a: &x [*x]\n", "SC0307", "f.yml:1:8 f.yml:1:4", "remove this alias"),
        ("a: &x {b: {c: *x}}\n", "SC0307", "f.yml:1:15 f.yml:1:4", "remove this alias"),
        ("a: *x\n", "SC0307", "f.yml:1:4", "quote"),
        ("a: &name 1\nb: *nmae\n", "SC0307", "f.yml:2:4", "did you mean `name`"),
        ("a: !!python/object/apply:os.system [ls]\n", "SC0312", "f.yml:1:4", "remove the tag"),
        ("a: !!str 0755\n", "SC0312", "f.yml:1:4", "quote"),
        ("a: !foo b\n", "SC0312", "f.yml:1:4", "!secret"),
        ("a: 1\n---\nb: 2\n", "SC0304", "f.yml:2:1 f.yml:1:1", "its own file"),
        ("", "SC0303", "f.yml:1", "write a map"),
        ("# only\n\n", "SC0303", "f.yml:1", "write a map"),
        ("---\n", "SC0303", "f.yml:1", "write a map"),
        ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> x\n", "SC0314", "f.yml:2:1", "keep one side"),
    ],
)
def test_parser_refuses_invalid_yaml_with_place_and_help(text, code, places, words):
    first = problems(text)[0]
    assert first.code == code
    assert " ".join(map(str, first.locations)).startswith(places)
    assert words in first.help


@each(
    ("data", "words"),
    [
        (b"\xef\xbb\xbfa: 1", "offset 0: the file starts with a byte order mark"),
        ("a: 1".encode("utf-16"), "UTF-16"),
        ("a: 1".encode("utf-16-be"), "looks like UTF-16"),
        (b"a: 1\nb: caf\xe9\n", "offset 11: byte 0xe9; it looks like Latin-1"),
        (b"a: 1\nb: \0", "offset 8: a NUL byte"),
        (b"a: \x1b[31m", "offset 3: character U+001B"),
        ("a: \x9f".encode(), "U+009F"),
    ],
)
def test_parser_refuses_other_encodings_and_control_characters(data, words):
    found = problems(data)
    assert [item.code for item in found] == ["SC0313"]
    assert words in found[0].detail


def test_parser_reports_all_problems_of_a_file_together():
    found = problems("a: NO\na: 1\nb: !x 1\nc: 0644\n")
    assert [item.code for item in found] == ["SC0309", "SC0306", "SC0312", "SC0309"]


def test_parser_limits_the_number_of_reported_problems():
    assert len(problems("".join(f"k{i}: no\n" for i in range(1000)))) == yaml_composer.MAX_PROBLEMS


def test_parser_accepts_deep_nesting_and_aliases():
    assert value("{a: " * 90 + "1" + "}" * 90)
    assert value("a: &x [1, 2]\nb: *x\nc: &y k\n*y : 1\n") == {"a": [1, 2], "b": [1, 2], "c": "k", "k": 1}


def test_load_refuses_a_large_file_without_reading_it(tmp_path):
    path = tmp_path / "big.yml"
    with path.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput) as caught:
        yaml_text.load(path, "a map")
    assert caught.value.problems[0].code == "SC0302"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_load_refuses_missing_files_directories_and_pipes(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    for name in ("missing.yml", ".", "pipe"):
        with pytest.raises(InvalidInput) as caught:
            yaml_text.load(tmp_path / name, "a map")
        assert caught.value.problems[0].code == "SC0301"


def test_parsed_nodes_keep_positions_and_block_style():
    root = yaml_text.parse("a: 1\nb:\n  - x\n  - |\n    text\n", "f.yml", "a map")
    assert isinstance(root, yaml_tree.Mapping)
    assert str(root.keys["b"].location) == "f.yml:2:1"
    listed = root.items["b"]
    assert isinstance(listed, yaml_tree.Sequence)
    assert [str(item.location) for item in listed.items] == ["f.yml:3:5", "f.yml:4:5"]
    assert [item.block for item in listed.items if isinstance(item, yaml_tree.Scalar)] == [False, True]
