"""The tools of hooks, which ask the agent over its socket: recorded calls of the original, and our additions."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.remote.units.step import StepRelation
from statecfg.remote.units.tools import install as tool_files
from statecfg.remote.units.tools import yaml_text as tool_yaml
from statecfg.remote.units.tools.catalogue import TOOLS, main
from statecfg.remote.units.tools.options import ToolError
from tests import ROOT
from tests.host.units.tool_scene import Scene

RECORDS = yaml.safe_load((Path(__file__).parent / "tools.yml").read_text())
PAGE = ROOT / "docs" / "services-tools.md"
PYENV = Path.home() / ".pyenv" / "versions"
OLDEST = [str(path) for path in PYENV.glob("3.8.*/bin/python3.8")] or [sys.executable]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a relation hook that tests share. Its calls must not change anything."""
    scene = Scene(tmp_path_factory.mktemp("place"))
    yield scene
    scene.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()


def same(words: list[str], one: str, other: str) -> bool:
    """Return whether two outputs are equal. The order of keys in JSON does not matter."""
    is_json = "--format=json" in words or one.startswith("{")
    return json.loads(one) == json.loads(other) if is_json and one and other else one == other


@pytest.mark.parametrize("name", RECORDS)
def test_recorded_calls_give_the_recorded_output(name: str, tmp_path: Path) -> None:
    """Each call gives its recorded output, or what `here` says instead."""
    (tmp_path / "data").write_text("FILE DATA\nline2\n")
    scene = Scene(tmp_path, relation=name == "relation")
    try:
        for record in RECORDS[name]:
            words = shlex.split(record["call"])
            without = {record["without"]: None} if "without" in record else {}
            called = scene.call(*words, stdin=record.get("stdin", ""), cwd=tmp_path, **without)
            outcomes = [record["here"]] if "here" in record else [was[1:] for was in record["was"]]
            for status, out in outcomes:
                assert called.status == status, (record, called)
                assert same(words, called.out, out), (record, called)
            if "here" not in record:
                assert bool(called.err) == bool(record.get("says")), (record, called)
                if record.get("says") not in (None, "refused"):
                    assert called.err.rstrip("\n").endswith(record["says"]), (record, called)
    finally:
        scene.close()


def test_the_page_lists_every_difference_from_the_records() -> None:
    page = PAGE.read_text()
    reasons = {record["why"] for records in RECORDS.values() for record in records if "here" in record}
    assert reasons
    assert not [reason for reason in reasons if f"\n| {reason} |" not in page]
    for record in (record for records in RECORDS.values() for record in records if "here" in record):
        assert "says" in record or any(was[1:] != record["here"] for was in record["was"]), record


def test_the_page_lists_every_tool_and_option() -> None:
    page = PAGE.read_text()
    for name, tool in TOOLS.items():
        assert re.search(rf"`{name}[` ]", page), name
        for option in tool.syntax.options:
            assert re.search(rf"`{option.names[0]}[` ]", page), option.names


def test_help_needs_no_agent(shared: Scene) -> None:
    for name in ("relation-set", "relation-get"):
        called = shared.call(name, "--help", JUJU_AGENT_SOCKET=None, JUJU_CLIENT_ID=None)
        assert called == (0, TOOLS[name].syntax.help_text(), "")
    for name, tool in TOOLS.items():
        text = tool.syntax.help_text()
        assert text.startswith(f"usage: {name} ") and max(map(len, text.splitlines())) < 125
        assert ("--file" in text) == (name in ("relation-set", "leader-set"))


