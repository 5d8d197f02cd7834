"""The tools of hooks, which ask the agent over its socket: recorded calls of the original, and our additions."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecfg.remote.units.step import StepRelation
from statecfg.remote.units.tools.catalogue import TOOLS, main
from tests import ROOT
from tests.host.units.tool_scene import Scene

RECORDS = yaml.safe_load((Path(__file__).parent / "tools.yml").read_text())
PAGE = ROOT / "docs" / "services-tools.md"


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
