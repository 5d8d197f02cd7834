"""HTTP requests that the host sends."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Line, Name, NodeOptions, Pattern, Seconds, Text, node_type
from statecfg.resources.programs import http_requests, request_rules


@node_type
def http_request(
    name: Name,
    *,
    url: Line,
    method: str = "GET",
    headers: dict[str, Line] | None = None,
    body: Text | None = None,
    json: Any = None,
    status: list[int] | None = None,
    contains: Pattern | None = None,
    changes: bool | None = None,
    unless: dict[str, Any] | None = None,
    when_triggered: bool = False,
    undo: dict[str, Any] | None = None,
    effects: dict[str, Any] | None = None,
    verify_certificate: bool = True,
    ca: AbsolutePath | None = None,
    timeout: Seconds = 10.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Send an HTTP request from the host, and fail if the response is not the expected one. Redirects are not followed.

    A request that only reads is a check: plans, applies and `verify` send it, and it changes nothing. If the response
    in the plan is not the expected one, the apply changes nothing on this host. If a required node changes something
    first, the response is `known after` that node.

    A request with ``changes: true`` needs a guard in `unless`: a request that only reads. If its response is the
    expected one, the change is not needed. Otherwise the plan contains the request, and only the apply sends it. After
    that, the guard must say that the change is done. If a node in `restart_on` changes, statecfg sends the request
    regardless of its guard.

    Undo: when the node leaves the definition, statecfg sends `undo`, unless the result existed before. After that, the
    guard must say that the change is needed again. Without `undo`, statecfg only forgets the node. The host stores no
    secrets: if `undo` needs one, statecfg takes it from the playbook when you destroy that playbook.

    :param name: what the request is for; reports and requirements use this name
    :param url: the URL, with http or https
    :param method: GET, HEAD, POST, PUT, PATCH or DELETE
    :param headers: additional headers; values may be secrets. They apply to `unless` and `undo` too, unless these have
        their own
    :param body: the text to send; may contain secrets
    :param json: a value to send as JSON, instead of `body`
    :param status: the expected statuses of the response; default: 200 to 299
    :param contains: a regular expression that the response must contain (``^`` and ``$`` match at each line)
    :param changes: whether the request changes something. GET and HEAD only read by default; for other
        methods, it is required
    :param unless: a request that only reads, with `url` and optionally `method`, `headers`, `body`, `json`, `status`
        and `contains`; if its response is the expected one, the change is not needed
    :param when_triggered: instead of `unless`: send the request only if a node in `restart_on` changes
    :param undo: a request in the same form that reverts the change; its method is often DELETE
    :param effects: what the request changes on this host, as in [command](#command); default: nothing that another
        node reads
    :param verify_certificate: false: accept any certificate
    :param ca: a file of the host with certificates of authorities, instead of those that the host trusts
    :param timeout: seconds for one response

    In YAML::

        - http_request: register-shop
          url: http://127.0.0.1:8500/v1/agent/service/register
          method: PUT
          json: {Name: shop, Port: 8080}
          changes: true
          unless: {url: "http://127.0.0.1:8500/v1/agent/service/shop", contains: '"Port": *8080'}
          undo: {url: "http://127.0.0.1:8500/v1/agent/service/deregister/shop", method: PUT}

    In Python::

        http_request("shop-is-ready", url="http://127.0.0.1:8080/health", contains='"ready": true')
    """


http_request.identity([])  # a request of this name in another playbook is a different request
http_request.validate(request_rules.check)
http_request.implemented_by(http_requests)