# command line → exit status, standard output, and the end of standard error
READS: dict[str, tuple[int, str, str]] = {
    "relation-get --format=json missing": (0, "null\n", ""),
    "relation-get --format json host wordpress/1": (0, '"10.0.0.5"\n', ""),
    "relation-get -rdb:1 host wordpress/1": (0, "10.0.0.5\n", ""),
    "relation-get --relation=db:1 host": (0, "10.0.0.5\n", ""),
    "relation-get --form=json -- host": (0, '"10.0.0.5"\n', ""),
    "relation-get --format=yaml -": (0, '{"host": "10.0.0.5", "port": "80"}\n', ""),
    "relation-get --format=shell missing": (0, "VAR_MISSING=''\n", ""),
    "relation-get --format=xyz host": (0, "10.0.0.5\n", "unknown output format: xyz\n"),
    "relation-get --format=xyz": (0, '{"host": "10.0.0.5", "port": "80"}\n', "unknown output format: xyz\n"),
    "relation-get --format=xyz missing": (0, "", "unknown output format: xyz\n"),
    "relation-get --log-level=DEBUG --log-file=/dev/null host": (0, "10.0.0.5\n", ""),
    "relation-get host wordpress/9": (0, "", "NoSuchUnit: The relation 'db' has no unit state for 'wordpress/9'\n"),
    "relation-get -r db:7 host": (2, "", "argument -r: NoSuchRelation: this unit has no relation 'db:7'\n"),
    "relation-set -r db:7 a=1": (2, "", "argument -r: NoSuchRelation: this unit has no relation 'db:7'\n"),
    "relation-get --app host": (2, "", "only units have settings, whole services have none\n"),
    "relation-get a b c": (2, "", "relation-get: error: unrecognized arguments: c\n"),
    "relation-get --nonsense": (2, "", "relation-get: error: unrecognized arguments: --nonsense\n"),
    "relation-get -r": (2, "", "argument -r: expected one argument\n"),
    "relation-get -o --format=json host": (2, "", "argument -o/--output: expected one argument\n"),
    "relation-get --bad a b c -x": (2, "", "unrecognized arguments: --bad c -x\n"),
    "unit-get --bad": (2, "", "unit-get: error: too few arguments\n"),
    "relation-get --lo x": (2, "", "ambiguous option: --lo could match --log-file, --log-level\n"),
    "relation-get --help=x": (2, "", "argument -h/--help: ignored explicit argument 'x'\n"),
    "relation-list --format=json": (0, '["wordpress/0", "wordpress/1"]\n', ""),
    "relation-list --app": (0, "wordpress\n", ""),
    "relation-list --app=False": (0, "wordpress/0\nwordpress/1\n", ""),
    "relation-list --app=perhaps": (2, "", "argument --app: ignored explicit argument 'perhaps'\n"),
    "relation-list -r 1": (0, "wordpress/0\nwordpress/1\n", ""),
    "relation-get -r 1 host wordpress/0": (0, "10.0.0.5\n", ""),
    "relation-list -r 9": (2, "", "NoSuchRelation: this unit has no relation '9'\n"),
    "relation-list --format=shell": (0, "wordpress/0\nwordpress/1\n", "unknown output format: shell\n"),
    "relation-ids site": (0, "", ""),
    "relation-ids --format=json site": (0, "[]\n", ""),
    "config-get": (0, '{"flag": false, "outlook": null, "skill-level": 9001, "title": "My Title"}\n', ""),
    "config-get -a --format=json": (
        *(0, '{"flag": false, "outlook": null, "skill-level": 9001, "title": "My Title"}\n', ""),
    ),
    "config-get skill-level": (0, "9001\n", ""),
    "config-get --format=json outlook": (0, "null\n", ""),
    "config-get --format=json -": (0, "null\n", ""),
    "config-get --format=xyz flag": (0, "", "unknown output format: xyz\n"),
    "unit-get": (2, "", "unit-get: error: too few arguments\n"),
    "is-leader": (0, "True\n", ""),
    "is-leader --format=json": (0, "true\n", ""),
    "leader-get": (0, "{}\n", ""),
    "leader-get --format=json k": (0, "null\n", ""),
    "goal-state --format=json": (0, '{"relations": {}, "units": {}}\n', ""),
    "network-get --primary-address db": (0, "10.0.0.1\n", ""),
    "network-get --egress-subnets db": (0, "10.0.0.1/32\n", ""),
    "storage-list --format=json": (0, "[]\n", ""),
    "storage-get -s data/0 location": (1, "", "NoSuchStorage: the unit has no storage 'data/0'\n"),
    "resource-get r": (1, "", "NoSuchResource: the charm has no resource 'r'\n"),
    "action-get p --format=json": (1, "", "action-get: error: not running an action\n"),
    "function-fail it": (1, "", "function-fail: error: not running an action\n"),
    "function-set a=1": (0, "", "function-set: not running an action, nothing is set\n"),
    "action-set a.b=1": (0, "", "action-set: not running an action, nothing is set\n"),
    "open-port 0": (2, "", "Invalid port, must be from 1 to 65535, got 0\n"),
    "open-port -- -80": (2, "", "Invalid port, must be from 1 to 65535, got -80\n"),
    "open-port 1_0": (2, "", "Invalid port, must be an integer, got '1_0'\n"),
    "open-port ٨": (2, "", "Invalid port, must be an integer, got '٨'\n"),
    "open-port -80": (2, "", "Invalid port, must be from 1 to 65535, got -80\n"),
    "open-port -80/tcp": (2, "", "open-port: error: too few arguments\n"),
    "open-port 99999999999999999999": (2, "", "must be from 1 to 65535, got 99999999999999999999\n"),
    "open-port 80/sctp": (2, "", "Invalid protocol, must be 'tcp' or 'udp', got 'sctp'\n"),
    "open-port 53/udp/": (2, "", "Invalid format for port/protocol, got '53/udp/'\n"),
    "open-port 2000-1000": (2, "", "must be from the lower to the higher one, got '2000-1000'\n"),
    "open-port 1-2-3": (2, "", "Invalid port, must be an integer, got '1-2-3'\n"),
    "status-set nonsense x": (1, "", "a status is one of maintenance, blocked, waiting, active, not 'nonsense'\n"),
    "status-set --application active x": (1, "", "only units have a status, whole services have none\n"),
    "relation-set nonsense": (1, "", "relation-set: error: Expected `option=value`. Found `nonsense`\n"),
    "relation-set =x": (1, "", "relation-set: error: Expected `option=value`. Found `=x`\n"),
    "relation-set --app a=1": (2, "", "only units have settings, whole services have none\n"),
    "relation-set @/nonexistent": (1, "", "relation-set: error: /nonexistent: No such file or directory\n"),
    "relation-set --file /nonexistent": (1, "", "relation-set: error: /nonexistent: No such file or directory\n"),
    "relation-set k=@/etc": (1, "", "relation-set: error: /etc can't be read: Is a directory\n"),
    "relation-set k=@/dev/zero": (1, "", "relation-set: error: /dev/zero has more than 16777216 bytes\n"),
    "relation-set - k=@-": (1, "", "standard input: not JSON: Expecting value: line 1 column 1 (char 0)\n"),
    "relation-set a=@- b=@-": (1, "", "relation-set: error: standard input can be read only once\n"),
    "relation-get -o /nonexistent/x host": (
        *(2, "", "can't open '/nonexistent/x': [Errno 2] No such file or directory: '/nonexistent/x'\n"),
    ),
    "relation-set -o /etc never=set": (
        *(2, "", "argument -o/--output: can't open '/etc': [Errno 21] Is a directory: '/etc'\n"),
    ),
    "relation-get never mysql/0": (0, "", ""),
    "relation-get -o - host": (0, "10.0.0.5\n", ""),
    "relation-get -o /dev/null host": (0, "", ""),
    "relation-get -o /dev/full host": (1, "", "relation-get: error: /dev/full: No space left on device\n"),
    "relation-get -s /nonexistent/s host": (1, "", "/nonexistent/s can't be reached: No such file or directory\n"),
    "relation-get --client-id x host": (1, "", "NoSuchClient: unknown client id\n"),
    "relation-get --client_id x host": (1, "", "NoSuchClient: unknown client id\n"),
}


