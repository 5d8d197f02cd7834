"""Errors, XML for clients of the older API, and the headers of every response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from statecfg.entities.document import Shape
from statecfg.entities.model import Principal, org_id
from statecfg.entities.problems import ApiError
from statecfg.server import versions
from statecfg.server.request import ApiRequest

REQUEST_ID = "X-VMWARE-VCLOUD-REQUEST-ID"
TASK_LOCATION = "X-VMWARE-VCLOUD-TASK-LOCATION"
NAMESPACE = "http://www.vmware.com/vcloud/v1.5"
VERSIONS_NAMESPACE = "http://www.vmware.com/vcloud/versions"
TASK_XML = "application/vnd.vmware.vcloud.task+xml"
ERROR_XML = "application/vnd.vmware.vcloud.error+xml"
VERSIONS_XML = "application/vnd.vmware.vcloud.versions+xml"
SESSION_XML = "application/vnd.vmware.vcloud.session+xml"
ORG_XML = "application/vnd.vmware.vcloud.org+xml"
ORGS_XML = "application/vnd.vmware.vcloud.orgList+xml"
# Allow scripts, styles and connections only from this server; forbid frames, caching, guessed types and referrers to
# other sites. With `no-referrer`, a browser would send forms, such as the login form, with `Origin: null`.
SECURITY: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def error(refused: ApiError, request: HttpRequest) -> Response:
    """Return the response to a refused request: JSON, or XML if a client of the older API expects it."""
    if request.scope["path"].startswith("/api/") and _wants_xml(request.headers):
        attributes = {"xmlns": NAMESPACE, **_error(refused.message, refused.status, refused.minor_code)}
        return Response(_document("Error", attributes), refused.status, refused.headers, ERROR_XML)
    value = {"minorErrorCode": refused.minor_code, "message": refused.message, "stackTrace": None}
    return JSONResponse(value, refused.status, refused.headers)


def _wants_xml(headers: Mapping[str, str]) -> bool:
    try:
        return versions.accepted(headers.get("accept", "")).xml
    except versions.Unsupported:
        return "xml" in headers.get("accept", "").lower()


def location(request: ApiRequest, task_id: str) -> str:
    """Return the URL of a task.

    :param task_id: its URN
    """
    return f"{request.base}/api/task/{task_id.rpartition(':')[2]}"


def _error(message: str, major: int, minor: str) -> dict[str, str]:
    return {"message": message, "majorErrorCode": str(major), "minorErrorCode": minor, "stackTrace": ""}


def versions_json(base: str) -> Shape:
    """Return the supported versions with their login URLs."""
    entries = [
        {"version": str(version), "loginUrl": _login(base), "deprecated": False} for version in versions.SUPPORTED
    ]
    return {"versionInfo": entries}


def versions_xml(base: str) -> bytes:
    """Return the supported versions with their login URLs as an XML document."""
    entries = (
        f"<VersionInfo><Version>{version}</Version><LoginUrl>{escape(_login(base))}</LoginUrl>"
        f"<ProviderLoginUrl>{escape(_login(base))}/provider</ProviderLoginUrl></VersionInfo>"
        for version in versions.SUPPORTED
    )
    return _document("SupportedVersions", {"xmlns": VERSIONS_NAMESPACE}, "".join(entries))


def _login(base: str) -> str:
    return f"{base}/cloudapi/1.0.0/sessions"


def session(request: ApiRequest, caller: Principal) -> Shape:
    """Return the caller's session. Clients read from it whether they are administrators."""
    base = request.base
    links = [{"rel": "down", "type": _type("orgList", request), "href": f"{base}/api/org/"}]
    links.append({"rel": "down", **_org(request, caller.org)})
    links.append({"rel": "remove", "href": f"{base}/api/session"})
    own = {"type": _type("session", request), "href": f"{base}/api/session", "user": caller.name, "userId": caller.id}
    return {**own, "org": caller.org, "roles": caller.role, "link": links}


