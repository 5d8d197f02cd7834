"""The agent's socket: recorded bytes, the rules for what a hook may ask and change, and who may connect."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.units import agent as unit_agent
from statecfg.remote.units import amp
from statecfg.remote.units.agent import Agent
from statecfg.remote.units.context import COMMANDS, Context
from statecfg.remote.units.settings import UnitError
from statecfg.remote.units.step import UnitStep
from tests.host.units.unit_host import PYTHON, SPEAK, ask, box, read_box, step

Json = dict[str, Any]
RECORDED = json.loads(Path(__file__).with_name("amp_bytes.json").read_text())
OWN = ("relation", "db:0", "mysql/0")
NODES: dict[tuple[str, ...], Json] = {
    ("relation", "db:0", "wordpress/0"): {"host": "10.0.0.5", "port": "80"},
    ("relation", "db:1", "wiki/0"): {"name": "rabbit"},
    OWN: {"private-address": "10.0.0.1"},
    ("relation", "db:1", "mysql/0"): {"private-address": "10.0.0.1"},
    ("config",): {"skill-level": 9001, "outlook": None, "flag": False, "title": "My Title"},
    ("leader",): {"who": "me"},
}
EMPTY = {"relations": {}, "leader": {"set": {}, "delete": []}}
UNKNOWN = {"_error_code": "UNKNOWN", "_error_description": "Unknown Error"}


class Hook:
    """A running hook with a real agent and a replaced controller."""

    def __init__(self, agent: Agent, nodes: Mapping[tuple[str, ...], Json], told: list[Json], given: Json) -> None:
        self.agent, self.nodes, self.told = agent, deepcopy(dict(nodes)), told
        self.asked: list[list[str]] = []
        self.context = Context(UnitStep.from_json(given), self.read, told.append)
        self.token = agent.begin(self.context)

    def read(self, node: list[str], over: threading.Event) -> Json:
        self.asked.append(node)
        if tuple(node) not in self.nodes:
            name, unit = node[1].partition(":")[0], node[2]
            raise UnitError("NoSuchUnit", f"The relation '{name}' has no unit state for '{unit}'")
        return dict(self.nodes[tuple(node)])

    def __call__(self, command: str, **fields: str) -> dict[str, str]:
        """Send a command to the agent. Return its answer."""
        return ask(self.agent.path, **{"client_id": self.token, **fields, "_command": command})

    def data(self, command: str, **fields: str) -> Any:
        """Send a command to the agent. Return the parsed JSON of its answer."""
        return json.loads(self(command, **fields)["data"])

    def put(self, relation: str = "", **settings: Any) -> dict[str, str]:
        return self("relation_set", json_blob=json.dumps(settings), **({"relation_id": relation} if relation else {}))

    def get(self, unit: str = "wordpress/0", name: str = "", **more: str) -> Any:
        return self.data("relation_get", unit_name=unit, setting_name=name, **more)

    def code(self, command: str, **fields: str) -> str:
        return self(command, **fields)["_error_code"]

    def end(self) -> Json:
        self.agent.end(self.token)
        return self.context.finish()


@pytest.fixture
def told() -> list[Json]:
    return []


@pytest.fixture
def agent(tmp_path: Path, told: list[Json]) -> Iterator[Agent]:
    made = Agent(str(tmp_path), lambda level, text: told.append({"type": "outside", "level": level, "text": text}))
    yield made
    made.close()
    assert not os.path.exists(made.folder)


@pytest.fixture
def hook(agent: Agent, told: list[Json]) -> Hook:
    return Hook(agent, NODES, told, step())


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: record["case"])
def test_the_agent_answers_recorded_requests_with_the_recorded_bytes(hook: Hook, record: Json) -> None:
    token = hook.token.encode()
    sent = bytes.fromhex(record["request"]).replace(b"\0\x09client_id\0\x01c", b"\0\x09client_id\0\x20" + token)
    answer = bytes.fromhex(record["answer"])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(hook.agent.path)
        for at in range(0, len(sent), 7):  # in small pieces
            connection.sendall(sent[at : at + 7])
        found = b""
        while len(found) < len(answer):
            found += connection.recv(4096) or pytest.fail(f"the agent closed the connection after {found!r}")
    assert found == answer


def test_one_connection_answers_many_questions_in_order(hook: Hook) -> None:
    """Libraries keep one connection open while the hook runs, and send more questions before the first answer."""
    tags = [b"1", b"ff", b"a b", b"\xff\x00", b"", b"x" * 255]
    asked: dict[str, str | bytes] = {"_command": "config_get", "client_id": hook.token, "option_name": "title"}
    asked["unheard-of"] = "x"
    decoder = amp.BoxDecoder()
    answers: list[dict[str, bytes]] = []
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(hook.agent.path)
        boxes = [{**asked, "_ask": tag} for tag in tags]
        boxes += [asked, {**asked, "_ask": b"2", "_command": "nonsense"}]
        boxes += [{**asked, "_ask": b"%d" % number} for number in range(100)]
        connection.sendall(b"".join(map(amp.encode, boxes)))
        while len(answers) < len(boxes) - 1:
            answers += decoder.feed(connection.recv(4096) or pytest.fail(f"the agent hung up after {len(answers)}"))
    data = json.dumps(NODES[("config",)]["title"]).encode()
    assert answers[: len(tags)] == [{"_answer": tag, "data": data} for tag in tags]
    unknown = {"_error": b"2", "_error_code": b"UNHANDLED", "_error_description": b"Unhandled Command: 'nonsense'"}
    assert answers[len(tags)] == unknown
    assert answers[len(tags) + 1 :] == [{"_answer": b"%d" % number, "data": data} for number in range(100)]


def test_the_module_docstring_lists_every_command() -> None:
    rows = [line.split("  ")[0] for line in (unit_agent.__doc__ or "").splitlines()]
    listed = {name for row in rows for name in row.split(", ")}
    assert {*COMMANDS, "LogCommand"} <= listed


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_clients_and_missing_arguments_are_refused(hook: Hook, command: str) -> None:
    required = dict.fromkeys(COMMANDS[command][1], "x")
    refused = {"_error_code": "NoSuchClient", "_error_description": "unknown client id"}
    assert hook(command, client_id="c", **required) == refused
    assert hook(command, client_id=hook.token[:-1], **required) == refused
    assert ask(hook.agent.path, _command=command, **required) == UNKNOWN
    for name in required:
        assert hook(command, **{key: "x" for key in required if key != name}) == UNKNOWN
    assert (hook.asked, hook.told, hook.end()) == ([], [], EMPTY)
    assert hook(command, **required) == refused  # the client id is invalid after the end of its hook


def test_unknown_commands_are_unhandled(hook: Hook) -> None:
    assert hook("flush") == {"_error_code": "UNHANDLED", "_error_description": "Unhandled Command: 'flush'"}
    assert hook.code("__init__") == hook.code("call") == hook.code("") == "UNHANDLED"


def test_a_hook_reads_each_node_once_and_keeps_that_view(hook: Hook) -> None:
    assert hook.get(name="host") == "10.0.0.5"
    hook.nodes["relation", "db:0", "wordpress/0"] = {"host": "other"}
    assert hook.get() == {"host": "10.0.0.5", "port": "80"}
    assert hook.get(name="missing") == ""
    assert hook.get("", "port") == "80"  # the empty name means the hook's remote unit
    assert hook.get("wiki/0", "name", relation_id="db:1") == "rabbit"
    assert hook.asked == [["relation", "db:0", "wordpress/0"], ["relation", "db:1", "wiki/0"]]
    assert hook.code("relation_get", unit_name="wordpress/9", setting_name="") == "NoSuchUnit"
    assert hook.code("relation_get", unit_name="", setting_name="", relation_id="db:1") == "NoSuchUnit"
    assert hook.code("relation_get", unit_name="wiki/0", setting_name="", relation_id="db:7") == "NoSuchRelation"


def test_settings_are_seen_by_the_hook_and_returned_at_its_end(hook: Hook) -> None:
    hook.nodes[OWN] |= {"existing": "42", "changed": "a" * 101, "kept": "42", "blank": "x"}
    hook.nodes[OWN]["old-token"] = "hunter2"
    given = {"existing": "", "absent": "", "new": "2", "changed": "abc", "kept": "42", "blank": " \t"}
    assert hook.put(**given) == {}
    assert hook.put(**{"password": "hunter2", "old-token": "new"}) == {}
    now = {"private-address": "10.0.0.1", "changed": "abc", "kept": "42", "new": "2"}
    assert hook.get("mysql/0") == {**now, "password": "hunter2", "old-token": "new"}
    assert hook.put("db:1", q="1") == {}
    found = hook.end()["relations"]
    sets = {"new": "2", "changed": "abc", "password": "hunter2", "old-token": "new"}
    assert found["db:0"] == {"set": sets, "delete": ["blank", "existing"]}
    assert found["db:1"] == {"set": {"q": "1"}, "delete": []}
    assert [each.split("\n") for each in hook.context.settings.described("db-relation-changed")] == [
        [
            "Flushed values for hook 'db-relation-changed' on 'db:0'",
            "    Setting deleted: 'blank' (was 'x')",
            f"    Setting changed: 'changed'='abc' (was '{'a' * 100}')",
            "    Setting deleted: 'existing' (was '42')",
            "    Setting changed: 'new'='2' (was unset)",
            "    Setting changed: 'old-token'=… (was …)",
            "    Setting changed: 'password'=… (was unset)",
        ],
        [
            "Flushed values for hook 'db-relation-changed' on 'db:1'",
            "    Setting changed: 'q'='1' (was unset)",
        ],
    ]


def test_a_setting_changed_back_is_no_change(hook: Hook) -> None:
    hook.nodes[OWN]["a"] = "1"
    for value in ("2", "1"):
        hook.put(a=value, absent="")
    assert (hook.end(), hook.context.settings.described("db-relation-changed")) == (EMPTY, [])


def test_one_invalid_setting_refuses_the_whole_set(hook: Hook) -> None:
    assert hook.put(a="1", b=5) == hook.put(a="1", b=["x"]) == hook.put(a="1", b=True) == UNKNOWN
    assert hook.put(a="1", b=None) == hook("relation_set", json_blob="null") == UNKNOWN
    assert hook("relation_set", json_blob='["a"]') == hook("relation_set", json_blob="[" * 5000) == UNKNOWN
    assert hook.put(a="1", b="x\0")["_error_code"] == hook.put(a="1", b="\ud800")["_error_code"] == "InvalidSetting"
    assert hook.end() == EMPTY


def test_relation_set_writes_only_the_own_units_settings(hook: Hook) -> None:
    assert hook("relation_set", unit_name="wordpress/0", json_blob='{"a": "1"}') == {}
    assert hook.end()["relations"] == {"db:0": {"set": {"a": "1"}, "delete": []}}
    assert hook.asked == [list(OWN)]


def test_a_broken_relation_allows_reading_own_settings_only(agent: Agent, told: list[Json]) -> None:
    relation = {"id": "db:0", "number": 0, "name": "db", "remote": "", "broken": True, "members": []}
    hook = Hook(agent, NODES, told, step(relation=relation))
    denied = {"_error_code": "BrokenRelation", "_error_description": "Cannot access other units in broken relation"}
    for unit in ("wordpress/0", ""):
        assert hook("relation_get", unit_name=unit, setting_name="") == denied
    assert hook.get("mysql/0") == {"private-address": "10.0.0.1"}
    assert hook("ListRelationsCommand") == {"members": ""}
    assert hook.put(a="1")["_error_description"] == "Cannot change settings in broken relation"
    assert hook.put("db:1", a="1") == {}  # this relation is not broken
    assert list(hook.end()["relations"]) == ["db:1"]


def test_hooks_outside_a_relation_must_give_its_id(agent: Agent, told: list[Json]) -> None:
    hook = Hook(agent, NODES, told, step(hook="install", relation=None))
    told_so = "Calling relation related method without relation context"
    for command in ("relation_get", "relation_set", "ListRelationsCommand", "relation_service"):
        required = dict.fromkeys(COMMANDS[command][1], "")
        assert hook(command, **required) == {"_error_code": "NotRelationContext", "_error_description": told_so}
    assert hook("ListRelationsCommand", relation_id="db:1") == {"members": "wiki/0"}
    assert hook.put("db:1", a="1") == {}
    assert hook.get("wiki/0", relation_id="db:1") == {"name": "rabbit"}


def test_the_agent_lists_relations_and_their_members(agent: Agent, told: list[Json]) -> None:
    relations = {"db:10": [], "db:2": ["wiki/0"], "db:0": ["wordpress/0", "wordpress/1"], "dbx:3": [], "x-db:4": []}
    services = {**dict.fromkeys(relations, "wiki"), "db:0": "wordpress"}
    hook = Hook(agent, NODES, told, step(relations=relations, services=services))
    assert hook("relation_ids", relation_name="db") == {"ids": "db:0 db:2 db:10"}
    assert hook("relation_ids", relation_name="none") == {"ids": ""}
    assert hook("ListRelationsCommand") == {"members": "wordpress/0 wordpress/1"}
    assert hook("ListRelationsCommand", relation_id="db:2") == {"members": "wiki/0"}
    assert hook.code("ListRelationsCommand", relation_id="db:3") == "NoSuchRelation"
    assert [hook.data("relation_service", relation_id=each) for each in ("", "db:2", "db:10")] == [
        *("wordpress", "wiki", "wiki")
    ]


def test_the_agent_answers_questions_about_the_unit(hook: Hook) -> None:
    assert hook.data("config_get", option_name="") == NODES[("config",)]
    assert hook.data("config_get", option_name="title") == "My Title"
    assert hook.data("config_get", option_name="missing") is None
    assert hook("get_unit_info", setting_name="private-address") == {"data": "10.0.0.1"}
    assert hook("get_unit_info", setting_name="public-address") == {"data": ""}
    assert hook.code("get_unit_info", setting_name="garbage") == "NoSuchKey"
    assert hook("is_leader") == {"leader": "1", "data": "true"}
    assert hook.data("goal_state") == {"units": {}, "relations": {}}
    found = hook.data("network_get", binding="db")
    assert found["ingress-addresses"] == [found["bind-addresses"][0]["addresses"][0]["address"]] == ["10.0.0.1"]
    assert found["egress-subnets"] == ["10.0.0.1/32"]
    assert hook.data("storage_list") == []
    assert hook.code("storage_get", storage_id="data/0", attribute="x") == "NoSuchStorage"
    assert hook.code("resource_get", name="r") == "NoSuchResource"
    assert hook.asked == [["config"]]


def test_only_the_leader_can_change_leader_settings(agent: Agent, hook: Hook, told: list[Json]) -> None:
    assert hook.data("leader_get", setting_name="") == {"who": "me"}
    assert hook("leader_set", json_blob='{"k": "v", "who": ""}') == {}
    assert hook.data("leader_get", setting_name="k") == "v"
    assert hook.data("leader_get", setting_name="who") is None
    assert hook.end() == {"relations": {}, "leader": {"set": {"k": "v"}, "delete": ["who"]}}
    assert hook.context.settings.described("db-relation-changed")[0].startswith(
        "Flushed values for hook 'db-relation-changed' on 'leader'\n"
    )
    other = Hook(agent, NODES, told, step(leader=False))
    assert other("is_leader") == {"leader": "0", "data": "false"}
    assert other.code("leader_set", json_blob='{"k": "v"}') == "NotLeader"
    assert other.end() == EMPTY


def test_ports_status_and_log_take_effect_at_once(hook: Hook) -> None:
    assert hook("open_port", port=" +53 ", proto="udp") == hook("open_port", port="80", proto="TCP") == {}
    assert hook("open_port", port="1000-2000", proto="tcp") == hook("open_port", port="", proto="icmp") == {}
    assert hook("close_port", port="80", proto="tcp") == hook("close_port", port="81", proto="tcp") == {}
    assert hook.data("opened_ports") == ["53/udp", "1000-2000/tcp", "icmp"]
    acts = [(each["open"], each["port"]) for each in hook.told if each["type"] == "unit-port"]
    opened = [(True, "53/udp"), (True, "80/tcp"), (True, "1000-2000/tcp"), (True, "icmp")]
    assert acts == [*opened, (False, "80/tcp"), (False, "81/tcp")]
    logged = [(each["level"], each["text"]) for each in hook.told if each["type"] == "unit-log"]
    assert logged[:2] == [(10, "opened 53/udp"), (10, "opened 80/tcp")]
    hook.told.clear()
    assert hook("status_set", status="blocked", message="no db") == {}
    assert hook.data("status_get") == {"status": "blocked", "message": "no db", "status-data": {}}
    assert hook.code("status_set", status="fine", message="") == "InvalidStatus"
    assert hook("application_version_set", version="8.0") == {}
    about = {"unit": "mysql/0", "hook": "db-relation-changed"}
    assert hook.told == [
        {"type": "unit-status", "status": "blocked", "message": "no db"},
        {"type": "unit-log", **about, "level": 20, "text": "application version: 8.0"},
    ]
    assert hook.end() == EMPTY


@pytest.mark.parametrize("port, proto", [("eighty", "tcp"), ("", "tcp"), ("1-2-3", "tcp"), ("٤", "tcp"), ("-1", "udp")])
def test_a_port_that_is_not_a_number_is_refused(hook: Hook, port: str, proto: str) -> None:
    assert hook("open_port", port=port, proto=proto) == UNKNOWN


@pytest.mark.parametrize(
    "port, proto, said",
    [
        ("0", "tcp", "Invalid port, must be from 1 to 65535, got 0"),
        ("65536", "udp", "Invalid port, must be from 1 to 65535, got 65536"),
        ("80", "x", "Invalid protocol, must be 'tcp' or 'udp', got 'x'"),
        ("9-1", "tcp", "Invalid port range, it begins after its end, got 9-1"),
    ],
)
def test_an_impossible_port_is_refused_with_a_reason(hook: Hook, port: str, proto: str, said: str) -> None:
    refused = {"_error_code": "InvalidPort", "_error_description": said}
    assert hook("open_port", port=port, proto=proto) == hook("close_port", port=port, proto=proto) == refused
    assert hook.told == []


def test_log_lines_are_assigned_to_their_unit(agent: Agent, hook: Hook, told: list[Json]) -> None:
    other = Hook(agent, NODES, told, step(unit="mysql/1", hook="start", relation=None))
    logs = {"_command": "LogCommand", "level": "20"}
    ask(agent.path, **logs, message="by its id", client_id=other.token)
    # Use another process, as for hooks: the session of this one may be outside its namespace and so have no id.
    program = SPEAK.split("\n", 1)[1] + "input(); print(ask('LogCommand', level='20', message='by its session'))"
    with subprocess.Popen(
        [PYTHON, "-IS", "-c", program],
        env={"JUJU_AGENT_SOCKET": agent.path, "JUJU_CLIENT_ID": "constant"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    ) as sender:
        other.context.session = sender.pid
        sender.communicate(b"\n", timeout=60)
    other.context.session = 0
    ask(agent.path, **logs, message="nobody's")
    other.end()
    ask(agent.path, **logs, message="the only one's", client_id="constant")
    hook.end()
    ask(agent.path, **logs, message="outside")
    assert [(each.get("unit"), each["text"]) for each in told] == [
        *(("mysql/1", "by its id"), ("mysql/1", "by its session"), (None, "nobody's")),
        *(("mysql/0", "the only one's"), (None, "outside")),
    ]
    for level in ("-5", " +20 "):  # the original accepts these as numbers
        assert ask(agent.path, _command="LogCommand", level=level, message="m") == {}
    assert [each["level"] for each in told[-2:]] == [-5, 20]
    for level in ("", "x", "--1", "+", "2_0", "٤", "9" * 40):
        assert ask(agent.path, _command="LogCommand", level=level, message="m") == UNKNOWN
    assert ask(agent.path, _command="LogCommand", level="20") == UNKNOWN


def test_values_longer_than_one_amp_field_work(hook: Hook) -> None:
    long = "ä" * 30_000
    assert (
        hook("relation_set", **{k: v.decode() for k, v in amp.spread("json_blob", json.dumps({"a": long})).items()})
        == {}
    )
    pieces = hook("relation_get", unit_name="mysql/0", setting_name="a")
    assert json.loads("".join(pieces["data" + end] for end in ("", ".1", ".2"))) == long
    assert hook.end()["relations"]["db:0"]["set"] == {"a": long}


def test_settings_above_the_size_limit_are_refused(hook: Hook) -> None:
    piece = "x" * 60_000
    answers = [hook.put(**{f"k{number}": piece}) for number in range(36)]
    refused = [number for number, answer in enumerate(answers) if answer]
    assert refused and refused[0] == 34  # 2 MiB
    assert {answers[number]["_error_code"] for number in refused} == {"TooLong"}
    assert hook.put("db:1", k=piece)["_error_code"] == "TooLong"  # the limit counts all relations together
    assert hook.put(k0="", k1="") == {}
    assert hook.put("db:1", k=piece) == {}
    answer = hook("relation_get", unit_name="mysql/0", setting_name="")
    assert len("".join(value for key, value in answer.items() if key.startswith("data"))) > 32 * 60_000
    assert hook.get("mysql/0", "k2") == piece
    assert len(hook.end()["relations"]["db:0"]["set"]) == 32


def test_a_thousand_concurrent_sets_all_succeed(hook: Hook) -> None:
    answers: list[dict[str, str]] = []
    threads = [
        threading.Thread(target=lambda number=number: answers.append(hook.put(**{f"k{number}": str(number)})))
        for number in range(1000)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == [{}] * 1000
    assert hook.end()["relations"]["db:0"]["set"] == {f"k{number}": str(number) for number in range(1000)}
    assert hook.asked == [list(OWN)]


def test_open_connections_do_not_block_new_ones(hook: Hook) -> None:
    log = box({"level": "20", "message": "m", "_ask": "7", "_command": "LogCommand"})
    kept = []
    try:
        for _ in range(unit_agent.MOST + 20):
            connection = socket.socket(socket.AF_UNIX)
            kept.append(connection)
            connection.settimeout(30)
            connection.connect(hook.agent.path)
            connection.sendall(log)
            assert read_box(connection) == {"_answer": "7"}
        kept[-1].sendall(log[:5])
        kept[-1].sendall(log[5:] + log)  # the rest of this command, and a complete one
        assert [read_box(kept[-1]) for _ in range(2)] == [{"_answer": "7"}] * 2
        assert hook.put(a="1") == {}
    finally:
        for connection in kept:
            connection.close()


def test_a_command_without_an_ask_key_gets_no_answer(hook: Hook) -> None:
    blob = json.dumps({"a": "1"})
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(hook.agent.path)
        connection.sendall(box({"client_id": hook.token, "json_blob": blob, "_command": "relation_set"}))
        connection.sendall(box({"client_id": hook.token, "_ask": "2", "_command": "is_leader"}))
        assert read_box(connection)["_answer"] == "2"
    assert hook.end()["relations"]["db:0"]["set"] == {"a": "1"}


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.0\r\n\r\n", b"\0\x01a\xff", b"\1\0", b"\0\1a\0\1b\0\1a\0\1c\0\0", b""])
def test_invalid_amp_closes_only_its_own_connection(hook: Hook, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(hook.agent.path)
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    latin = (
        box({"client_id": hook.token, "_ask": "1", "_command": "relation_set"})[:-2]
        + b'\0\x09json_blob\0\x0a{"a": "\xe4"}\0\0'
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(hook.agent.path)
        connection.sendall(latin)
        assert read_box(connection)["_error_code"] == "UNKNOWN"
    assert hook.put(a="1") == {}


def test_an_ending_hook_does_not_wait_for_a_pending_read(agent: Agent, told: list[Json]) -> None:
    asked = threading.Event()

    def never(node: list[str], over: threading.Event) -> Json:
        asked.set()
        assert over.wait(60)
        raise UnitError("NotReached", "the controller gave no answer")

    context = Context(UnitStep.from_json(step()), never, told.append)
    token = agent.begin(context)
    answers: list[Any] = []
    blob = json.dumps({"a": "1"})
    thread = threading.Thread(
        target=lambda: answers.append(ask(agent.path, client_id=token, json_blob=blob, _command="relation_set"))
    )
    thread.start()
    assert asked.wait(30)
    begun = time.monotonic()
    assert context.finish() == EMPTY
    assert time.monotonic() - begun < 20
    thread.join(60)
    assert answers[0]["_error_code"] == "NotReached"
    assert ask(agent.path, client_id=token, json_blob=blob, _command="relation_set")["_error_code"] == "NoSuchClient"
    assert context.finish() == EMPTY


@pytest.mark.skipif(os.geteuid() != 0, reason="not run on this machine: only root can become another user")
def test_another_user_is_refused(hook: Hook) -> None:
    # File permissions already refuse the user. They are opened below, so that the agent itself must refuse.
    become = "import os, socket, struct, sys, time, json; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    program = SPEAK.split("\n", 1)[1] + "print(ask('LogCommand', level='20', message='x'))"
    env = {"JUJU_AGENT_SOCKET": hook.agent.path, "JUJU_CLIENT_ID": hook.token}

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PYTHON, "-IS", "-c", text], env=env, capture_output=True, text=True, timeout=60)

    def as_nobody() -> subprocess.CompletedProcess[str]:
        return run(become + program)

    assert "PermissionError" in as_nobody().stderr
    path = Path(hook.agent.path)
    above = [each for each in path.parents if each != Path("/") and not each.stat().st_mode & 1]
    modes = {each: each.stat().st_mode & 0o7777 for each in above}
    try:
        for each in above:
            each.chmod(0o711)
        path.chmod(0o666)
        found = as_nobody()
    finally:
        for each, mode in modes.items():
            each.chmod(mode)
    assert found.returncode == 1
    assert "PermissionError" not in found.stderr
    assert hook.told == []
    assert run(program).stdout == "{'_answer': '1'}\n"


def test_the_agent_replaces_a_path_too_long_for_a_socket(tmp_path: Path, told: list[Json]) -> None:
    place = tmp_path / ("x" * 100)
    place.mkdir()
    agent = Agent(str(place), lambda level, text: None)
    try:
        hook = Hook(agent, NODES, told, step())
        assert hook.put(a="1") == {}
        assert os.stat(agent.folder).st_mode & 0o7777 == 0o700
        assert list(place.iterdir()) == []
    finally:
        agent.close()