@pytest.mark.parametrize("line", READS)
def test_calls_give_the_expected_status_and_output(
    line: str, shared: Scene, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Run the tools in this process, which is faster. The test of recorded calls starts them as hooks do."""
    for name, value in shared.environment().items():
        monkeypatch.setenv(name, value)
    words = shlex.split(line)
    status, out, err = READS[line]
    found = main(words[0], words[1:])
    printed = capfd.readouterr()
    assert (found, printed.out) == (status, out), printed
    assert printed.err.endswith(err) and bool(printed.err) == bool(err)
    assert "Traceback" not in printed.err


def test_the_shell_format_quotes_values_and_clears_old_variables(tmp_path: Path) -> None:
    """A shell that evaluates the output gets the settings. Older variables are emptied, with a warning."""
    settings = {"a.b-c/d:e": 'it\'s $HOME `x` "y"\n', "plain": "a/b:c@d%e,f=g", "f(g)|<>?*\\": "é"}
    settings |= {"x\nPATH": "/evil", "y;$(z)=`": "1"}
    scene = Scene(tmp_path, settings={("db:0", "wordpress/0"): settings})
    try:
        called = scene.call("relation-get", "--format=shell", VAR_OLD="1", VAR_a="2")
    finally:
        scene.close()
    lines = called.out.splitlines()
    assert lines[:2] == ["VAR_OLD=", "VAR_A="] and "VAR_PLAIN=a/b:c@d%e,f=g" in lines
    assert called.err.endswith("indicate a usage error.\nVAR_OLDVAR_a\n")
    assert all(re.match(r"VAR_[A-Z0-9_]*=", line) for line in lines if not line.startswith("'")), lines
    script = called.out + 'printf "%s|%s|%s" "$VAR_A_B_C_D_E" "$VAR_PLAIN" "$VAR_F_G_______"'
    printed = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=30).stdout
    assert printed == 'it\'s $HOME `x` "y"\n|a/b:c@d%e,f=g|é'


def test_the_output_option_writes_to_a_file(shared: Scene, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("what was there before, and longer\n")
    called = shared.call("relation-get", "-o", str(path), "--format=json")
    assert called == (0, "", "")
    assert path.read_text() == '{"host": "10.0.0.5", "port": "80"}\n'
    refused = shared.call("relation-get", "-o", str(path), "host", "wordpress/9")
    assert refused.status == 0 and path.read_text() == '{"host": "10.0.0.5", "port": "80"}\n'


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


def test_tools_in_a_broken_relation_warn_and_succeed(tmp_path: Path) -> None:
    """Charms of the original use the tools there too, and libraries take the empty answer as "no settings"."""
    relation = {"id": "db:0", "number": 0, "name": "db", "remote": "", "broken": True, "members": []}
    scene = Scene(tmp_path, hook="db-relation-broken")
    scene.context.step.relation = StepRelation(**relation)
    try:
        called = scene.call("relation-get", "--format=json", "-", JUJU_REMOTE_UNIT="")
        assert called[:2] == (0, "") and called.err.endswith("Cannot access other units in broken relation\n")
        called = scene.call("relation-set", "a=1")
        assert called[:2] == (0, "") and called.err.endswith("Cannot change settings in broken relation\n")
        assert scene.call("relation-list", "--format=json") == (0, "[]\n", "")
        assert scene.changes()["relations"] == {}
    finally:
        scene.close()


@pytest.mark.parametrize("kind", ["a pipe without data", "closed", "/dev/null"])
def test_tools_do_not_wait_for_unused_standard_input(kind: str, shared: Scene) -> None:
    source, sink = os.pipe()
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL if kind == "/dev/null" else source}
    if kind == "closed":
        given = {"preexec_fn": lambda: os.close(0)}
    begun = time.monotonic()
    try:
        path = os.path.join(shared.tools, "relation-set")
        done = subprocess.run([path], env=shared.environment(), capture_output=True, timeout=30, **given)
    finally:
        os.close(source)
        os.close(sink)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - begun < 25


def test_input_that_arrives_late_is_read(scene: Scene) -> None:
    """Input that arrives through a pipe shortly after the tool has started is not lost."""
    script = """(sleep 0.3; echo '{"slow": "1"}') | relation-set; relation-get slow mysql/0"""
    for _ in range(5):  # on a busy machine the writer may sleep longer than the tool waits
        done = subprocess.run(
            ["/bin/sh", "-c", script], env=scene.environment(), capture_output=True, text=True, timeout=60
        )
        if done.stdout:
            break
    assert (done.stdout, done.stderr) == ("1\n", "")


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=120) | st.text(
    "ab \n:#-'\"?,{}[]~!\t", max_size=100
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(st.dictionaries(TEXTS.filter(bool), TEXTS | st.none(), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_yaml_written_by_libraries_is_parsed(given: dict[str, str | None], braces: bool, start: bool) -> None:
    text = yaml.safe_dump(given, default_flow_style=braces, explicit_start=start and braces)
    assert tool_yaml.parse(text, "f") == {key: value or "" for key, value in given.items()}


NO_MAPS_OF_TEXTS = {
    "a: [1]\n": 1, "a: 1\nb:\n - x\n": 2, "- a\n": 1, "a: |\n  x\n": 1, "a: b: c\n": 1, " a: b\n": 1, "a: 'x\n": 1,
    "a: &x y\n": 1, "a:\n  b: c\n": 1, 'a: "\\q"\n': 1, 'a: "\\U99999999"\n': 1, 'a: "\\xzz"\n': 1, "a: b\n\na: c\n": 3,
    "text": 1, "a: !!int 1\n": 1, "a: {b: c}\n": 1, "a: *x\n": 1, "a: 1\n---\nb: 2\n": 2, "a:b\n": 1,
    "? [a]\n: b\n": 1, "a: 'b' c\n": 1, "a: @b\n": 1, "{a: b\n": 1, "{a: b} c\n": 1, "{a: b}\nc: d\n": 2, "{a: [b]}": 1,
    "{a: b}{c: d}": 1, "a: b\n{c: d}": 2, "{a: b, a: c}": 1, "{a b}": 1, "{,}": 1, "{{a: b}}": 1, "{a: {b: c}}": 1,
}  # fmt: skip


@pytest.mark.parametrize("text", NO_MAPS_OF_TEXTS)
def test_yaml_other_than_a_map_of_texts_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=rf"^f:[{NO_MAPS_OF_TEXTS[text]}-3]: "):
        tool_yaml.parse(text, "f")


def test_handwritten_yaml_is_parsed() -> None:
    text = "---\r\n# c\r\na: b # d\r\n\r\n\"c\": 'd'\r\ne:\r\n  f\r\n  g\r\n\r\n  h\r\ni: ~\r\nj: yes\r\n...\r\n"
    assert tool_yaml.parse(text, "f") == {"a": "b", "c": "d", "e": "f g\nh", "i": "", "j": "yes"}
    text = "# c\n{a: b c, 'd':\n  e:f, ? g : , \"h\":'}', i:\n\nj}\n# d\n...\n"
    assert tool_yaml.parse(text, "f") == {"a": "b c", "d": "e:f", "g": "", "h": "}", "i": "j"}
    assert tool_yaml.parse("{}", "f") == tool_yaml.parse("{ }\n", "f") == tool_yaml.parse("--- {}\n", "f") == {}
    assert tool_yaml.parse("{a: b,}", "f") == {"a": "b"}


def test_relation_set_prints_null_as_json(scene: Scene) -> None:
    """The original's tools do so too, as their result is None."""
    assert scene.call("relation-set", "--format=json", "a=1") == (0, "null\n", "")
    assert scene.call("relation-set", "--format=xyz", "a=2") == (0, "", "unknown output format: xyz\n")
    assert scene.changes()["relations"] == {"db:0": {"set": {"a": "2"}, "delete": []}}


def test_relation_get_accepts_a_unit_name_with_a_newline(scene: Scene) -> None:
    """A charm of 2012 passes each line of relation-list on, including the newline."""
    for unit in scene.call("relation-list").out.splitlines(keepends=True):
        assert scene.call("relation-get", "host", unit) == (0, "10.0.0.5\n", "")


def test_ports_status_and_log_tools_work(scene: Scene) -> None:
    for line in ("open-port 80", "open-port 443/TCP", "open-port 1000-2000/udp", "open-port icmp", "close-port 80/tcp"):
        assert scene.call(*line.split()) == (0, "", "")
    assert scene.call("open-port", " +443 ", "--format=json") == (0, "null\n", "")  # already open, which is no error
    assert scene.call("opened-ports").out == "443/tcp\n1000-2000/udp\nicmp\n"
    assert scene.call("opened-ports", "--format=json").out == '["443/tcp", "1000-2000/udp", "icmp"]\n'
    assert scene.call("status-get", "--format=json").out == '{"message": "", "status": "unknown"}\n'
    assert scene.call("status-set", "--application=False", "active", "it's up") == (0, "", "")
    assert scene.call("status-get").out == "active\n"
    status = json.loads(scene.call("status-get", "--format=json", "--include-data").out)
    assert status == {"message": "it's up", "status": "active", "status-data": {}}
    assert json.loads(scene.call("status-get", "--format=json").out) == {"message": "it's up", "status": "active"}
    assert scene.call("application-version-set", "9.5").status == 0
    scene.said.clear()
    logged = {
        "juju-log hi there": (20, "hi there"),
        "juju-log -l ERROR boom": (40, "boom"),
        "juju-log --log-level ERROR boom": (40, "boom"),
        "juju-log -l42 x": (42, "x"),
        "juju-log --debug x": (10, "x"),
        "function-log x": (20, "x"),
        "action-log x": (20, "x"),
        "juju-log -5 --what else": (20, "-5 --what else"),
        "juju-log é": (20, "é"),
    }
    for line in logged:
        assert scene.call(*line.split()) == (0, "", "")
    unknown = ("XYZZY", "²", "9" * 10)
    for level in unknown:
        assert scene.call("juju-log", "-l", level, "x") == (0, "", f"Invalid log level {level}\n")
    assert [(said["level"], said["text"]) for said in scene.said] == [*logged.values(), *([(20, "x")] * len(unknown))]


def test_a_long_log_message_arrives_whole(scene: Scene) -> None:
    text = "é" * 60_000  # longer than one AMP value, but short enough for an argument
    assert scene.call("juju-log", text) == (0, "", "")
    assert "".join(said["text"] for said in scene.said) == text


def test_only_the_leader_can_use_leader_set(tmp_path: Path) -> None:
    leader = Scene(tmp_path / "one", leader={"old": "1"})
    other = Scene(tmp_path / "two", leader={"k": "v"})
    other.context.step.state.leader = False
    try:
        assert leader.call("leader-set", "k=v", "old=") == (0, "", "")
        assert leader.call("leader-get").out == '{"k": "v"}\n'
        assert leader.call("leader-get", "k").out == "v\n"
        assert leader.changes()["leader"] == {"set": {"k": "v"}, "delete": ["old"]}
        assert other.call("is-leader", "--format=json").out == "false\n"
        assert other.call("leader-get", "--format=json", "k").out == '"v"\n'
        refused = other.call("leader-set", "k=w")
        assert refused.status == 1 and "NotLeader" in refused.err
    finally:
        leader.close()
        other.close()


def test_tools_are_refused_after_the_hook_ended(scene: Scene) -> None:
    scene.changes()
    scene.agent.end(scene.token)
    for line in ("relation-set a=1", "relation-get", "config-get", "open-port 80", "is-leader"):
        called = scene.call(*line.split())
        assert called.status == 1 and called.err.endswith("NoSuchClient: unknown client id\n")


def test_tools_work_with_only_a_socket_and_a_client_id(shared: Scene) -> None:
    """A program needs no environment of a hook, only the socket and the client id."""
    path = os.path.join(shared.tools, "relation-get")
    words = [path, "-s", shared.agent.path, "--client-id", shared.token, "host", "wordpress/1"]
    done = subprocess.run(words, env={"LC_ALL": "C"}, capture_output=True, text=True, timeout=30, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "10.0.0.5\n", "")
    named = {"JUJU_SOCKET": shared.agent.path, "JUJU_CLIENT_ID": shared.token}
    done = subprocess.run([path, "host", "wordpress/1"], env=named, capture_output=True, text=True, timeout=30)
    assert done.stdout == "10.0.0.5\n"


def test_a_broken_agent_is_reported_in_one_line(tmp_path: Path, shared: Scene) -> None:
    """This covers an agent that hangs up and one that speaks another protocol."""
    import socket
    import threading

    for said, expected in ((b"", "closed the connection without an answer"), (b"HTTP/1.1 400\r\n", "not a box")):
        path = tmp_path / expected[:3]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()

            def answer(listener: socket.socket = listener, said: bytes = said) -> None:
                with listener.accept()[0] as line:
                    line.recv(65536)
                    line.sendall(said)

            thread = threading.Thread(target=answer)
            thread.start()
            called = shared.call("config-get", "-s", str(path))
            thread.join(30)
        assert called.status == 1 and expected in called.err and len(called.err.splitlines()) == 1


# Installed files


def test_install_writes_the_files_once_and_repairs_them(tmp_path: Path) -> None:
    folder = Path(tool_files.install(str(tmp_path)))
    assert {path.name for path in folder.iterdir()} == {*TOOLS, tool_files.CODE, tool_files.PROGRAM}
    assert (folder.parent / "current").resolve() == folder
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    before = (folder / "tool").stat().st_ino
    assert tool_files.install(str(tmp_path)) == str(folder)
    assert (folder / "tool").stat().st_ino == before
    (folder / "modules").write_bytes(b"damaged")
    (folder / "relation-get").unlink()
    assert tool_files.install(str(tmp_path)) == str(folder)
    done = subprocess.run([folder / "relation-get", "--help"], capture_output=True, timeout=30)
    assert done.returncode == 0


def test_install_removes_old_directories(tmp_path: Path) -> None:
    folder = Path(tool_files.install(str(tmp_path)))
    for name, age in (("of-yesterday", 1), ("of-last-year", 365)):
        (folder.parent / name).mkdir()
        (folder.parent / name / "tool").touch()
        os.utime(folder.parent / name, (time.time() - age * 86400,) * 2)
    tool_files.install(str(tmp_path))
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted(["current", folder.name, "of-yesterday"])


@pytest.mark.parametrize("python", [*OLDEST, sys.executable])
def test_every_process_installs_the_same_working_files(python: str, tmp_path: Path) -> None:
    """Processes with different hash seeds install into the same directory, and the tools work with that Python."""
    root = str(Path(tool_files.__file__).parents[4])
    script = "import sys; sys.path[:0] = sys.argv[1:2]; sys.dont_write_bytecode = True\n"
    script += "from statecfg.remote.units.tools import install; print(install.install(sys.argv[2]))"
    found = {
        subprocess.run(
            [python, "-S", "-c", script, root, str(tmp_path)], env={"PYTHONHASHSEED": seed}, check=True, **RUN
        ).stdout
        for seed in ("1", "2")
    }
    (folder,) = found
    scene = Scene(tmp_path)
    scene.tools = folder.strip()
    try:
        assert scene.call("relation-get", "--format=json", "host") == (0, '"10.0.0.5"\n', "")
        assert scene.call("relation-set", "--file", "-", stdin="a: 'x'\n") == (0, "", "")
        assert scene.call("relation-get", "nothing", JUJU_AGENT_SOCKET=None).status == 2
    finally:
        scene.close()


RUN: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}


