"""The output of exec hooks. Each recorded case is judged directly and also run as a real program."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecfg.remote.hooks import run as hook_run
from statecfg.remote.hooks.configuration import complete
from statecfg.remote.hooks.result import Judged, judge
from statecfg.remote.hooks.ruby_json import parse
from statecfg.remote.hooks.ruby_text import as_text, inspect
from statecfg.remote.hooks.run import Ended
from tests import ROOT

CASES: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/unit/hooks/exec_results.yml").read_text())
EVENT = "node-booted"
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])


def check(case: dict[str, Any], exit_status: int, stdout: bytes, stderr: bytes) -> Judged:
    configuration = case.get("configuration", {})
    metadata = None if case.get("no_node") else case.get("metadata", {})
    before = json.dumps([configuration, metadata])
    found = judge(EVENT, case.get("schema", {}), configuration, metadata, Ended(exit_status, stdout, stderr))
    assert json.dumps([configuration, metadata]) == before, "judge does not change its arguments"
    assert (found.severity, found.entry) == (
        case["severity"],
        {"event": EVENT, "exit_status": exit_status, **case["entry"]},
    )
    after = case.get("after", {})
    assert found.configuration == after.get("configuration", configuration)
    assert found.metadata == after.get("metadata", metadata)
    return found


@by_case
def test_judging_the_output_gives_the_recorded_result(case: dict[str, Any]) -> None:
    check(case, case.get("exit", 0), case["prints"].encode(), case.get("complains", "").encode())


@by_case
def test_a_real_program_gets_the_recorded_result(case: dict[str, Any], tmp_path: Path) -> None:
    program = tmp_path / EVENT
    lines = [
        "#!/bin/sh",
        f"printf %s {shlex.quote(case['prints'])}",
        f"printf %s {shlex.quote(case.get('complains', ''))} >&2",
    ]
    program.write_text("\n".join([*lines, f"exit {case.get('exit', 0)}\n"]))
    program.chmod(0o755)
    done = hook_run.invoke(str(tmp_path), EVENT, {"node": None}, 20)
    assert (done.exit_status, done.reason) == (case.get("exit", 0), "")
    check(case, done.exit_status, done.stdout, done.stderr)


def test_a_program_ended_by_a_signal_is_an_error() -> None:
    found = judge(EVENT, {}, {}, {}, Ended(-9, b"", b""))
    assert (found.severity, found.entry, found.detail) == ("error", {"event": EVENT}, "ended by signal 9")


def test_a_program_stopped_at_its_deadline_changes_nothing() -> None:
    output = b'{"hook": {"configuration": {"update": {"a": 1}}}}'
    found = judge(
        EVENT, {"a": {}}, {"a": 0}, {"m": 1}, Ended(-15, output, b"x" * 1000, "still running after 1 s, stopped")
    )
    assert (found.severity, found.configuration, found.metadata) == ("error", {"a": 0}, {"m": 1})
    assert found.entry["error"] == f"still running after 1 s, stopped and {'x' * 200}"
    assert found.entry["msg"] == output.decode()


@pytest.mark.parametrize(
    ("output", "where"),
    [
        (b"\xef\xbb\xbf{}", "line 1, column 1: a byte order mark"),
        ("{}".encode("utf-16"), "line 1, column 1: not UTF-8"),
        (b'{"a":\n \xff}', "line 2, column 2: not UTF-8"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1e999}', "1e999 is too large a number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "an integer of 5000 digits"),
        (b"{}\n{}", "line 2, column 1: Extra data"),
        (b'{"a":\n "b" "c"}', "line 2, column 6: Expecting ',' delimiter"),
        (b"\n", "line 2, column 1: Expecting value"),
        (b"[" * 101 + b"]" * 101, "nested more than 100 levels deep"),
        (b"[" * 300_000, "nested more than 100 levels deep"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_invalid_json_is_an_error_with_its_location(output: bytes, where: str) -> None:
    found = judge(EVENT, {}, {}, {}, Ended(0, output, b""))
    assert (found.severity, found.entry["error"]) == ("error", "invalid JSON returned from hook")
    assert found.entry["msg"] == output.decode("utf-8", "replace")
    assert found.detail == where


def test_json_nested_a_hundred_levels_deep_is_accepted() -> None:
    assert parse(b"[" * 100 + b"]" * 100)


# The texts that Ruby 3.1 shows for these values.
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "nil"),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (10**30, "1" + "0" * 30),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.0001, "0.0001"),
        (0.000099, "9.9e-05"),
        (0.00001, "1.0e-05"),
        (1e14, "100000000000000.0"),
        (999999999999999.9, "999999999999999.9"),
        (1e15, "1.0e+15"),
        (-1e15, "-1.0e+15"),
        (1234567890123456.0, "1.234567890123456e+15"),
        (1000000000000000.1, "1000000000000000.1"),
        (1e16, "1.0e+16"),
        (1.5e300, "1.5e+300"),
        ("", '""'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("#{x} #$y #@z #a #", '"\\#{x} \\#$y \\#@z #a #"'),
        ("\n\t\r\f\v\b\a\x1b", '"\\n\\t\\r\\f\\v\\b\\a\\e"'),
        ("\x00\x7f", '"\\u0000\\u007F"'),
        ("é\u00a0\u2003\u3000", '"é\u00a0\u2003\u3000"'),
        ("\u2028\u0378", '"\\u2028\\u0378"'),
        ("\U0001f600", '"\U0001f600"'),
        ([1, [None, "a"]], '[1, [nil, "a"]]'),
        ({}, "{}"),
        ({"a": {"b": []}, "c": 1.5}, '{"a"=>{"b"=>[]}, "c"=>1.5}'),
    ],
)
def test_inspect_shows_values_as_ruby_does(value: Any, shown: str) -> None:
    assert inspect(value) == shown


def test_as_text_converts_values_as_ruby_interpolation_does() -> None:
    assert [as_text(value) for value in ("a", None, ["a"], 1)] == ["a", "", '["a"]', "1"]


DEFINED = {"server": {"required": False}, "version": {"required": True}}


@pytest.mark.parametrize(
    ("schema", "given", "whole", "wrong"),
    [
        ({}, {}, {}, []),
        (
            DEFINED,
            {"server": "s", "version": 1, "other": 2},
            {"server": "s", "version": 1, "other": 2},
            ["configuration key 'other' is not defined for this hook type"],
        ),
        (
            DEFINED,
            {"server": "s"},
            {"server": "s"},
            ["configuration key 'version' is required by this hook type, but was not supplied"],
        ),
        (
            {"server": {"required": True, "default": "d"}, "other": {"default": "def"}, "version": {}},
            {},
            {"server": "d", "other": "def"},
            [],
        ),
        ({"zero": {"default": 0}, "empty": {"default": ""}}, {}, {"zero": 0, "empty": ""}, []),
        ({"zero": {"default": 0}}, {"zero": None}, {"zero": None}, []),
        (
            {"flag": {"default": False}, "n": {"default": None, "required": True}},
            {},
            {},
            ["configuration key 'n' is required by this hook type, but was not supplied"],
        ),
    ],
)
def test_complete_adds_defaults_and_reports_missing_or_undefined_keys(
    schema: Any, given: Any, whole: Any, wrong: list[str]
) -> None:
    assert complete(schema, given) == (whole, wrong)
