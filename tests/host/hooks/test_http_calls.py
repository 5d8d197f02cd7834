"""Calls of HTTP hooks: requests are sent and answers are understood as in Scoby's engine."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from statecfg.dialects import yaml_text, yaml_tree
from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.http.calls import Failure, Reply
from tests.host.hooks.http.servers import answer, serving

OBJECT = {"kind": "K", "status": {"s": 1}}
CHILDREN = {"deployment": {"kind": "Deployment"}, "service": {"kind": "Service"}}
PHASES = ("pre-reconcile", "finalize")
CASES: list[dict[str, Any]] = yaml_tree.plain(yaml_text.load(Path(__file__).parent / "http/answers.yml", "answers"))


@pytest.mark.parametrize(
    ("case", "phase"),
    [
        pytest.param(case, phase, id=f"{case['name']} at {phase}")
        for case in CASES
        for phase in PHASES
        if case.get("phase", phase) == phase
    ],
)
def test_answers_are_understood_as_by_scoby(case: dict[str, Any], phase: str) -> None:
    headers = {"Content_Type": case["type"]} if "type" in case else {}
    with serving(answer(case["status"], case["body"], **headers)) as server:
        reply = http_hooks.call(server.url, 10, "deployment", phase, OBJECT, CHILDREN)
    error = None
    if "text" in case:
        error = Failure(
            case["text"].replace("URL", server.url), case.get("permanent", False), case.get("proceed", False)
        )
    assert reply == Reply(case.get("object"), case.get("children"), error)


@pytest.mark.parametrize("phase", PHASES)
def test_requests_are_sent_as_by_scoby(phase: str) -> None:
    with serving(answer(200)) as server:
        http_hooks.call(server.url, 10, "deployment", phase, OBJECT, {"é": {"kind": "K"}}, "key-1")
    (asked,) = server.asked
    assert asked.line == "POST /v1 HTTP/1.1"
    assert asked.headers["content-type"] == "application/json; charset=UTF-8"
    assert asked.headers["idempotency-key"] == "key-1"
    children = {"children": {"é": {"kind": "K"}}} if phase == "pre-reconcile" else {}
    assert asked.json() == {"formFactor": {"name": "deployment"}, "object": OBJECT, "phase": phase, **children}
    assert list(json.loads(asked.body)) == ["formFactor", "object", "phase", *children]


def test_an_empty_map_of_children_is_not_sent() -> None:
    assert "children" not in json.loads(http_hooks.request("playbook", "pre-reconcile", OBJECT, {}))


def test_a_refused_connection_is_a_permanent_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    text = f'executing hook request to {url}: Post "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'
    assert http_hooks.call(url, 10, "x", "finalize", OBJECT).error == Failure(text, permanent=True)


def test_an_unknown_host_name_is_a_permanent_failure() -> None:
    for host in ("no-such-host.invalid", "a" * 70 + ".invalid"):
        error = http_hooks.call(f"http://{host}/v1", 20, "x", "finalize", OBJECT).error
        assert error is not None and error.permanent and error.message.startswith("executing hook request to http://")
