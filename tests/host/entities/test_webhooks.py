"""Webhooks: requests, their signatures, and the effect of answers on tasks. The services are real, on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from statecfg.entities import behaviors, payload
from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.webhook import signature
from statecfg.playbook import project
from tests.host.entities.invoking import BEHAVIOR, TOKEN, TYPE, Site, invocation, message
from tests.host.hooks.http.servers import Asked, answer, serving

KEY = "a secret, shared: übung"
TASK = "application/vnd.vmware.vcloud.task+json"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def hook(url: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "WebHook", "id": "tell", "href": url, "_internal_key": KEY, "execution_properties": properties
    }  # fmt: skip


def verified(asked: Asked, url: str, key: str = KEY) -> bool:
    """Verify a request like its receiver. The header has the form name="value",name="value",…"""
    header = asked.headers["x-vcloud-signature"]
    if not re.fullmatch(r'[a-z]+="[^"]*"(,[a-z]+="[^"]*")*', header):
        return False
    given = dict(re.findall(r'([a-z]+)="([^"]*)"', header))
    parts = urlsplit(url)
    # Like the published verifier, parse the body as JSON and write it again.
    body = json.dumps(json.loads(asked.body), ensure_ascii=False, separators=(",", ":")).encode()
    values = {
        "host": parts.hostname,
        "date": asked.headers["date"],
        "(request-target)": f"post {parts.path}",
        "digest": "SHA-512=" + base64.b64encode(hashlib.sha512(body).digest()).decode(),
    }
    text = "\n".join(f"{name}: {values[name]}" for name in given["headers"].split(" "))
    expected = base64.b64encode(hmac.new(key.encode(), text.encode(), hashlib.sha512).digest()).decode()
    return bool(given["algorithm"] == "hmac-sha512" and given["signature"] == expected)


def test_a_request_is_signed_and_complete(site: Site) -> None:
    entity = {"name": "böse", "none": None, "list": [1, None, {"x": None}], "deep": {"n": 1.5, "gone": None}}
    with serving(answer(200, "done", Content_Type="text/plain")) as server:
        execution = hook(server.url, actAsToken=True, _secure_token="t0psecret", _internal_more="x")
        asked_for = invocation(execution, entity, arguments={"x": 7}, metadata={"y": 6})
        assert site.run(asked_for) == BehaviorResult(True, "done")
    (asked,) = server.asked
    assert asked.line.startswith("POST /v1 HTTP/1.1")
    assert verified(asked, server.url) and not verified(asked, server.url, "another key")
    assert (
        asked.headers["x-vcloud-digest"] == "SHA-512=" + base64.b64encode(hashlib.sha512(asked.body).digest()).decode()
    )
    assert asked.headers["content-type"] == "application/json"
    request = asked.json()["_metadata"].pop("requestId")
    assert re.fullmatch(r"[0-9a-f-]{36}", request)
    assert asked.json() == {
        "entityId": asked_for.entity.id,
        "typeId": TYPE,
        "arguments": {"x": 7},
        "entity": {"name": "böse", "list": [1, None, {}], "deep": {"n": 1.5}},
        "_execution_properties": {"actAsToken": True, "_secure_token": "t0psecret"},
        "_metadata": {
            "requestId": request,
            "executionId": "tell",
            "behaviorId": BEHAVIOR,
            "executionType": "WebHook",
            "taskId": "77",
            "invocationId": "6f1d",
            "apiVersion": "39.0",
            "execution": {"href": server.url},
            "invocation": {"y": 6},
            "actAsToken": TOKEN,
        },
    }
    assert b": " not in asked.body and KEY.encode() not in asked.body


def test_the_signature_matches_a_known_example() -> None:
    # openssl made both values: dgst -sha512 -binary | base64, and with -hmac verySecretKey for the four lines.
    date = "Thu, 01 Oct 2020 12:57:31 GMT"
    headers = signature("https://example.com:8443/hooks/1?x=y", b"{}", "verySecretKey", date)
    names = "host date (request-target) digest"
    digest = "J8dGcK23UHX60FjVzq97IMTneGyDuuijL2Jvl4KvNMmjPCBG72D9Knh403jin+yFGAa72aZ4ePOp8c2kgwdj/Q=="
    mac = "wZLGzBzFF2zm68/Y/KBU5OQQE5vg1S3UtqWn32BvKB7xgsmv8eFzNkZmfigKApvh33F3+JeyHJdZi2GBVUOmkQ=="
    assert headers == {
        "Date": date,
        "x-vcloud-digest": f"SHA-512={digest}",
        "x-vcloud-signature": f'algorithm="hmac-sha512",headers="{names}",signature="{mac}"',
    }


# Templates


def test_a_template_sets_the_body_and_headers(site: Site) -> None:
    content = (
        "<#-- as the document writes it -->"
        '<#assign header_Authorization = "Bearer ${_execution_properties._secure_token}"/>'
        '<#assign header_Content\\-Type = "application/vnd.acme+json" />'
        '{"text": "${_metadata.behaviorId} on ${entityId}: ${arguments.greeting?json_string} ${entity["a b"][1].c} '
        '${entity.none!"-"} ${entity.on}", "all": ${arguments_string}}'
    )
    with serving(answer(200)) as server:
        execution = hook(server.url, template={"content": content}, _secure_token="t0psecret")
        entity = {"a b": [0, {"c": 2.5}], "on": True}
        assert site.run(invocation(execution, entity, arguments={"greeting": 'say "hi"'})) == BehaviorResult(True, "")
    (asked,) = server.asked
    said = f'{BEHAVIOR} on {invocation({}).entity.id}: say "hi" 2.5 - true'
    assert asked.json() == {"text": said, "all": {"greeting": 'say "hi"'}}
    assert asked.headers["authorization"] == "Bearer t0psecret"
    assert asked.headers["content-type"] == "application/vnd.acme+json"
    digest = base64.b64encode(hashlib.sha512(asked.body).digest()).decode()
    assert asked.headers["x-vcloud-digest"] == f"SHA-512={digest}"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("<#if x>1</#if>", "the template has '<#if x>'"),
        ("${entity.a + 1}", "is not supported"),
        ("${entity.a?upper_case}", "is not supported"),
        ("${entity.a", "the template has '${entity.a'"),
        ('<#assign header_Host = "x"/>', "can't set the header 'Host'"),
        ('<#assign header_x-vcloud-signature = "x"/>', "can't set the header"),
        ("<#assign a = \"<#assign b = 'c'/>\"/>", "contains another <#assign>"),
    ],
)
def test_an_invalid_template_is_refused(site: Site, template: str, said: str) -> None:
    (found,) = behaviors.check(hook("https://example.com/", template={"content": template}), project.find(site.root))
    assert said in found


def test_a_template_that_does_not_fit_the_entity_fails(site: Site) -> None:
    for template, said in (
        ("${entity.a.b}", "has no value here, and no default"),
        ("${entity}", "is not a single value"),
        ('<#assign header_X = "${entity.text}"/>', "a value that headers can't have"),
    ):
        execution = hook("http://127.0.0.1:9/", template={"content": template})
        assert said in message(site.run(invocation(execution, {"text": "a\r\nHost: b"})))


def test_values_are_not_expanded_as_templates() -> None:
    body, _ = payload.rendered("${entity.a}", {"entity": {"a": "${entity.b} <#if>"}, "arguments": {}})
    assert body == b"${entity.b} <#if>"


def test_a_long_template_is_checked_quickly() -> None:
    begun = time.process_time()
    for text in ("<#assign " + "a" * 20000, "${" + "a." * 20000, '<#assign a = "' + "\\" * 20001, "<#--" * 5000):
        with pytest.raises(payload.TemplateError):
            payload.check(text)
    assert time.process_time() - begun < 5


# Answers


@pytest.mark.parametrize(
    ("talk", "outcome"),
    [
        (answer(200, "text", Content_Type="text/html; charset=utf-8"), BehaviorResult(True, "text")),
        (answer(200, "no type"), BehaviorResult(True, "no type")),
        (
            answer(200, '{"status": "success", "result": {"resultContent": "r"}}', Content_Type=TASK),
            BehaviorResult(True, "r"),
        ),
        (
            answer(
                200,
                '{"status": "error", "error": {"majorErrorCode": 404, "minorErrorCode": "E", "message": "m"}}',
                Content_Type=f"{TASK};charset=utf-8",
            ),
            BehaviorResult(False, None, {"majorErrorCode": 404, "minorErrorCode": "E", "message": "m"}),
        ),
    ],
    ids=["text", "no content type", "success", "error"],
)  # fmt: skip
def test_the_answer_decides_the_outcome(site: Site, talk: Callable[..., None], outcome: BehaviorResult) -> None:
    with serving(talk) as server:
        assert site.run(invocation(hook(server.url))) == outcome


def test_an_answer_updates_details_and_progress_of_the_task(site: Site) -> None:
    said = {"status": "success", "details": "d", "operation": "o", "progress": 70, "result": {"resultContent": "r"}}
    with serving(answer(200, json.dumps(said), Content_Type=TASK)) as server:
        assert site.run(invocation(hook(server.url))).ok
    assert site.news == [{"details": "d", "operation": "o", "progress": 70}]


def test_answers_with_values_that_no_store_holds_are_cleaned(site: Site) -> None:
    odd = r'"\ud800a\u0000"'
    result = f'{{"status": "success", "result": {{"resultContent": {{"k\\u0000": [{odd}, NaN, 1e999]}}}}}}'
    with serving(answer(200, result, Content_Type=TASK)) as server:
        assert site.run(invocation(hook(server.url))).result == {"k": ["?a", "nan", "inf"]}
    error = f'{{"status": "error", "error": {{"majorErrorCode": "²", "message": {odd}}}}}'
    with serving(answer(200, error, Content_Type=TASK)) as server:
        found = site.run(invocation(hook(server.url)))
    assert found.error == {"majorErrorCode": 500, "minorErrorCode": "RDE_WEBHOOK_FAILED", "message": "?a"}
    deep = f'{{"status": "success", "result": {"[" * 600}{"]" * 600}}}'
    with serving(answer(200, deep, Content_Type=TASK)) as server:
        assert message(site.run(invocation(hook(server.url)))) == "the result is nested too deeply"


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (answer(201, "made"), "the webhook answered 201: made"),
        (answer(500, "t0psecret broke"), "the webhook answered 500: <secret _secure_token> broke"),
        (answer(302, "", Location="/v1/other"), "the webhook answered 302 (redirects are not followed)"),
        (answer(200, "{}", Content_Type="application/json"), "answer has the content type 'application/json'"),
        (answer(200, "{}", Content_Type=TASK), "the webhook's answer does not complete the task"),
        (answer(200, "[", Content_Type=TASK), "the webhook's answer is not a task in JSON: ["),
        (answer(200, "x" * 70_000, Content_Type="text/plain"), "its body is larger than 65,536 bytes"),
        (answer(200, "x", Content_Type="multipart/mixed"), "has 0 parts, and none completes the task"),
        (lambda line, asked: line.close(), "Post \"http://127.0.0.1:"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_an_error_without_secrets(site: Site, talk: Callable[..., None], said: str) -> None:
    with serving(talk) as server:
        found = site.run(invocation(hook(server.url, _secure_token="t0psecret")))
    assert said in message(found)
    assert not found.ok and len(server.asked) == 1


def test_only_administrators_see_the_address_of_a_silent_webhook(site: Site) -> None:
    with serving(lambda line, asked: line.close()) as server:
        found = site.run(invocation(hook(server.url)))
    assert server.url in message(found)
    assert found.public == "The webhook did not answer. Administrators see the reasons in the task's details."


def parts(*bodies: str, blank: str = "\r\n", kind: str = TASK) -> str:
    lines = [f"--limit\r\nContent-Type: {kind}\r\n{blank}{body}\r\n" for body in bodies]
    return "".join(lines)


def test_updates_arrive_one_by_one_until_the_task_is_complete(site: Site) -> None:
    seen: list[float] = []

    def talk(line: socket.socket, _: Asked) -> None:
        line.sendall(b"HTTP/1.1 200 X\r\nContent-Type: multipart/form-data; boundary=limit\r\n\r\n")
        for progress in (20, 60):
            line.sendall(parts(json.dumps({"progress": progress, "details": f"at {progress}"})).encode())
            line.sendall(b"--limit\r\n")
            deadline = time.monotonic() + 30
            while not any(each.get("progress") == progress for each in site.news) and time.monotonic() < deadline:
                time.sleep(0.01)
            seen.append(time.monotonic() < deadline)
            line.sendall(f"Content-Type: {TASK}\r\n\r\n{{}}\r\n".encode())
        line.sendall(parts('{"status": "success", "result": {"resultContent": "r"}}', '{"status": "error"}').encode())
        line.sendall(b"--limit--\r\n")
        line.recv(1)  # the worker does not wait after the part that completes the task

    with serving(talk) as server:
        assert site.run(invocation(hook(server.url))) == BehaviorResult(True, "r")
    assert seen == [True, True]


@pytest.mark.parametrize("end", ["--limit--\r\n", "--limit\r\n", ""])
def test_parts_without_blank_line_or_end_are_accepted(site: Site, end: str) -> None:
    """The API's documentation shows parts without the blank line."""
    body = parts('{"progress": 50}', '{"status": "success", "result": {"resultContent": "r"}}', blank="") + end
    with serving(answer(200, body, Content_Type='multipart/form-data; boundary="limit"')) as server:
        assert site.run(invocation(hook(server.url))) == BehaviorResult(True, "r")
    assert {"progress": 50} in site.news


