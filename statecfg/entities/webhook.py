"""Webhooks as behaviors: one signed POST. The answer is the result, or reports the progress of the task in parts.

Source: VMware's documentation of WebHook behaviors, and its published verifier, which accepts no space after the commas
of the signature header, the host without its port, and the body as compact JSON without nulls.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, TypedDict
from urllib.parse import SplitResult, urlsplit

from statecfg.entities import disclosure, payload
from statecfg.entities.invocation import BehaviorResult, Invocation, TaskError, Update
from statecfg.entities.work import major_code
from statecfg.hooks.http.exchange import Answer, Unanswered, exchange

API_VERSION = "39.0"
LARGEST = 64 << 10  # bytes of an answer
SHOWN = 500  # characters of an answer that an error shows
TASK = "application/vnd.vmware.vcloud.task+json"
FAILED = "RDE_WEBHOOK_FAILED"
SIGNED = "host date (request-target) digest"
_OVER = ("success", "error", "aborted", "canceled")


class RequestMetadata(TypedDict):
    """What a request says about its behavior and invocation."""

    executionId: str | None
    behaviorId: str
    executionType: str | None
    taskId: str
    invocationId: str
    requestId: str
    apiVersion: str
    execution: Mapping[str, Any]
    invocation: Mapping[str, Any]
    actAsToken: str | None


class Data(TypedDict):
    """The data of a request: its body, or the values of the behavior's template."""

    entityId: str
    typeId: str
    arguments: Mapping[str, Any]
    entity: Mapping[str, Any]
    _execution_properties: Mapping[str, Any]
    _metadata: RequestMetadata


def problems(execution: Mapping[str, Any]) -> list[str]:
    """Return the problems of a webhook's execution."""
    wrong = []
    href = execution.get("href")
    if not isinstance(href, str) or not _may_call(href):
        wrong.append(f"href is {href!r}: it must be an https URL, or an http URL of this machine's loopback")
    key = execution.get("_internal_key")
    if not isinstance(key, str) or not key:
        wrong.append(
            "_internal_key is missing: the secret that signs requests, which the server of the webhook also has"
        )
    template = (execution.get("execution_properties") or {}).get("template")
    content = template.get("content") if isinstance(template, Mapping) else template
    if content is not None and not isinstance(content, str):
        wrong.append("template.content is not a string")
    elif content:
        try:
            payload.check(content)
        except payload.TemplateError as error:
            wrong.append(str(error))
    return wrong


def _may_call(href: str) -> bool:
    try:
        parts = urlsplit(href)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    plain = href.isascii() and href.isprintable() and " " not in href
    if not plain or not host or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _loopback(host))


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(
    invocation: Invocation, seconds: float, update: Callable[[Update], None], token: str | None = None
) -> BehaviorResult:
    """Send the request and return the outcome.

    :param seconds: time limit for the whole exchange
    :param update: receives progress of the task from the server
    :param token: the short-lived token of `actAsToken`
    """
    href = str(invocation.execution["href"])
    try:
        body, headers = _request(invocation, token)
    except payload.TemplateError as error:
        return _failed(str(error))
    reading = _Reading(update)
    signed = signature(href, body, str(invocation.execution["_internal_key"]))
    try:
        answer = exchange(href, body, {**headers, **signed}, seconds, (LARGEST, LARGEST), False, reading.listen)
    except Unanswered as error:  # the message names the URL
        return replace(_failed(str(error)), public=f"The webhook did not answer. {disclosure.ASK}")
    return reading.outcome(answer)


