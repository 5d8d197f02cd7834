"""Access control: roles, ownership and grants."""

from __future__ import annotations

from typing import Any

from statecfg.entities.model import FULL_CONTROL, LEVELS, READ_ONLY, Principal
from statecfg.entities.problems import ApiError, bad, forbidden
from statecfg.store import records
from statecfg.store.entities import tables

_RANK = {level: number for number, level in enumerate(LEVELS, 1)}


def rank(level: str) -> int:
    """Return the rank of an access level: 0 for no access, 3 for Full Control."""
    return _RANK.get(level, 0)


def name_of(rank: int) -> str:
    """Return the name of a rank: "ReadOnly", "ReadWrite" or "FullControl"; "" for no access."""
    return LEVELS[rank - 1].rpartition(":")[2] if rank else ""


def administrators_only(principal: Principal, what: str) -> None:
    """Check that the user is an administrator.

    :raises ApiError: the user is not an administrator
    """
    if not principal.is_administrator:
        raise forbidden(what)


def to_type(connection: Any, principal: Principal, id: str) -> int:
    """Return the rank of a user's access to a type."""
    return 3 if principal.is_administrator else _granted(connection, principal, id)


def to_types(connection: Any, principal: Principal) -> dict[str, int]:
    """Return type → rank of a user's access, for all types that the user may see."""
    types = [row.id for row in records.every(connection, tables.entity_type)]
    if principal.is_administrator:
        return dict.fromkeys(types, rank(FULL_CONTROL))
    ranks: dict[str, int] = {}
    for row in records.every(connection, tables.grant, object=types, member=[principal.id, principal.org_id]):
        ranks[row.object] = max(ranks.get(row.object, 0), rank(row.level))
    most = rank(READ_ONLY) if principal.role == "viewer" else rank(FULL_CONTROL)
    return {id: min(rank, most) for id, rank in ranks.items()}


def to_entity(connection: Any, principal: Principal, entity: Any) -> int:
    """Return the rank of a user's access to an entity (a row of the store)."""
    if principal.is_administrator:
        return 3
    if (entity.owner, entity.org) == (principal.name, principal.org):
        return 1 if principal.role == "viewer" else 3
    return _granted(connection, principal, entity.id)


def need(have: int, level: str, what: str) -> None:
    """Check that a rank is at least that of an access level.

    :raises ApiError: it is lower
    """
    if have < rank(level):
        raise forbidden(what)


def hooks_wanted(connection: Any, principal: Principal, type_id: str, invoke_hooks: bool) -> bool:
    """Return whether to run hooks.

    Changes that a hook makes with its own token run no hooks: hooks don't recurse.

    :param invoke_hooks: what the request asks for; False requires Full Control of the type
    :raises ApiError: the user lacks Full Control
    """
    if not invoke_hooks and to_type(connection, principal, type_id) < rank(FULL_CONTROL):
        raise ApiError(403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "invokeHooks=false needs Full Control of the type.")
    return invoke_hooks and not principal.invocation


def matches(if_match: str | None, etag: str) -> bool:
    """Return whether an If-Match header allows changing a revision.

    Source: RFC 9110, 13.1.1 (weak tags never match).
    """
    if if_match is None:
        return True
    tags = [tag.strip() for tag in if_match.split(",")]
    return "*" in tags or etag in tags


def level_of(value: Any) -> str:
    """Return an access level as a URN.

    :param value: the URN, or its last part such as "ReadOnly"
    :raises ApiError: the value is not an access level
    """
    for level in LEVELS:
        if value == level or value == level.rpartition(":")[2]:
            return level
    raise bad(f"accessLevelId must be one of {', '.join(LEVELS)}.")


def _granted(connection: Any, principal: Principal, id: str) -> int:
    rows = records.every(connection, tables.grant, object=id, member=[principal.id, principal.org_id])
    most = max((rank(row.level) for row in rows), default=0)
    return min(most, rank(READ_ONLY)) if principal.role == "viewer" else most