def test_only_a_final_status_or_text_part_completes_the_task(site: Site) -> None:
    body = parts('{"progress": 50}', '{"status": "running"}') + "--limit--\r\n"
    with serving(answer(200, body, Content_Type="multipart/mixed; boundary=limit")) as server:
        assert "has 2 parts, and none completes the task" in message(site.run(invocation(hook(server.url))))
    text = parts("plain", kind="text/plain")
    with serving(answer(200, text, Content_Type="multipart/mixed; boundary=limit")) as server:
        assert site.run(invocation(hook(server.url))) == BehaviorResult(True, "plain")


def test_a_webhook_that_never_answers_times_out(site: Site, silent: int) -> None:
    begun = time.monotonic()
    found = site.run(invocation(hook(f"http://127.0.0.1:{silent}/", invocation_timeout=1)))
    assert "context deadline exceeded" in message(found) and time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"href": "http://example.com/"}, "https URL, or an http URL of this machine's loopback"),
        ({"href": "https://user:pw@example.com/"}, "it must be an https URL"),
        ({"href": "https://example.com:port/"}, "it must be an https URL"),
        ({"href": "https://example.com/\r\nX: y"}, "it must be an https URL"),
        ({"href": None}, "it must be an https URL"),
        ({"_internal_key": ""}, "_internal_key is missing"),
        ({"execution_properties": {"template": {"content": 1}}}, "template.content is not a string"),
    ],
)  # fmt: skip
def test_a_wrong_webhook_definition_is_refused(site: Site, change: dict[str, Any], said: str) -> None:
    (found,) = behaviors.check({**hook("https://example.com/hook"), **change}, project.find(site.root))
    assert said in found


def test_right_webhook_definitions_are_accepted(site: Site) -> None:
    for url in ("https://example.com/x", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]:8080/x"):
        assert behaviors.check(hook(url), project.find(site.root)) == []
