"""What users may choose for a type: behaviors that an administrator marked as selectable.

An administrator marks a behavior of an interface with `"selectable": true` in its execution. Users with Full Control of
a type may then bind it to a hook, let other users invoke it, and override another behavior with it: the execution is
`{"type": "Behavior", "id": REF}`. Only administrators can name a playbook, a function or a URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.entities import access, urn
from statecfg.entities.model import Behavior, EntityType, Principal
from statecfg.entities.problems import ApiError, bad, forbidden
from statecfg.store import records
from statecfg.store.entities import tables

SELECTABLE = "selectable"
REFERENCE = "Behavior"
HARMLESS = ("noop", REFERENCE)
Json = Mapping[str, Any]


def target(connection: Any, execution: Json) -> Any:
    """Return the row of the interface behavior that a reference names; None if it does not exist."""
    ref = execution.get("id")
    return records.find(connection, tables.behavior, id=ref, ref=ref) if isinstance(ref, str) else None


def check_override(connection: Any, principal: Principal, execution: Json, current: Behavior, type: EntityType) -> None:
    """Check that a user may make this override.

    :param execution: the new execution
    :param current: the type's current behavior
    :raises ApiError: the reference is invalid, or only administrators may set this execution
    """
    if execution.get("type") == REFERENCE:
        row = target(connection, execution)
        if row is None or row.execution.get("type") == REFERENCE:
            raise bad(f"Behavior {str(execution.get('id'))[:200]} does not exist.", "RDE_INVALID_BEHAVIOR_SCOPE")
        if not principal.is_administrator and row.execution.get(SELECTABLE) is not True:
            raise forbidden(f"selecting {row.ref}")
    elif not principal.is_administrator and execution.get("type") != "noop":
        unchanged = current.owner == type.id and execution == current.execution
        if not unchanged:
            raise _only_administrators()


def check_definer(principal: Principal, body: Json) -> None:
    """Check that a user may define the execution in a body, which is possibly invalid.

    :raises ApiError: only administrators may set an execution of this type
    """
    execution = body.get("execution")
    if not principal.is_administrator and isinstance(execution, dict) and execution.get("type") not in HARMLESS:
        raise _only_administrators()


def _only_administrators() -> ApiError:
    message = (
        "Only administrators define what a behavior runs. "
        'Select a behavior: {"type": "Behavior", "id": "urn:vcloud:behavior-interface:…"}.'
    )
    return bad(message, "RDE_INVALID_BEHAVIOR_EXECUTION")


def check_removal(principal: Principal, current: Behavior) -> None:
    """Check that a user may remove an override. Only administrators remove overrides that only they can make.

    :raises ApiError: the user may not remove it
    """
    if not principal.is_administrator and current.execution.get("type") not in HARMLESS:
        raise forbidden(f"removing {current.id}")


def check_hooks(connection: Any, principal: Principal, old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Check that a user binds hooks only to selectable behaviors. Existing bindings may stay.

    :raises ApiError: a new binding names another behavior
    """
    for name, ref in new.items():
        if old.get(name) != ref and not _may_select(connection, principal, ref):
            raise forbidden(f"binding {ref} to {name}")


def check_grant(connection: Any, principal: Principal, type: EntityType, behavior: str, level: str) -> None:
    """Check that a user opens only selectable behaviors to more users.

    :param behavior: an id or a ref
    :param level: the access level that users need to invoke it
    :raises ApiError: the behavior is not selectable, and more users than now could invoke it
    """
    ref = urn.ref_of(behavior)
    if _may_select(connection, principal, ref):
        return
    granted = records.every(connection, tables.behavior_grant, type=type.id)
    if not any(urn.ref_of(row.behavior) == ref and access.rank(row.level) <= access.rank(level) for row in granted):
        raise forbidden(f"opening {ref}")


def _may_select(connection: Any, principal: Principal, ref: str) -> bool:
    if principal.is_administrator:
        return True
    row = records.find(connection, tables.behavior, id=ref, ref=ref)
    return row is not None and row.execution.get(SELECTABLE) is True