def _request(invocation: Invocation, token: str | None) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a request, before signing.

    :raises TemplateError: the template does not fit the data, or is invalid
    """
    properties = dict(invocation.execution.get("execution_properties") or {})
    template = properties.pop("template", None)
    data = _data(invocation, properties, token)
    content = template.get("content") if isinstance(template, Mapping) else template
    headers = {"Content-Type": "application/json"}
    if not content:
        return payload.compact(data), headers
    body, own = payload.rendered(content, data)
    named = {name.lower() for name in own}
    return body, {**{name: value for name, value in headers.items() if name.lower() not in named}, **own}


def _data(invocation: Invocation, properties: Mapping[str, Any], token: str | None) -> Data:
    execution = invocation.execution
    visible = {key: value for key, value in execution.items() if key not in ("execution_properties", "type", "id")}
    return {
        "entityId": invocation.entity.id,
        "typeId": invocation.entity.type,
        "arguments": dict(invocation.arguments),
        "entity": dict(invocation.entity.content),
        "_execution_properties": _public(properties),
        "_metadata": {
            "executionId": execution.get("id"),
            "behaviorId": invocation.behavior.ref,
            "executionType": execution.get("type"),
            "taskId": invocation.tasks.own.rpartition(":")[2],
            "invocationId": invocation.id,
            "requestId": str(uuid.uuid4()),
            "apiVersion": API_VERSION,
            "execution": _public(visible),
            "invocation": dict(invocation.metadata),
            "actAsToken": token,
        },
    }


def _public(value: Any) -> Any:
    """Return a value without its `_internal_` keys, which are never sent."""
    if isinstance(value, Mapping):
        return {key: _public(item) for key, item in value.items() if not key.startswith("_internal_")}
    return [_public(item) for item in value] if isinstance(value, list) else value


def signature(href: str, body: bytes, key: str, date: str | None = None) -> dict[str, str]:
    """Return the headers that sign a POST: Date, x-vcloud-digest and x-vcloud-signature.

    :param date: as an HTTP date; None for now
    """
    parts = urlsplit(href)
    date = date or formatdate(usegmt=True)
    digest = f"SHA-512={base64.b64encode(hashlib.sha512(body).digest()).decode()}"
    lines = f"host: {_host(parts)}\ndate: {date}\n(request-target): post {parts.path or '/'}\ndigest: {digest}"
    mac = base64.b64encode(hmac.digest(key.encode(), lines.encode(), "sha512")).decode()
    signed = f'algorithm="hmac-sha512",headers="{SIGNED}",signature="{mac}"'
    return {"Date": date, "x-vcloud-digest": digest, "x-vcloud-signature": signed}


def _host(parts: SplitResult) -> str:
    return re.sub(r":\d*\Z", "", parts.netloc)


def _failed(message: str, code: int = 500) -> BehaviorResult:
    return BehaviorResult.failed(message, FAILED, code)


@dataclass
class _Reading:
    """Reads an answer as it arrives. Each complete part of a multipart answer is an update."""

    update: Callable[[Update], None]
    parts: _Parts | None = None
    done: BehaviorResult | None = None
    seen: int = 0

    def listen(self, content_type: str, piece: bytes) -> bool:
        """Process a piece of the body; return whether the task has ended."""
        boundary = _boundary(content_type)
        if not boundary:
            return False
        self.parts = self.parts or _Parts(boundary)
        for part in self.parts.feed(piece):
            self._part(part)
        return self.done is not None

    def _part(self, part: bytes) -> None:
        if self.done is None:
            self.seen += 1
            content_type, body = _split(part)
            self.done = self._reported(content_type, body)

    def _reported(self, content_type: str, body: bytes) -> BehaviorResult | None:
        """Return the outcome that an answer, or one of its parts, reports; None if the task continues."""
        media = _media(content_type)
        if media == TASK:
            return self._task(body)
        if media.startswith("text/") or not content_type.strip():
            return BehaviorResult(True, body.decode("utf-8", "replace"))
        return _failed(f"the webhook's answer has the content type {media!r}; it must be text, {TASK} or multipart")

    def _task(self, body: bytes) -> BehaviorResult | None:
        # Not `strict_json`: the service has ended the task already. So statecfg does not report a failure, and keeps as
        # much of its result as the store can hold, see `work.storable`.
        try:
            task = json.loads(body)
        except (ValueError, RecursionError):
            task = None
        if not isinstance(task, dict):
            return _failed(f"the webhook's answer is not a task in JSON: {_clip(body)}")
        status = task.get("status")
        result = task.get("result")
        content = result.get("resultContent") if isinstance(result, dict) else result
        self.update(_progress(task))
        if status == "success":
            return BehaviorResult(True, content)
        if status in _OVER:
            return BehaviorResult(False, content, _error(task.get("error"), str(status)))
        return None

    def outcome(self, answer: Answer) -> BehaviorResult:
        """Return the outcome of the whole answer."""
        if answer.status != 200:
            text = f": {_clip(answer.body)}" if answer.body else ""
            follow = " (redirects are not followed)" if 300 <= answer.status < 400 else ""
            return _failed(f"the webhook answered {answer.status}{follow}{text}", answer.status)
        if self.done is None and answer.cut:
            return _failed(f"the webhook's answer could not be read: {answer.cut}")
        if _media(answer.content_type).startswith("multipart/"):
            for part in self.parts.rest() if self.parts is not None else ():
                self._part(part)
            return self.done or _failed(f"the webhook's answer has {self.seen} parts, and none completes the task")
        outcome = self._reported(answer.content_type, answer.body)
        return outcome or _failed("the webhook's answer does not complete the task: it has no status that ends it")


def _progress(task: Mapping[str, Any]) -> Update:
    """Return the valid progress values of a task."""
    news: Update = {}
    if isinstance(task.get("details"), str):
        news["details"] = task["details"]
    if isinstance(task.get("operation"), str):
        news["operation"] = task["operation"]
    progress = task.get("progress")
    if isinstance(progress, int) and not isinstance(progress, bool) and 0 <= progress <= 100:
        news["progress"] = progress
    return news


def _error(error: Any, status: str) -> TaskError:
    fields = error if isinstance(error, dict) else {}
    return {
        "majorErrorCode": major_code(fields.get("majorErrorCode")),
        "minorErrorCode": str(fields.get("minorErrorCode") or FAILED),
        "message": str(fields.get("message") or f"the webhook ended the task with status {status}"),
    }


def _media(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _boundary(content_type: str) -> bytes:
    """Return the boundary of a multipart content type, b"" if it has none."""
    match = re.search(r';\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))', content_type, re.IGNORECASE)
    if not _media(content_type).startswith("multipart/") or match is None:
        return b""
    return (match[1] or match[2]).encode("utf-8", "replace")


@dataclass
class _Parts:
    """Splits a multipart body as it arrives."""

    boundary: bytes
    unread: bytes = b""
    lines: list[bytes] | None = None  # of the part being read; None before the first
    over: bool = field(default=False)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Process a piece; yield each part that is complete now."""
        *lines, self.unread = (self.unread + piece).split(b"\n")
        for line in lines:
            yield from self._line(line + b"\n")

    def rest(self) -> Iterator[bytes]:
        """Yield the last part, if only the end of the body ends it."""
        yield from self._line(self.unread)
        if self.lines and not self.over:
            yield b"".join(self.lines)

    def _line(self, line: bytes) -> Iterator[bytes]:
        text = line.rstrip()
        if text in (b"--" + self.boundary, b"--" + self.boundary + b"--"):
            if self.lines and not self.over:
                yield b"".join(self.lines)
            self.lines, self.over = [], self.over or text.endswith(self.boundary + b"--")
        elif self.lines is not None:
            self.lines.append(line)


def _split(part: bytes) -> tuple[str, bytes]:
    """Return the content type and the body of a part.

    The blank line between them may be missing, as in VMware's documentation.
    """
    content_type = ""
    while (header := re.match(rb"[ \t]*(content-[a-z-]+)[ \t]*:([^\r\n]*)\r?\n", part, re.IGNORECASE)) is not None:
        if header[1].lower() == b"content-type":
            content_type = header[2].decode("latin-1").strip()
        part = part[header.end() :]
    return content_type, re.sub(rb"\A\r?\n", b"", re.sub(rb"\r?\n\Z", b"", part))


def _clip(body: bytes) -> str:
    text = body.decode("utf-8", "replace").strip()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
