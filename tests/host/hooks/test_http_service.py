"""Our module for writing HTTP hooks: phases, errors and answers to unknown requests."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from statecfg.hooks.http import calls as http_hooks
from statecfg.hooks.http.calls import Failure, Reply
from statecfg.hooks.service import HookError, HookRequest, HookService

OBJECT = {"kind": "K", "status": {"s": 1}}


def post(url: str, body: Any, path: str = "/v1") -> tuple[int, str, str]:
    """Send a plain HTTP request. Return status, content type and body of the answer."""
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        line.request("POST", path, body if isinstance(body, bytes) else json.dumps(body))
        answer = line.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    finally:
        line.close()


@pytest.fixture
def service() -> HookService:
    made = HookService(form_factors=["deployment"])

    @made.pre_reconcile
    def shape(request: HookRequest) -> None:
        wish = request.object["status"].get("wish")
        if wish == "break":
            raise KeyError("left")
        if wish == "refuse":
            raise HookError("no", permanent=True, continue_=True, status=409)
        if wish == "change":
            request.status["wish"] = "granted"
            request.children["a"]["spec"] = {"size": 2}

    return made


def body(wish: str = "", phase: str = "pre-reconcile", factor: Any = None) -> dict[str, Any]:
    given = {"kind": "K", "status": {"wish": wish}}
    name = {"name": "deployment"} if factor is None else factor
    return {"formFactor": name, "phase": phase, "object": given, "children": {"a": {"kind": "A"}}}


@pytest.mark.parametrize(
    ("given", "path", "status", "text"),
    [
        (body(phase="bogus"), "/v1", 400, 'request for phase "bogus" not supported\n'),
        (body(phase="finalize"), "/v1", 400, 'request for phase "finalize" not supported\n'),
        (body(factor={"name": "bogus"}), "/v1", 400, 'request for formfactor "bogus" not supported\n'),
        (body(factor="bogus"), "/v1", 400, 'request for formfactor "bogus" not supported\n'),
        (body(), "/other", 404, 'no resource at path "/other"\n'),
        (b"{", "/v1", 400, "cannot decode request into HookRequest: "),
        (b"[]", "/v1", 400, "cannot decode request into HookRequest: it is not a JSON object\n"),
        (b"[" * 100_000, "/v1", 400, "cannot decode request into HookRequest: it is nested too deeply\n"),
        ({"object": 1}, "/v1", 400, "cannot decode request into HookRequest: `object` and `children` must"),
        (body(), "/v1", 200, "{}\n"),
        (body(), "/v1/?a=1", 200, "{}\n"),
        (body(factor="deployment"), "/v1", 200, "{}\n"),
        (body("refuse"), "/v1", 409, '{"message":"no","permanent":true,"continue":true}\n'),
        (body("break"), "/v1", 500, '{"message": "KeyError: \'left\'"}\n'),
    ],
)
def test_the_service_answers_each_request_with_status_and_text(
    service: HookService, given: Any, path: str, status: int, text: str
) -> None:
    with service.serving() as url:
        found = post(url, given, path)
    assert found[0] == status and found[2].startswith(text)
    assert found[1] == ("application/json" if text.startswith("{") else "text/plain; charset=utf-8")


def test_the_service_returns_changed_status_and_children(service: HookService) -> None:
    with service.serving() as url:
        given = {"kind": "K", "status": {"wish": "change"}}
        reply = http_hooks.call(url, 10, "deployment", "pre-reconcile", given, {"a": {"kind": "A"}})
    assert reply == Reply({"kind": "K", "status": {"wish": "granted"}}, {"a": {"kind": "A", "spec": {"size": 2}}})


def test_a_hook_error_reaches_the_caller_unchanged() -> None:
    service = HookService()

    @service.finalize
    def end(request: HookRequest) -> None:
        raise HookError("later")

    with service.serving() as url:
        assert http_hooks.call(url, 10, "x", "finalize", OBJECT).error == Failure("later")


def test_a_condition_replaces_the_one_of_the_same_type() -> None:
    request = HookRequest("pre-reconcile", "x", {"kind": "K"})
    request.condition("Warm", False, "COLD", "put it on the stove")
    request.condition("Full", True, "FULL")
    request.condition("Warm", True, "WARM")
    found = [(item["type"], item["status"], item["reason"]) for item in request.status["conditions"]]
    assert found == [("Full", "True", "FULL"), ("Warm", "True", "WARM")]
    assert "message" not in request.status["conditions"][1]


def test_the_service_answers_several_requests_at_once() -> None:
    service, met = HookService(), threading.Barrier(4, timeout=30)
    service.pre_reconcile(lambda request: met.wait())
    with service.serving() as url:
        threads = [threading.Thread(target=post, args=(url, body())) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert not met.broken


@pytest.mark.parametrize("length", ["", "-1", "x", str((64 << 20) + 1), "9" * 5000])
def test_a_request_with_a_missing_or_wrong_length_is_refused(service: HookService, length: str) -> None:
    with service.serving() as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=30) as line:
            line.sendall(f"POST /v1 HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
            started = time.monotonic()
            answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413 ") and time.monotonic() - started < 20
