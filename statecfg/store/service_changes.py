"""Manual changes of services, units and relations. They are stored immediately; the next apply acts on them.

The caller checks the names against the result of `show`. An object that is deleted in between raises InvalidInput as
well.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, select, update

from statecfg.problems import InvalidInput, problem
from statecfg.problems.frozen import dataclass
from statecfg.store import service_ends
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.service_tables import relation, relation_unit, service, unit
from statecfg.store.units import relations as unit_relations
from statecfg.store.units import rows as unit_rows
from statecfg.store.units import steps as unit_steps
from statecfg.store.units.records import End, RelationRow, ServiceCharm, ServiceRow, Settings, UnitRow
from statecfg.store.units.relations import unit_name


@dataclass(frozen=True, slots=True)
class ServicesSnapshot:
    """The services of a project, their units and relations at one moment.

    :param services: name → service, sorted by name, including destroyed services that still have units
    :param units: name → unit, sorted by service and number
    :param relations: in the order of their creation, including those that are ending
    """

    services: Mapping[str, ServiceRow]
    units: Mapping[str, UnitRow]
    relations: Sequence[RelationRow]


def projects(store: Store) -> list[str]:
    """Return the names of the projects that have or had services, sorted."""
    with store.reading() as connection:
        return list(connection.execute(select(service.c.project).distinct().order_by(service.c.project)).scalars())


def show(store: Store, project: str) -> ServicesSnapshot:
    """Return the services of a project, their units and relations."""
    with store.reading() as connection:
        return show_in(connection, project)


def show_in(connection: Connection, project: str) -> ServicesSnapshot:
    """Return the services of a project, their units and relations, inside a transaction."""
    units = {row.name: row for row in unit_rows.units_in(connection, project)}
    rows = connection.execute(select(service).where(service.c.project == project).order_by(service.c.name)).all()
    names = {row.id: row.name for row in rows}
    mine = select(relation).where(relation.c.service.in_(names)).order_by(relation.c.id)
    endless = _unsettled(connection, project)
    relations = [
        RelationRow(row.number, service_ends.ends_of(row, names), row.playbook, row.dying, endless.get(row.id, ()))
        for row in connection.execute(mine).all()
    ]
    used = {row.service for row in units.values()}
    return ServicesSnapshot(
        {row.name: _service(row) for row in rows if row.alive or row.name in used}, units, relations
    )


def _unsettled(connection: Connection, project: str) -> dict[int, tuple[str, ...]]:
    """Return relation → sorted names of the units whose hooks a run stopped there, because they would never end."""
    query = (
        select(relation_unit.c.relation, service.c.name, unit.c.number)
        .join(unit, relation_unit.c.unit == unit.c.id)
        .join(service, unit.c.service == service.c.id)
        .where(service.c.project == project, relation_unit.c.unsettled, ~relation_unit.c.gone)
        .order_by(service.c.name, unit.c.number)
    )
    names: dict[int, tuple[str, ...]] = {}
    for row in connection.execute(query):
        names[row.relation] = (*names.get(row.relation, ()), unit_name(row.name, row.number))
    return names


def _service(row: Row[Any]) -> ServiceRow:
    return ServiceRow(
        id=row.id,
        name=row.name,
        playbook=row.playbook,
        alive=row.alive,
        charm=ServiceCharm(row.charm, row.digest, row.schema, row.endpoints),
        settings=row.settings,
        overrides=row.overrides,
        timeout=row.timeout,
        hosts=tuple(row.hosts),
        without=row.without,
        next=row.next,
    )


def add_unit(store: Store, project: str, name: str, host: str | None = None) -> UnitRow:
    """Add a unit to a service; return the unit.

    :param host: its host; None for the service's host that has the fewest of its units
    :raises InvalidInput: the service does not exist, or has no host to choose from
    """

    def make(connection: Connection) -> UnitRow:
        row = _living(connection, project, name)
        there = select(unit.c.host).where(unit.c.service == row.id, ~unit.c.gone, ~unit.c.dying)
        used = list(connection.execute(there).scalars())
        if host is None and not row.hosts:
            raise InvalidInput([problem("SC0754", f"the service `{name}` has no host", "name one with --host")])
        chosen = host if host is not None else min(row.hosts, key=used.count)
        removed_hosts = [name for name in row.without["hosts"] if name != chosen]
        connection.execute(
            update(service).where(service.c.id == row.id).values(without={**row.without, "hosts": removed_hosts})
        )
        # The first unit on a host of the service's pattern is removed once the pattern no longer names the host.
        added = chosen not in row.hosts or chosen in used
        number = service_ends.add(connection, row.id, chosen, added, time.time())
        return _unit(connection, project, unit_name(name, number))

    return store.attempt(make)


def remove_unit(store: Store, project: str, name: str) -> UnitRow:
    """Mark a unit as dying; return it. Applies don't replace it while the playbook still names its host.

    :param name: SERVICE/NUMBER
    :raises InvalidInput: the unit does not exist
    """

    def drop(connection: Connection) -> UnitRow:
        row = _unit(connection, project, name)
        service_row = service_ends.find(connection, project, row.service)
        assert service_row is not None
        removed_hosts = service_row.without["hosts"]
        if row.host in service_row.hosts and not row.origin.added and row.host not in removed_hosts:
            without = {**service_row.without, "hosts": [*removed_hosts, row.host]}
            connection.execute(update(service).where(service.c.id == service_row.id).values(without=without))
        connection.execute(update(unit).where(unit.c.id == row.id).values(dying=True))
        return _unit(connection, project, name)

    return store.attempt(drop)


def forget_units(store: Store, project: str, host: str) -> list[str]:
    """Store that the units of a project on a host are gone; return their names. The next apply notifies other units."""

    def drop(connection: Connection) -> list[str]:
        rows = unit_rows.units_in(connection, project, host=host)
        for row in rows:
            unit_steps.gone_in(connection, row.id, time.time())
        return [row.name for row in rows]

    return store.attempt(drop)


def relate(store: Store, project: str, ends: Sequence[End]) -> bool:
    """Create a relation between two services, or between the units of one service.

    :param ends: two, of different services, or one for peers
    :returns: whether the relation is new
    :raises InvalidInput: a service does not exist
    """

    def make(connection: Connection) -> bool:
        rows = [_living(connection, project, name) for name, _ in ends]
        ends_text = service_ends.ends_text(ends)
        for row in rows:
            ended_relations = [ended for ended in row.without["relations"] if ended != ends_text]
            without = {**row.without, "relations": ended_relations}
            connection.execute(update(service).where(service.c.id == row.id).values(without=without))
        if _related(connection, project, ends) is not None:
            return False
        # A declared relation that was ended manually belongs to the playbook again.
        holders = [row.playbook for row in rows if ends_text in row.without["relations"]]
        services = service_ends.service_names(connection, project)
        unit_relations.begin(connection, holders[0] if holders else "", ends, services, time.time())
        return True

    return store.attempt(make)


def unrelate(store: Store, project: str, ends: Sequence[End]) -> bool:
    """End a relation; return whether it existed. Applies don't create it again while a playbook declares it."""

    def drop(connection: Connection) -> bool:
        row = _related(connection, project, ends)
        if row is None:
            return False
        unit_relations.end(connection, row.id)
        for name, _ in ends if row.playbook else ():
            service_row = _living(connection, project, name)
            if service_row.playbook == row.playbook:
                without = {
                    **service_row.without,
                    "relations": [*service_row.without["relations"], service_ends.ends_text(ends)],
                }
                connection.execute(update(service).where(service.c.id == service_row.id).values(without=without))
                break
        return True

    return store.attempt(drop)


