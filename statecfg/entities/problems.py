"""Errors of API calls: an HTTP status, a code for programs, and a message for people."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.errors import StatecfgError

FORBIDDEN = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
BAD_REQUEST = "BAD_REQUEST"
# Codes of valid requests that conflict with the current state (status 409).
_CONFLICTS = (
    "RDE_IN_USE",
    "RDE_IMMUTABLE",
    "RDE_READONLY",
    "RDE_ALREADY_EXISTS",
    "RDE_BEHAVIOR_ALREADY_EXISTS",
    "RDE_ENTITY_NOT_RESOLVED",
    "RDE_ENTITY_IN_DELETION",
    "VCD_META_CRUD_INVALID_FLAG",
)
_MISSING = ("RDE_INVALID_BEHAVIOR_SCOPE", "RDE_NO_SUCH_VERSION")


class ApiError(StatecfgError):
    """A refused call. It has changed nothing.

    :param status: HTTP status, 400 to 499
    :param minor_code: the `minorErrorCode` of the reply
    :param message: one or two sentences, without secrets
    :param headers: further headers of the reply
    """

    def __init__(self, status: int, minor_code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.minor_code, self.message = status, minor_code, message
        self.headers: Mapping[str, str] = headers or {}
        super().__init__(message)


def forbidden(what: str) -> ApiError:
    """Return the error for a missing or an invisible object. Users can't tell the two apart."""
    return ApiError(403, FORBIDDEN, f"Either you need some or all of the rights for {what}, or it does not exist.")


def bad(message: str, minor_code: str = BAD_REQUEST) -> ApiError:
    """Return the error for an invalid request (400), a conflict with the state (409) or a missing object (404)."""
    status = 409 if minor_code in _CONFLICTS else 404 if minor_code in _MISSING else 400
    return ApiError(status, minor_code, message)


def stale() -> ApiError:
    """Return the error for changing an object that has changed since the client read it (If-Match)."""
    return ApiError(412, "PRECONDITION_FAILED", "It has changed since you read it: read it again, then change it.")
