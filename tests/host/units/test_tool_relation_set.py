"""The tool relation-set: its words, JSON, YAML and standard input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.host.units.tool_scene import Scene

# title → arguments, standard input, and the changed settings at the end of the hook
SETS: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "arguments": (["a=1", "b=two words", "c=x=y"], "", {"a": "1", "b": "two words", "c": "x=y"}),
    "arguments and unused standard input": (["a=1"], '{"b": "2"}', {"a": "1"}),
    "JSON on standard input without arguments": (
        [],
        '{"a": "x y", "n": 5, "f": 1.10, "big": 12345678901234567.5, "huge": 1e400, "t": true}',
        {"a": "x y", "n": "5", "f": "1.10", "big": "12345678901234567.5", "huge": "1e400", "t": "true"},
    ),
    "JSON on standard input for -": (["-", "b=2"], '{"a": "1"}', {"a": "1", "b": "2"}),
    "JSON on standard input for @-": (["@-"], '{"a": "1", "old": null}', {"a": "1", "old": ""}),
    "JSON in a file": (["@json"], "", {"a": "j"}),
    "empty standard input": ([], "", {}),
    "blank standard input": ([], " \n", {}),
    "a value from a file": (["a=@data"], "", {"a": "FILE\nDATA é\n"}),
    "a value from standard input": (["a=@-"], "zzz\n", {"a": "zzz\n"}),
    "YAML in a file": (["--file", "yaml"], "", {"a": "it's", "b": "80", "old": ""}),
    "a YAML flow map": (["--file", "-"], "{a: x, b: 1.10, old: null}\n", {"a": "x", "b": "1.10", "old": ""}),
    "YAML on standard input": (["--file", "-"], "a: 'x'\n", {"a": "x"}),
    "JSON in a file for --file": (["--file", "json", "b=2"], "", {"a": "j", "b": "2"}),
    "an empty YAML map": (["--file", "-"], "{}\n", {}),
    "empty values delete settings": (["old=", "absent="], "", {"old": ""}),
    "a blank value deletes a setting": (["old= "], "", {"old": ""}),
    "a long value": (["-"], json.dumps({"a": "é" * 100_000}), {"a": "é" * 100_000}),
    "hundreds of values": (
        ["-"],
        json.dumps({f"k{n}": "v" * 500 for n in range(500)}),
        {f"k{n}": "v" * 500 for n in range(500)},
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_relation_set_accepts_words_json_and_yaml(name: str, tmp_path: Path) -> None:
    words, stdin, expected = SETS[name]
    (tmp_path / "data").write_text("FILE\nDATA é\n")
    (tmp_path / "json").write_text('{"a": "j"}')
    (tmp_path / "yaml").write_text("# of a library\na: 'it''s'\nb: 80\nold: null\n")
    scene = Scene(tmp_path, settings={("db:0", "mysql/0"): {"old": "was"}})
    try:
        called = scene.call("relation-set", *words, stdin=stdin, cwd=tmp_path)
        assert called == (0, "", "")
        read = json.loads(scene.call("relation-get", "--format=json", "-", "mysql/0").out)
        assert read == {key: value for key, value in ({"old": "was"} | expected).items() if value}
        changes = scene.changes()["relations"]
    finally:
        scene.close()
    sets = {key: value for key, value in expected.items() if value}
    gone = [key for key, value in expected.items() if not value]
    assert changes == ({"db:0": {"set": sets, "delete": gone}} if expected else {})


# standard input → a part of the error message
BAD_JSON = {
    '["a"]': "expected a JSON map of settings",
    '{"a": ["b"]}': "the value of a must be a string, a number, true, false or null",
    '{"a": NaN}': "NaN is not JSON",
    '{"a": 1} {}': "Extra data",
    "\ufeff{}": "BOM",
    "[" * 100_000: "maximum recursion depth exceeded",
    '{"a": "\\u0000"}': "the value of 'a' has a NUL character",
    '{"a": "\\ud800"}': "the value of 'a' is not UTF-8 text",
    '{"": "x"}': "a key is empty",
    "a=b": "Expecting value",
}


@pytest.mark.parametrize("stdin", BAD_JSON, ids=list(BAD_JSON.values()))
def test_bad_json_sets_nothing(stdin: str, shared: Scene) -> None:
    called = shared.call("relation-set", "-", "fine=1", stdin=stdin)
    assert called.status == 1 and BAD_JSON[stdin] in called.err and len(called.err.splitlines()) == 1
    assert shared.call("relation-get", "fine", "mysql/0").out == ""


def test_bytes_that_are_not_utf_8_are_refused(shared: Scene, tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    called = shared.call("relation-set", "k=@latin", cwd=tmp_path)
    assert called.status == 1 and called.err == "relation-set: error: latin is not UTF-8 text (byte 3)\n"
    word = b"k=caf\xe9".decode("utf-8", "surrogateescape")
    called = shared.call("relation-set", word)
    assert called.status == 1 and called.err == "relation-set: error: the value of 'k' is not UTF-8 text\n"
    assert shared.call("relation-get", "host", word).status == shared.call("config-get", word).status == 0
    assert shared.call("juju-log", word) == (0, "", "")  # logging must not fail for a few wrong bytes
    assert shared.said[-1]["text"] == "k=caf\ufffd"


def test_relation_set_prints_null_as_json(scene: Scene) -> None:
    """The original's tools do so too, as their result is None."""
    assert scene.call("relation-set", "--format=json", "a=1") == (0, "null\n", "")
    assert scene.call("relation-set", "--format=xyz", "a=2") == (0, "", "unknown output format: xyz\n")
    assert scene.changes()["relations"] == {"db:0": {"set": {"a": "2"}, "delete": []}}