def _related(connection: Connection, project: str, ends: Sequence[End]) -> Row[Any] | None:
    rows = connection.execute(select(service.c.id, service.c.name).where(service.c.project == project))
    names = {row.id: row.name for row in rows}
    wanted = tuple(sorted(ends))
    rows_of = service_ends.relations_of(connection, project)
    return next((row for row in rows_of if service_ends.ends_of(row, names) == wanted), None)


def set_settings(store: Store, project: str, name: str, values: Settings, reset: Iterable[str] = ()) -> Settings:
    """Set settings of a service manually; return all its manual settings.

    :param values: option → value of the type in the schema
    :param reset: options that return to the value of the playbook or the schema
    :raises InvalidInput: the service does not exist
    """
    reset_options = set(reset)

    def change(connection: Connection) -> Settings:
        row = _living(connection, project, name)
        overrides = {key: value for key, value in {**row.overrides, **values}.items() if key not in reset_options}
        connection.execute(update(service).where(service.c.id == row.id).values(overrides=overrides))
        return overrides

    return store.attempt(change)


def get_settings(store: Store, project: str, name: str) -> Settings:
    """Return the settings of a service as its units see them, without the secret ones.

    :raises InvalidInput: the service does not exist
    """
    with store.reading() as connection:
        return unit_rows.effective(_living(connection, project, name))


def resolve(store: Store, project: str, name: str, retry: bool) -> list[str]:
    """Continue a unit whose hooks failed; return these hooks.

    :param name: SERVICE/NUMBER
    :param retry: whether the next run retries them; otherwise they count as successful
    :raises InvalidInput: the unit does not exist
    """

    def change(connection: Connection) -> list[str]:
        id = _unit(connection, project, name).id
        return unit_steps.again_in(connection, id) if retry else unit_steps.resolved_in(connection, id, time.time())

    return store.attempt(change)


def _living(connection: Connection, project: str, name: str) -> Row[Any]:
    row = service_ends.find(connection, project, name)
    if row is None or not row.alive:
        raise InvalidInput([problem("SC0750", f"service `{name}` does not exist", "`statecfg service list` shows all")])
    return row


def _unit(connection: Connection, project: str, name: str) -> UnitRow:
    row = next((row for row in unit_rows.units_in(connection, project) if row.name == name), None)
    if row is None:
        raise InvalidInput([problem("SC0752", f"unit `{name}` does not exist", "`statecfg service list` shows all")])
    return row
