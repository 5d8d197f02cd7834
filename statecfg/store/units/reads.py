"""Settings that hooks read, and changes of hooks that take effect immediately: ports, status, log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from sqlalchemy import delete, insert, select, update

from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.service_tables import service, unit, unit_log
from statecfg.store.units import relations as unit_relations
from statecfg.store.units import rows as unit_rows
from statecfg.store.units.records import LogLine, Settings, UnitRelation, UnitRequestError
from statecfg.store.units.relations import unit_name
from statecfg.store.units.steps import in_relation

KEPT = 10_000  # maximum number of lines in the log of a service
LONGEST = 4096  # maximum characters of a line; longer lines are split
Entry = tuple[float, str, str, int, str]  # time, unit, hook, level, text


def read_in(connection: Connection, unit_id: int, node: Sequence[str], secrets: Settings | None = None) -> Settings:
    """Return the current settings of a node.

    :param node: ["config"], ["leader"], or ["relation", id of the relation, name of a unit]
    :param secrets: option → value, of the service's secret options, which the store does not contain
    :raises UnitRequestError: the unit does not exist, or is not in that relation
    """
    row, service_row = unit_rows.find(connection, unit_id)
    match list(node):
        case ["config"]:
            hidden = {
                option: None for option, entry in service_row.schema.items() if entry.get("type") == unit_rows.SECRET
            }
            return {**unit_rows.effective(service_row), **hidden, **(secrets or {})}
        case ["leader"]:
            return dict(service_row.leader)
        case ["relation", relation_id, name]:
            return _relation_settings(connection, row.id, relation_id, name)
    raise ValueError(f"settings node {list(node)} does not exist")


def _relation_settings(connection: Connection, unit_id: int, relation_id: str, name: str) -> Settings:
    own = in_relation(connection, unit_id, relation_id)
    for row in unit_relations.entered(connection, own.relation):
        if unit_name(row.service_name, row.number) == name:
            return dict(row.settings)
    raise UnitRequestError("NoSuchUnit", f"The relation '{own.name}' has no unit state for '{name}'")


def port_in(connection: Connection, unit_id: int, open: bool, text: str) -> None:
    """Store that a unit opened or closed a port. This is effective even if the hook fails.

    :param text: such as "80/tcp". Opening an open port or closing a closed one changes nothing
    :raises UnitRequestError: the unit does not exist
    """
    row, _ = unit_rows.find(connection, unit_id)
    ports = [port for port in row.ports if port != text or open]
    ports += [text] if open and text not in ports else []
    connection.execute(update(unit).where(unit.c.id == row.id).values(ports=ports))


def status_in(connection: Connection, unit_id: int, status: str, message: str) -> None:
    """Store the status and message of a unit. This is effective even if the hook fails.

    :raises UnitRequestError: the unit does not exist
    """
    row, _ = unit_rows.find(connection, unit_id)
    connection.execute(update(unit).where(unit.c.id == row.id).values(status=status, message=message))


def log(store: Store, project: str, entries: Iterable[Entry]) -> None:
    """Write output of hooks to the log, line by line. Keep only the newest 10,000 lines of a service.

    :param entries: (seconds since 1970, name of the unit, hook, level, text), in order
    :raises UnitRequestError: the service of an entry does not exist; then nothing is written
    """
    newest: dict[str, deque[LogLine]] = {}  # by service
    for at, name, hook, level, text in entries:
        kept = newest.setdefault(name.rpartition("/")[0], deque(maxlen=KEPT))
        kept.extend(LogLine(at, name, hook, level, line) for line in _lines(text))

    def write(connection: Connection) -> None:
        rows = connection.execute(select(service.c.name, service.c.id).where(service.c.project == project))
        services: dict[str, int] = {row.name: row.id for row in rows}
        unknown = sorted(newest.keys() - services)
        if unknown:
            raise UnitRequestError("NoSuchUnit", f"service {unknown[0]!r} does not exist")
        pairs = [(services[service_id], line) for service_id, kept in newest.items() for line in kept]
        pairs.sort(key=lambda pair: pair[1].at)
        if pairs:
            connection.execute(insert(unit_log), [{"service": number, **asdict(line)} for number, line in pairs])
        for number in {number for number, _ in pairs}:
            mine = select(unit_log.c.id).where(unit_log.c.service == number)
            oldest = mine.order_by(unit_log.c.id.desc()).offset(KEPT).limit(1).scalar_subquery()
            connection.execute(delete(unit_log).where(unit_log.c.service == number, unit_log.c.id <= oldest))

    store.attempt(write)


def _lines(text: str) -> Iterator[str]:
    for line in text.removesuffix("\n").split("\n"):
        for start in range(0, len(line) or 1, LONGEST):
            yield line[start : start + LONGEST]


def lines(
    store: Store, project: str, of_service: str | None = None, of_unit: str | None = None, limit: int = 100
) -> list[LogLine]:
    """Return the newest lines of the log, newest last.

    :param of_service: only lines of this service
    :param of_unit: only lines of this unit
    :param limit: maximum number of lines
    """
    columns = (unit_log.c.at, unit_log.c.unit, unit_log.c.hook, unit_log.c.level, unit_log.c.text)
    asked = select(*columns).join(service, unit_log.c.service == service.c.id).where(service.c.project == project)
    asked = asked if of_service is None else asked.where(service.c.name == of_service)
    asked = asked if of_unit is None else asked.where(unit_log.c.unit == of_unit)
    with store.reading() as connection:
        rows = connection.execute(asked.order_by(unit_log.c.id.desc()).limit(limit)).all()
    return [LogLine(**row._mapping) for row in reversed(rows)]


def in_relations(store: Store, unit_id: int) -> list[UnitRelation]:
    """Return the relations of a unit, with its settings and the other units that it knows in each."""
    with store.reading() as connection:
        relations = []
        for entered in unit_rows.relations_of(connection, unit_id):
            row = in_relation(connection, unit_id, entered.id)
            error = f"{row.failed}: {row.why}" if row.failed else ""
            relations.append(UnitRelation(entered.id, tuple(row.members), row.settings, entered.dying, error))
        return relations
