"""Relations: begin and end them, let units enter and leave, and queue events that notify the other units.

All functions work on a connection inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, and_, delete, exists, insert, or_, select, update

from statecfg.store import projects
from statecfg.store.connection import Connection
from statecfg.store.service_tables import relation, relation_unit, service, unit, unit_event
from statecfg.store.tables import project
from statecfg.store.units.records import End
from statecfg.unit_rules import scheduler, workflow

ADDRESS = "private-address"
# The columns of a unit in a relation without a failed or stopped hook.
ANSWERED: dict[str, object] = {"failed": "", "remote": "", "upto": 0, "why": "", "tried": "", "unsettled": False}
_ENTERED = (
    relation_unit,
    unit.c.number,
    service.c.name.label("service_name"),
    relation.c.dying,
    relation.c.service.label("first"),
    relation.c.other,
)


def unit_name(service_name: str, number: int) -> str:
    """Return the name of a unit: SERVICE/NUMBER."""
    return f"{service_name}/{number}"


def identity(name: str, number: int) -> str:
    """Return the id of a relation for one of its sides: NAME:NUMBER."""
    return f"{name}:{number}"


def begin(connection: Connection, playbook: str, ends: Sequence[End], services: Mapping[str, int], now: float) -> None:
    """Create a relation. The started units of its services enter it.

    :param playbook: the playbook that declares it; "" for none
    :param ends: two, of different services, or one for peers
    :param services: name → id
    """
    (first, name), *others = ends
    other, other_name = (services[others[0][0]], others[0][1]) if others else (None, None)
    values = {"service": services[first], "name": name, "other": other, "other_name": other_name}
    values["number"] = _next_number(connection, services[first])
    made = connection.execute(insert(relation).values(playbook=playbook, dying=False, created=now, **values))
    key = made.inserted_primary_key
    assert key is not None
    row = connection.execute(select(relation).where(relation.c.id == key[0])).one()
    sides = [side for side in (row.service, row.other) if side is not None]
    started = (unit.c.service.in_(sides), unit.c.state == workflow.STARTED, ~unit.c.dying, ~unit.c.gone)
    for unit_id in connection.execute(select(unit.c.id).where(*started).order_by(unit.c.id)).scalars().all():
        _enter(connection, row, unit_id)


def _next_number(connection: Connection, service_id: int) -> int:
    """Return the number of the next relation of a service's project. Numbers are never reused."""
    named = select(service.c.project).where(service.c.id == service_id)
    own = projects.ensure(connection, connection.execute(named).scalar_one())
    following = int(own["next_relation"])
    connection.execute(update(project).where(project.c.name == own["name"]).values(next_relation=following + 1))
    return following


def enter_all(connection: Connection, unit_id: int) -> set[int]:
    """Let a started unit enter all relations of its service; return the units that have new events."""
    own = select(unit.c.service).where(unit.c.id == unit_id).scalar_subquery()
    open_ones = select(relation).where(or_(relation.c.service == own, relation.c.other == own), ~relation.c.dying)
    notified: set[int] = set()
    for row in connection.execute(open_ones.order_by(relation.c.id)).all():
        notified |= _enter(connection, row, unit_id)
    return notified


def _enter(connection: Connection, row: Row[Any], unit_id: int) -> set[int]:
    whose = select(unit.c.service, unit.c.number, unit.c.addresses, service.c.name).join(service)
    own = connection.execute(whose.where(unit.c.id == unit_id)).one()
    name = row.name if own.service == row.service else row.other_name
    address = own.addresses.get(ADDRESS)
    empty = {"members": [], "gone": False, **ANSWERED}
    settings = {} if address is None else {ADDRESS: address}
    connection.execute(
        insert(relation_unit).values(relation=row.id, unit=unit_id, name=name, settings=settings, **empty)
    )
    others = opposite(connection, row.id, unit_id)
    called = unit_name(own.name, own.number)
    names = [unit_name(other.service_name, other.number) for other in others]
    events = [(other.unit, called, scheduler.ADDED) for other in others]
    events += [(unit_id, remote, op) for remote, op in scheduler.at_once(added=names)]
    _happened(connection, row.id, events)
    return {other.unit for other in others} | ({unit_id} if others else set())


def opposite(connection: Connection, number: int, unit_id: int) -> list[Row[Any]]:
    """Return the rows of the units on the other side of a relation, sorted by service and number.

    Omit units that have left. Among peers, all other units are on the other side.
    """
    rows = entered(connection, number)
    own = connection.execute(select(unit.c.service).where(unit.c.id == unit_id)).scalar_one()
    return [
        row for row in rows if row.unit != unit_id and not row.gone and (row.other is None or row.service_id != own)
    ]


