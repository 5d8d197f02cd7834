"""What goes back: JSON, XML where a client of the older API asks for it, errors, and the headers of every answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from statecfg.entities.model import org_id
from statecfg.entities.problems import ApiError
from statecfg.server import versions
from statecfg.server.exchange import JSON, Answer, Asked

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
# Scripts, styles and connections from us only; no frame; nothing kept; no type guessed; no address given away. With
# no-referrer a browser would send forms, such as the one to log in, with `Origin: null`.
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


def body(answer: Answer) -> bytes:
    """Return the bytes of an answer's body, b"" for none."""
    if answer.body is None:
        return b""
    if isinstance(answer.body, bytes):
        return answer.body
    return json.dumps(answer.body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def content_type(media_type: str, version: float | None) -> str:
    """Return the header for a media type: JSON and XML of the API say which version they are of."""
    versioned = version is not None and (media_type == JSON or media_type.endswith("+xml"))
    return f"{media_type};version={version}" if versioned else media_type


def error(refused: ApiError, headers: Mapping[str, str], path: str) -> Answer:
    """Return the answer to a refused request: JSON, or XML where the older API's clients expect that."""
    if path.startswith("/api/") and _wants_xml(headers):
        return Answer(refused.status, error_xml(refused), refused.headers, ERROR_XML)
    value = {"minorErrorCode": refused.minor_code, "message": refused.message, "stackTrace": None}
    return Answer(refused.status, value, refused.headers)


def _wants_xml(headers: Mapping[str, str]) -> bool:
    try:
        return versions.accepted(headers.get("accept", "")).xml
    except versions.Unsupported:
        return "xml" in headers.get("accept", "").lower()


def location(asked: Asked, task_id: str) -> str:
    """Return the address of a task by its URN."""
    return f"{asked.base}/api/task/{task_id.rpartition(':')[2]}"


def error_xml(refused: ApiError) -> bytes:
    """Return an error as an XML document."""
    return _document("Error", {"xmlns": NAMESPACE, **_error(refused.message, refused.status, refused.minor_code)})


def _error(message: str, major: int, minor: str) -> dict[str, str]:
    return {"message": message, "majorErrorCode": str(major), "minorErrorCode": minor, "stackTrace": ""}


def versions_json(base: str) -> dict[str, Any]:
    """Return which versions there are, and where each is logged in to."""
    entries = [{"version": str(each), "loginUrl": _login(base), "deprecated": False} for each in versions.SUPPORTED]
    return {"versionInfo": entries}


def versions_xml(base: str) -> bytes:
    """Return the same as an XML document."""
    entries = (
        f"<VersionInfo><Version>{each}</Version><LoginUrl>{escape(_login(base))}</LoginUrl>"
        f"<ProviderLoginUrl>{escape(_login(base))}/provider</ProviderLoginUrl></VersionInfo>"
        for each in versions.SUPPORTED
    )
    return _document("SupportedVersions", {"xmlns": VERSIONS_NAMESPACE}, "".join(entries))


def _login(base: str) -> str:
    return f"{base}/cloudapi/1.0.0/sessions"


def session(asked: Asked) -> dict[str, Any]:
    """Return who is logged in: clients ask it whether they are administrators."""
    caller, base = asked.principal, asked.base
    links = [{"rel": "down", "type": _type("orgList", asked), "href": f"{base}/api/org/"}]
    links.append({"rel": "down", **_org(asked, caller.org)})
    links.append({"rel": "remove", "href": f"{base}/api/session"})
    own = {"type": _type("session", asked), "href": f"{base}/api/session", "user": caller.name, "userId": caller.id}
    return {**own, "org": caller.org, "roles": caller.role, "link": links}


def session_xml(value: Mapping[str, Any]) -> bytes:
    """Return the same as an XML document."""
    links = "".join(_element("Link", link) for link in value["link"])
    return _document("Session", {"xmlns": NAMESPACE, **{key: value[key] for key in value if key != "link"}}, links)


def orgs(asked: Asked, names: Iterable[str]) -> dict[str, Any]:
    """Return organizations, given by their names."""
    own = {"type": _type("orgList", asked), "href": f"{asked.base}/api/org/"}
    return {**own, "org": [_org(asked, name) for name in names]}


def orgs_xml(value: Mapping[str, Any]) -> bytes:
    """Return the same as an XML document."""
    inside = "".join(_element("Org", each) for each in value["org"])
    return _document("OrgList", {"xmlns": NAMESPACE, "type": value["type"], "href": value["href"]}, inside)


def org(asked: Asked, name: str) -> dict[str, str]:
    """Return an organization."""
    return {**_org(asked, name), "fullName": name}


def org_xml(value: Mapping[str, str]) -> bytes:
    """Return the same as an XML document."""
    inside = _element("FullName", {}, _text(value["fullName"]))
    return _document("Org", {"xmlns": NAMESPACE, **{key: value[key] for key in value if key != "fullName"}}, inside)


def _org(asked: Asked, name: str) -> dict[str, str]:
    id = org_id(name)
    href = f"{asked.base}/api/org/{id.rpartition(':')[2]}"
    return {"type": _type("org", asked), "name": name, "href": href, "id": id}


def _type(name: str, asked: Asked) -> str:
    return f"application/vnd.vmware.vcloud.{name}+{'xml' if asked.xml else 'json'}"


def task_xml(task: Mapping[str, Any]) -> bytes:
    """Return a task, given as its JSON value, as the XML document that it is made after."""
    names = (
        "href",
        "type",
        "id",
        "operationKey",
        "name",
        "status",
        "operation",
        "operationName",
        "startTime",
        "endTime",
    )
    attributes = {name: str(task[name]) for name in names if task.get(name) is not None}
    inside = [_reference(tag, task.get(key)) for tag, key in (("Owner", "owner"),)]
    failed = task.get("error")
    if failed:
        codes = failed.get("majorErrorCode") or 500, str(failed.get("minorErrorCode") or "")
        inside.append(_element("Error", _error(str(failed.get("message") or ""), *codes)))
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
    """Return a text without the characters that XML 1.0 can't hold."""
    return "".join(each if each in "\t\n\r" or (each >= " " and each not in "\ufffe\uffff") else "�" for each in value)
