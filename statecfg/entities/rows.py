"""Convert rows of the store to objects of the API, and look them up by id."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, TypeVar, get_type_hints

from statecfg.entities.document import is_part
from statecfg.entities.model import (
    Behavior,
    BehaviorGrant,
    Entity,
    EntityType,
    Grant,
    Interface,
    MetadataEntry,
    Task,
    Token,
)
from statecfg.entities.problems import forbidden
from statecfg.store import records
from statecfg.store.entities import tables

T = TypeVar("T")


@cache
def _fields(cls: type) -> Mapping[str, type | None]:
    """Return the fields of a class, each with its class if it is a part: a group of columns."""
    return {name: hint if is_part(hint) else None for name, hint in get_type_hints(cls).items()}


def _from_row(cls: type[T], row: Any) -> T:
    return cls(**_values(cls, row))


def _values(cls: type, row: Any) -> Mapping[str, Any]:
    """Return the values of the fields of a class from a row with a column for each, also for those in parts."""
    fields = _fields(cls).items()
    return {name: getattr(row, name) if part is None else part(**_values(part, row)) for name, part in fields}


# Each of them returns the object of a row.
interface, behavior = partial(_from_row, Interface), partial(_from_row, Behavior)
entity_type = partial(_from_row, EntityType)
entity, task, metadata_entry = partial(_from_row, Entity), partial(_from_row, Task), partial(_from_row, MetadataEntry)
grant, behavior_grant, token = partial(_from_row, Grant), partial(_from_row, BehaviorGrant), partial(_from_row, Token)


def need(connection: Any, table: Any, id: str) -> Any:
    """Return the row with an id.

    :raises ApiError: it does not exist
    """
    row = records.find(connection, table, id=id)
    if row is None:
        raise forbidden(id[:200])
    return row


def effective(connection: Any, type: EntityType, ref: str) -> Behavior | None:
    """Return the behavior of a type for a ref: its override, else its interface's behavior, else None."""
    behaviors = records.every(connection, tables.behavior, ref=ref, owner=[type.id, *type.interfaces])
    own = [row for row in behaviors if row.owner == type.id]
    return behavior((own or behaviors)[0]) if behaviors else None
