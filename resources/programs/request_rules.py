"""Rules for HTTP requests. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.programs import command_rules

READING = ("GET", "HEAD")
METHODS = (*READING, "POST", "PUT", "PATCH", "DELETE")
_PART = ("url", "method", "headers", "body", "json", "status", "contains")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")  # a token: RFC 9110, 5.6.2


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of an `http_request` together.

    :raises ValueError: if they contradict each other, or one is invalid
    """
    check_request(attrs)
    changes, method = attrs.get("changes"), attrs.get("method") or "GET"
    if changes is None and method not in READING:
        raise Wrong(
            f"`changes` is required for {method}",
            "write changes: true and a guard in `unless`, or changes: false if it only reads",
        )
    if changes and attrs.get("unless") is None and not attrs.get("when_triggered"):
        raise Wrong(
            "this request has no guard: it would be sent in every apply",
            "write a request that only reads in `unless`, or when_triggered: true to send it only if a node in "
            "restart_on changes",
        )
    if attrs.get("unless") is not None and attrs.get("when_triggered"):
        raise ValueError("unless and when_triggered can't be combined")
    for name in ("unless", "undo", "when_triggered", "effects"):
        if not changes and attrs.get(name):
            raise ValueError(f"{name} requires changes: true")
    command_rules.check_effects(attrs.get("effects") or {})
    for name in ("unless", "undo"):
        if attrs.get(name) is not None:
            _check_part(attrs[name], name)


def _check_part(part: Mapping[str, Any], name: str) -> None:
    """Check the request in `unless` or `undo`."""
    for key in part:
        if key not in _PART:
            raise Wrong(f"{name} has no {show(key)}", did_you_mean(key, _PART) or f"it has: {', '.join(_PART)}")
    if part.get("url") is None:
        raise ValueError(f"{name}: url is required")
    try:
        check_request(part)
    except Wrong as problem:
        raise Wrong(f"{name}: {problem}", problem.help) from None
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None


def check_request(attrs: Mapping[str, Any]) -> None:
    """Check URL, method, headers, body and the expected response of a request.

    :raises ValueError: if one of them is not valid
    """
    check_url(attrs["url"])
    method = attrs.get("method") or "GET"
    if method not in METHODS:
        raise Wrong(f"{show(method)} is not a method", f"use one of {', '.join(METHODS)}")
    if attrs.get("body") is not None and attrs.get("json") is not None:
        raise ValueError("body and json can't be combined")
    if method in READING and (attrs.get("body") is not None or attrs.get("json") is not None):
        raise ValueError(f"a {method} request has no body")
    body, contains = attrs.get("body"), attrs.get("contains")
    if body is not None and not (isinstance(body, str) or hasattr(body, "reveal")):
        raise Wrong("body is not a string", "write text, or use json")
    if contains is not None:
        check_pattern(contains)
    headers = attrs.get("headers")
    if headers is not None and not isinstance(headers, Mapping):
        raise Wrong("headers is not a map", "write headers: {Name: value}")
    for name, value in (headers or {}).items():
        if not _HEADER.match(name):
            raise Wrong(f"headers: {show(name)} is not the name of a header", "use letters, digits and `-`")
        if not hasattr(value, "reveal") and (not isinstance(value, str) or re.search(r"[\r\n\0]", value)):
            raise Wrong(f"headers: the value of {name} is not one line of text", "put it in quotes")
    status = attrs.get("status")
    check_statuses(() if status is None else status)


def check_pattern(text: object) -> None:
    """Check a regular expression.

    :raises Wrong: if it is not valid
    """
    try:
        re.compile(text if isinstance(text, str) else "(")
    except re.error as problem:
        raise Wrong(f"contains is not a valid regular expression: {problem}") from None


def check_url(url: object) -> None:
    """Check a URL. One with a secret is checked on the host.

    :raises Wrong: if it is not one of HTTP, or contains a password
    """
    if hasattr(url, "reveal"):
        return
    if not isinstance(url, str) or not re.match(r"https?://[^/\s]+[^\s]*\Z", url):
        raise Wrong(f"{show(url)} is not a URL of HTTP", "write a URL such as http://127.0.0.1:8080/health")
    if "@" in url.split("/")[2]:
        raise Wrong("a URL with a user or a password", "write the header Authorization in `headers`, with a secret")


def check_statuses(statuses: Sequence[Any]) -> None:
    """Check the expected statuses of a response.

    :raises Wrong: if one is not a status
    """
    if isinstance(statuses, (str, int)):
        raise Wrong("status is not a list", f"write [{statuses}]")
    for status in statuses:
        if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 599:
            raise Wrong(f"{show(status)} is not a status of HTTP", "write numbers from 100 to 599")
