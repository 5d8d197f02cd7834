"""Read units on a connection inside a transaction of the caller."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, or_, select

from statecfg.store.connection import Connection
from statecfg.store.service_tables import relation, relation_unit, service, unit, unit_event
from statecfg.store.units.records import (
    Announced,
    Goal,
    Settings,
    UnitCondition,
    UnitNetwork,
    UnitOrigin,
    UnitRequestError,
    UnitRow,
    UnitStatus,
)
from statecfg.store.units.relations import identity, unit_name
from statecfg.unit_rules import workflow

SECRET = "secret"  # noqa: S105  # the type of an option whose value is in no store


def find(connection: Connection, unit_id: int) -> tuple[Row[Any], Row[Any]]:
    """Return the rows of a unit and of its service.

    :raises UnitRequestError: the unit does not exist or is gone
    """
    row = connection.execute(select(unit).where(unit.c.id == unit_id)).one_or_none()
    if row is None or row.gone:
        raise UnitRequestError("NoSuchUnit", "the unit is gone")
    return row, connection.execute(select(service).where(service.c.id == row.service)).one()


def effective(row: Row[Any]) -> Settings:
    """Return the settings of a service as its units see them, without secrets: option → value, None for no value.

    Manual settings override those of the playbook, which override the schema's defaults.
    """
    plain = {option: entry.get("default") for option, entry in row.schema.items() if entry.get("type") != SECRET}
    given = {**row.settings, **row.overrides}
    return {option: given.get(option, default) for option, default in plain.items()}


def config_digest(row: Row[Any]) -> str:
    """Return the digest of a service's settings. It differs from a unit's digest if the unit knows older settings."""
    text = json.dumps([effective(row), row.secrets], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def secrets_digest(salt: str, secrets: Settings) -> str:
    """Return the slow, salted hash that the store contains instead of secrets, to detect changes; "" for no secrets."""
    if not secrets:
        return ""
    text = json.dumps(dict(secrets), sort_keys=True, separators=(",", ":"))
    # Slow and memory-hard, so that the hash does not help to guess secrets: 16 MiB and about 50 ms.
    return hashlib.scrypt(text.encode(), salt=bytes.fromhex(salt), n=1 << 14, r=8, p=1, dklen=32).hex()


def life(row: Row[Any], service_row: Row[Any]) -> workflow.Life:
    """Return the state of a unit.

    :param service_row: the row of its service
    """
    return workflow.Life(
        state=row.state,
        error=row.error,
        tried=row.tried,
        dying=row.dying,
        charm=row.charm,
        digest=service_row.digest,
        configured=row.configured,
        config=config_digest(service_row),
    )


def relations_of(connection: Connection, unit_id: int) -> list[workflow.Entered]:
    """Return a unit's state in the relations that it has entered and not left, sorted by their keys."""
    events: dict[int, list[tuple[int, str, str]]] = {}
    happened = select(unit_event).where(unit_event.c.unit == unit_id).order_by(unit_event.c.id)
    for event in connection.execute(happened):
        events.setdefault(event.relation, []).append((event.id, event.remote, event.op))
    there = (
        select(relation_unit, relation.c.dying, relation.c.number)
        .join(relation, relation_unit.c.relation == relation.c.id)
        .where(relation_unit.c.unit == unit_id, ~relation_unit.c.gone)
    )
    return [
        workflow.Entered(
            key=row.relation,
            name=row.name,
            dying=row.dying,
            failed=row.failed,
            tried=row.tried,
            members=tuple(row.members),
            events=tuple(events.get(row.relation, ())),
            id=identity(row.name, row.number),
        )
        for row in connection.execute(there.order_by(relation_unit.c.relation))
    ]


def others(connection: Connection, service_row: Row[Any]) -> dict[int, str]:
    """Return relation → service at its other end, for each relation of a service; for peers, the service itself."""
    touching = or_(relation.c.service == service_row.id, relation.c.other == service_row.id)
    ends = select(relation.c.id, relation.c.service, relation.c.other).where(touching)
    rows = connection.execute(ends).all()
    others = {row.id: row.other if row.other and row.service == service_row.id else row.service for row in rows}
    named = connection.execute(select(service.c.id, service.c.name).where(service.c.id.in_(set(others.values()))))
    names = {row.id: row.name for row in named}
    return {number: names[other] for number, other in others.items()}