def session_xml(value: Mapping[str, Any]) -> bytes:
    """Return a session as an XML document.

    :param value: the result of `session`
    """
    links = "".join(_element("Link", link) for link in value["link"])
    return _document("Session", {"xmlns": NAMESPACE, **{key: value[key] for key in value if key != "link"}}, links)


def orgs(request: ApiRequest, names: Iterable[str]) -> Shape:
    """Return a list of organizations."""
    own = {"type": _type("orgList", request), "href": f"{request.base}/api/org/"}
    return {**own, "org": [_org(request, name) for name in names]}


def orgs_xml(value: Mapping[str, Any]) -> bytes:
    """Return a list of organizations as an XML document.

    :param value: the result of `orgs`
    """
    inside = "".join(_element("Org", org) for org in value["org"])
    return _document("OrgList", {"xmlns": NAMESPACE, "type": value["type"], "href": value["href"]}, inside)


def org(request: ApiRequest, name: str) -> dict[str, str]:
    """Return an organization."""
    return {**_org(request, name), "fullName": name}


def org_xml(value: Mapping[str, str]) -> bytes:
    """Return an organization as an XML document.

    :param value: the result of `org`
    """
    inside = _element("FullName", {}, _text(value["fullName"]))
    return _document("Org", {"xmlns": NAMESPACE, **{key: value[key] for key in value if key != "fullName"}}, inside)


def _org(request: ApiRequest, name: str) -> dict[str, str]:
    id = org_id(name)
    href = f"{request.base}/api/org/{id.rpartition(':')[2]}"
    return {"type": _type("org", request), "name": name, "href": href, "id": id}


def _type(name: str, request: ApiRequest) -> str:
    return f"application/vnd.vmware.vcloud.{name}+{'xml' if request.wants_xml else 'json'}"


def task_xml(task: Mapping[str, Any]) -> bytes:
    """Return a task as an XML document.

    :param task: its JSON value
    """
    first = ("href", "type", "id", "operationKey", "name", "status")
    names = (*first, "operation", "operationName", "startTime", "endTime")
    attributes = {name: str(task[name]) for name in names if task.get(name) is not None}
    inside = [_reference("Owner", task.get("owner"))]
    problem = task.get("error")
    if problem:
        codes = problem.get("majorErrorCode") or 500, str(problem.get("minorErrorCode") or "")
        inside.append(_element("Error", _error(str(problem.get("message") or ""), *codes)))
    inside += [_reference(tag, task.get(key)) for tag, key in (("User", "user"), ("Organization", "organization"))]
    if task.get("progress") is not None:
        inside.append(_element("Progress", {}, escape(str(task["progress"]))))
    if task.get("details"):
        inside.append(_element("Details", {}, _text(str(task["details"]))))
    result = (task.get("result") or {}).get("resultContent")
    if result is not None:
        inside.append(_element("Result", {}, _element("ResultContent", {}, _text(str(result)))))
    return _document("Task", {"xmlns": NAMESPACE, **attributes}, "".join(inside))


def _reference(tag: str, value: Mapping[str, Any] | None) -> str:
    if not value:
        return ""
    return _element(
        tag, {name: str(value[name]) for name in ("href", "id", "type", "name") if value.get(name) is not None}
    )


def _document(tag: str, attributes: Mapping[str, str], inside: str = "") -> bytes:
    return ('<?xml version="1.0" encoding="UTF-8"?>\n' + _element(tag, attributes, inside)).encode()


def _element(tag: str, attributes: Mapping[str, str], inside: str = "") -> str:
    start = "".join(f" {name}={quoteattr(_plain(value))}" for name, value in attributes.items())
    return f"<{tag}{start}>{inside}</{tag}>" if inside else f"<{tag}{start}/>"


def _text(value: str) -> str:
    return escape(_plain(value))


def _plain(value: str) -> str:
    """Return the text with U+FFFD instead of characters that XML 1.0 can't contain."""
    return "".join(
        character if character in "\t\n\r" or (character >= " " and character not in "\ufffe\uffff") else "�"
        for character in value
    )