@pytest.mark.parametrize("name", ["a b", 'q"u$o`te', "l" * 150])
def test_tools_work_with_an_unusual_python_path(name: str, tmp_path: Path) -> None:
    python = tmp_path / name / "python"
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    folder = tool_files.install(str(tmp_path), str(python))
    done = subprocess.run([os.path.join(folder, "unit-get"), "--help"], **RUN)
    assert done.stdout.startswith("usage: unit-get"), done.stderr
    done = subprocess.run([os.path.join(folder, "unit-get")], **RUN)
    assert done.returncode == 2


# Modules that load too slowly, as hooks call dozens of tools.
COSTLY = {"socket", "argparse", "subprocess", "selectors", "enum", "typing", "logging", "tempfile", "shutil", "inspect"}


@pytest.mark.parametrize("line, json", [("relation-list", False), ("juju-log x", False), ("relation-get", True)])
def test_tools_load_no_slow_modules(line: str, json: bool, shared: Scene) -> None:
    """A tool loads only the modules that it needs."""
    path = Path(shared.tools) / "tool"
    text = path.read_text().replace(
        'names["run"](modules)',
        "import sys, os; end = os._exit\n"
        'os._exit = lambda status: (os.write(2, " ".join(sys.modules).encode()), end(status))\n'
        'names["run"](modules)',
    )
    words = line.split()
    done = subprocess.run(
        [sys.executable, "-ISXutf8", "-c", f"import sys; sys.argv = {words!r}\n" + text],
        env=shared.environment(),
        **RUN,
    )
    loaded = set(done.stderr.split())
    assert done.returncode == 0 and "statecfg.remote.units.tools.commands" in loaded, done.stderr
    unwanted = COSTLY if not json else COSTLY - {"enum"}  # json imports re, which imports enum
    assert not loaded & unwanted
    assert ("json" in loaded) == json
