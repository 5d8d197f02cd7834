"""The URNs of the API's objects."""

from __future__ import annotations

import re
import uuid

NAMESPACE = re.compile(r"[A-Za-z0-9_-]{1,64}")
MEMBER = re.compile(r"urn:vcloud:(user|org):[A-Za-z0-9_.@-]{1,128}")
# Semantic versioning without build data, which URNs of the original never have. Source: https://semver.org
VERSION = re.compile(
    r"(?=.{1,64}$)(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)
BEHAVIOR = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def interface(vendor: str, nss: str, version: str) -> str:
    """Return the id of an interface."""
    return f"urn:vcloud:interface:{vendor}:{nss}:{version}"


def entity_type(vendor: str, nss: str, version: str) -> str:
    """Return the id of a type."""
    return f"urn:vcloud:type:{vendor}:{nss}:{version}"


def behavior(name: str, interface: str) -> str:
    """Return the id of an interface's behavior."""
    return f"urn:vcloud:behavior-interface:{name}:{_own(interface)}"


def override(name: str, entity_type: str, interface: str) -> str:
    """Return the id of a type's override of an interface's behavior."""
    return f"urn:vcloud:behavior-type:{name}:{_own(entity_type)}:{_own(interface)}"


def interface_of(behavior: str) -> str:
    """Return the id of the interface in a behavior's id (of either kind); "" if the id has another form."""
    parts = behavior.split(":")
    if parts[:2] != ["urn", "vcloud"] or (len(parts), parts[2]) not in (
        (7, "behavior-interface"),
        (10, "behavior-type"),
    ):
        return ""
    return interface(*parts[-3:])


def ref_of(id: str) -> str:
    """Return the ref for a behavior's id (of either kind)."""
    parts = id.split(":")
    return behavior(parts[3], interface(*parts[-3:])) if parts[2:3] == ["behavior-type"] else id


def entity(entity_type: str) -> str:
    """Return the id of a new entity."""
    vendor, nss, _ = _own(entity_type).split(":")
    return f"urn:vcloud:entity:{vendor}:{nss}:{uuid.uuid4()}"


def task(id: str = "") -> str:
    """Return the id of a new task, or of the task with the given URN or UUID; "" if it is neither."""
    if not id:
        return f"urn:vcloud:task:{uuid.uuid4()}"
    id = id.removeprefix("urn:vcloud:task:").lower()
    return f"urn:vcloud:task:{id}" if _UUID.fullmatch(id) else ""


def grant() -> str:
    """Return the id of a new access control."""
    return f"urn:vcloud:accessControlGrant:{uuid.uuid4()}"


def metadata() -> str:
    """Return the id of a new metadata entry."""
    return f"urn:vcloud:metadata:{uuid.uuid4()}"


def _own(id: str) -> str:
    """Return vendor, nss and version of an interface's or a type's id."""
    return id.split(":", 3)[3]