def leader_of(connection: Connection, service_id: int) -> int | None:
    """Return the number of the unit that leads a service; None if the service has no units."""
    there = select(unit.c.number, unit.c.dying).where(unit.c.service == service_id, ~unit.c.gone)
    return workflow.leader({row.number: row.dying for row in connection.execute(there)})


def goal(connection: Connection, service_row: Row[Any]) -> Goal:
    """Return the current and expected units of a service and its related services."""
    related: dict[str, dict[str, UnitStatus]] = {}
    touching = or_(relation.c.service == service_row.id, relation.c.other == service_row.id)
    for row in connection.execute(select(relation).where(touching, ~relation.c.dying).order_by(relation.c.id)).all():
        name, other = (row.name, row.other) if row.service == service_row.id else (row.other_name, row.service)
        if other is not None:
            called = connection.execute(select(service.c.name).where(service.c.id == other)).scalar_one()
            there = related.setdefault(name, {})
            there[called] = {"status": "joined"}
            there.update(_statuses(connection, other, called))
    return {"units": _statuses(connection, service_row.id, service_row.name), "relations": related}


def _statuses(connection: Connection, service_id: int, called: str) -> dict[str, UnitStatus]:
    there = select(unit.c.number, unit.c.status, unit.c.dying).where(unit.c.service == service_id, ~unit.c.gone)
    return {
        unit_name(called, row.number): {"status": "dying" if row.dying else row.status or "waiting"}
        for row in connection.execute(there.order_by(unit.c.number))
    }


def units_in(
    connection: Connection, project: str, playbook: str | None = None, host: str | None = None
) -> list[UnitRow]:
    """Return the units of a project, sorted by service and number.

    :param playbook: only units of services that this playbook declares
    :param host: only units on this host
    """
    asked = select(unit, service.c.name.label("service_name")).join(service).where(service.c.project == project)
    asked = asked if playbook is None else asked.where(service.c.playbook == playbook)
    asked = asked if host is None else asked.where(unit.c.host == host)
    rows = connection.execute(asked.where(~unit.c.gone).order_by(service.c.name, unit.c.number)).all()
    leaders = {service_id: leader_of(connection, service_id) for service_id in {row.service for row in rows}}
    errors = _relation_errors(connection, project)
    return [_unit(row, leaders[row.service] == row.number, errors.get(row.id, ())) for row in rows]


def unit_in(connection: Connection, unit_id: int) -> UnitRow | None:
    """Return a unit; None if it is gone."""
    asked = select(unit, service.c.name.label("service_name"), service.c.project).join(service)
    row = connection.execute(asked.where(unit.c.id == unit_id, ~unit.c.gone)).one_or_none()
    if row is None:
        return None
    leads = leader_of(connection, row.service) == row.number
    return _unit(row, leads, _relation_errors(connection, row.project).get(row.id, ()))


class _RelationError(NamedTuple):
    """A failed hook of a unit in a relation.

    :param relation: NAME:NUMBER
    :param run: the run in which it failed; "" if any run may retry it
    """

    relation: str
    text: str
    run: str


def _relation_errors(connection: Connection, project: str) -> dict[int, list[_RelationError]]:
    """Return the id of each unit with such errors → the errors."""
    errors: dict[int, list[_RelationError]] = {}
    failed = (
        select(relation_unit, relation.c.number)
        .join(relation, relation_unit.c.relation == relation.c.id)
        .join(unit, relation_unit.c.unit == unit.c.id)
        .join(service, unit.c.service == service.c.id)
        .where(service.c.project == project, relation_unit.c.failed != "", ~relation_unit.c.gone)
    )
    for row in connection.execute(failed.order_by(relation_unit.c.relation)):
        error = _RelationError(identity(row.name, row.number), f"{row.failed}: {row.why}", row.tried)
        errors.setdefault(row.unit, []).append(error)
    return errors


def _unit(row: Row[Any], leads: bool, errors: Sequence[_RelationError]) -> UnitRow:
    relation_errors = {error.relation: error.text for error in errors}
    runs = filter(None, [row.tried, *(error.run for error in errors)])
    return UnitRow(
        id=row.id,
        name=unit_name(row.service_name, row.number),
        service=row.service_name,
        number=row.number,
        host=row.host,
        dying=row.dying,
        leader=leads,
        condition=UnitCondition(
            workflow.shown(row.state, row.error), row.since, row.why, relation_errors, tuple(dict.fromkeys(runs))
        ),
        announced=Announced(row.status, row.message),
        network=UnitNetwork(row.addresses, tuple(row.ports)),
        origin=UnitOrigin(row.charm, row.early, row.added),
    )