def entered(connection: Connection, number: int) -> list[Row[Any]]:
    """Return the rows of all units that have entered a relation, even if they left, by service and number."""
    asked = (
        select(*_ENTERED, unit.c.service.label("service_id"), unit.c.gone.label("unit_gone"))
        .join(unit, relation_unit.c.unit == unit.c.id)
        .join(service, unit.c.service == service.c.id)
        .join(relation, relation_unit.c.relation == relation.c.id)
        .where(relation_unit.c.relation == number)
    )
    return list(connection.execute(asked.order_by(service.c.name, unit.c.number)).all())


def tell_changed(connection: Connection, number: int, unit_id: int) -> set[int]:
    """Notify the other side of a relation that a unit changed its settings there; return the notified units."""
    return _tell(connection, number, unit_id, scheduler.MODIFIED)


def _tell(connection: Connection, number: int, unit_id: int, op: str) -> set[int]:
    whose = select(service.c.name, unit.c.number).join(unit, unit.c.service == service.c.id)
    own = connection.execute(whose.where(unit.c.id == unit_id)).one()
    others = opposite(connection, number, unit_id)
    called = unit_name(own.name, own.number)
    _happened(connection, number, [(other.unit, called, op) for other in others])
    return {other.unit for other in others}


def _happened(connection: Connection, number: int, events: Iterable[tuple[int, str, str]]) -> None:
    """Queue events of a relation.

    :param events: (unit to notify, remote unit, what happened to the remote unit), in order
    """
    rows = [{"unit": unit_id, "relation": number, "remote": remote, "op": op} for unit_id, remote, op in events]
    if rows:
        connection.execute(insert(unit_event), rows)


def end(connection: Connection, number: int) -> None:
    """End a relation. Each unit runs departed for each unit that it knows there, then broken, and nothing else."""
    connection.execute(update(relation).where(relation.c.id == number).values(dying=True))
    connection.execute(delete(unit_event).where(unit_event.c.relation == number))
    connection.execute(update(relation_unit).where(relation_unit.c.relation == number).values(ANSWERED))
    sweep(connection, [number])


def end_all(connection: Connection, service_id: int) -> None:
    """End all relations of a service."""
    touching = or_(relation.c.service == service_id, relation.c.other == service_id)
    for number in connection.execute(select(relation.c.id).where(touching, ~relation.c.dying)).scalars().all():
        end(connection, number)


def leave(connection: Connection, unit_id: int) -> set[int]:
    """Let a unit that is gone leave all its relations; return the notified units."""
    there = and_(relation_unit.c.unit == unit_id, ~relation_unit.c.gone)
    numbers = list(connection.execute(select(relation_unit.c.relation).where(there)).scalars())
    notified: set[int] = set()
    for number in numbers:
        notified |= tell_left(connection, number, unit_id)
    connection.execute(update(relation_unit).where(there).values(gone=True))
    waiting = select(unit_event.c.relation).where(unit_event.c.unit == unit_id).distinct()
    numbers += connection.execute(waiting).scalars()  # units that left them may have waited for these events only
    connection.execute(delete(unit_event).where(unit_event.c.unit == unit_id))
    sweep(connection, dict.fromkeys(numbers))
    return notified


def tell_left(connection: Connection, number: int, unit_id: int) -> set[int]:
    """Notify the other side of a relation, unless it is ending, that a unit leaves it; return the notified units."""
    if connection.execute(select(relation.c.dying).where(relation.c.id == number)).scalar_one():
        return set()
    whose = select(service.c.name, unit.c.number).join(unit, unit.c.service == service.c.id)
    own = connection.execute(whose.where(unit.c.id == unit_id)).one()
    name = unit_name(own.name, own.number)
    notified = _tell(connection, number, unit_id, scheduler.REMOVED)
    # If the hook that announces the unit failed on the other side, it need not be repeated.
    for other in opposite(connection, number, unit_id):
        if other.remote == name and name not in other.members:
            this = and_(relation_unit.c.relation == number, relation_unit.c.unit == other.unit)
            connection.execute(update(relation_unit).where(this).values(ANSWERED))
    return notified


def sweep(connection: Connection, numbers: Iterable[int]) -> None:
    """Delete what no hook can need: ended relations without units, units in a relation that left it, and gone units.

    Keep a unit that left while another unit still knows it there or has an event about it.

    :param numbers: the relations to check
    """
    for number in numbers:
        rows = entered(connection, number)
        if not any(not row.gone for row in rows):
            connection.execute(delete(relation).where(relation.c.id == number, relation.c.dying))
        events = select(unit_event.c.remote).where(unit_event.c.relation == number)
        named = set(connection.execute(events).scalars())
        named.update(*(row.members for row in rows if not row.gone))
        for row in rows:
            if row.gone and unit_name(row.service_name, row.number) not in named:
                this = and_(relation_unit.c.relation == number, relation_unit.c.unit == row.unit)
                connection.execute(delete(relation_unit).where(this))
    connection.execute(delete(unit).where(unit.c.gone, ~exists().where(relation_unit.c.unit == unit.c.id)))
