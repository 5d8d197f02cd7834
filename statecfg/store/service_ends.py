"""Create the services, units and relations that a playbook declares, and end those that it no longer declares.

All functions work on a connection inside a transaction of the caller.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, and_, insert, select, update

from statecfg.problems import InvalidInput, problem, suggest
from statecfg.store.connection import Connection
from statecfg.store.service_tables import relation, relation_unit, service, unit
from statecfg.store.units import relations as unit_relations
from statecfg.store.units import rows as unit_rows
from statecfg.store.units.records import Declared, DeclaredRelation, End
from statecfg.store.units.relations import ADDRESS
from statecfg.unit_rules import workflow

NOTHING: dict[str, list[str]] = {"hosts": [], "relations": []}


def deploy_in(
    connection: Connection,
    project: str,
    playbook: str,
    declared: Sequence[Declared],
    relations: Sequence[DeclaredRelation],
    addresses: Mapping[str, Mapping[str, str]],
    prune: bool,
    now: float,
) -> None:
    """Create or update the services that a playbook declares, and create their missing units and relations.

    :param playbook: PROJECT/PATH
    :param declared: its services; each host of a service without a unit of it gets one
    :param relations: its relations
    :param addresses: host → its addresses, for hosts with known addresses
    :param prune: whether to end what the playbook no longer declares
    :param now: seconds since 1970
    :raises InvalidInput: another playbook has a service with this name, or a related service does not exist
    """
    _refuse(connection, project, playbook, declared)
    if prune:
        _prune_services(connection, project, playbook, [item.name for item in declared])
    for item in declared:
        _units(connection, _service(connection, project, playbook, item, now), item, prune, now)
    for host, addresses_of_host in addresses.items():
        addressed_in(connection, project, host, addresses_of_host)
    _relations(connection, project, playbook, relations, prune, now)


def _refuse(connection: Connection, project: str, playbook: str, declared: Sequence[Declared]) -> None:
    taken = select(service.c.name, service.c.playbook).where(
        service.c.project == project, service.c.alive, service.c.playbook != playbook
    )
    others = {row.name: row.playbook for row in connection.execute(taken)}
    hint = "give it another name, or destroy it by the playbook that has it"
    problems = [
        problem("SC0751", f"the service `{item.name}` belongs to {others[item.name]}", hint)
        for item in declared
        if item.name in others
    ]
    if problems:
        raise InvalidInput(problems)


def _service(connection: Connection, project: str, playbook: str, declared: Declared, now: float) -> Row[Any]:
    current = find(connection, project, declared.name)
    salt = secrets.token_hex(16) if current is None else current.salt
    values: dict[str, object] = {
        "playbook": playbook,
        "alive": True,
        "charm": declared.charm,
        "digest": declared.digest,
        "endpoints": {name: list(end) for name, end in declared.endpoints.items()},
        "schema": dict(declared.schema),
        "settings": dict(declared.settings),
        "timeout": declared.timeout,
        "hosts": list(declared.hosts),
        "secrets": unit_rows.secrets_digest(salt, declared.secrets),
    }
    fresh: dict[str, object] = {"overrides": {}, "leader": {}, "without": NOTHING}
    if current is None:
        values |= {"project": project, "name": declared.name, "salt": salt, "next": 0, "created": now, **fresh}
        connection.execute(insert(service).values(values))
    else:
        removed_hosts = [host for host in current.without["hosts"] if host in declared.hosts]
        values |= {"without": {**current.without, "hosts": removed_hosts}} if current.alive else fresh
        connection.execute(update(service).where(service.c.id == current.id).values(values))
    row = find(connection, project, declared.name)
    assert row is not None
    return row


def find(connection: Connection, project: str, name: str) -> Row[Any] | None:
    """Return the row of a service, also if it was destroyed; None if it never existed."""
    return connection.execute(select(service).where(service.c.project == project, service.c.name == name)).one_or_none()


def _units(connection: Connection, owner: Row[Any], declared: Declared, prune: bool, now: float) -> None:
    units = connection.execute(
        select(unit).where(unit.c.service == owner.id, ~unit.c.dying, ~unit.c.gone).order_by(unit.c.number)
    ).all()
    served = {row.host for row in units} | set(owner.without["hosts"])
    for host in declared.hosts:
        if host not in served:
            add(connection, owner.id, host, False, now)
    for row in units if prune else ():
        if not row.added and row.host not in declared.hosts:
            connection.execute(update(unit).where(unit.c.id == row.id).values(dying=True))


def add(connection: Connection, service_id: int, host: str, added: bool, now: float) -> int:
    """Create a unit; return its number.

    :param added: whether it was added manually; then it stays even if the service's pattern does not name its host
    """
    number = int(connection.execute(select(service.c.next).where(service.c.id == service_id)).scalar_one())
    connection.execute(update(service).where(service.c.id == service_id).values(next=number + 1))
    empty = dict.fromkeys(("error", "failed", "why", "tried", "charm", "configured", "status", "message"), "")
    values = {"state": workflow.NEW, "dying": False, "gone": False, "addresses": {}, "ports": [], "since": now}
    connection.execute(
        insert(unit).values(service=service_id, number=number, host=host, added=added, **values, **empty)
    )
    return number


def _prune_services(connection: Connection, project: str, playbook: str, names: Sequence[str]) -> None:
    query = select(service.c.id).where(service.c.project == project, service.c.playbook == playbook)
    for number in connection.execute(query.where(service.c.alive, service.c.name.not_in(names))).scalars().all():
        _end(connection, number)


def _end(connection: Connection, service_id: int) -> None:
    """Destroy a service: end its relations and mark its units as dying. Keep its row with the next unit number."""
    connection.execute(update(service).where(service.c.id == service_id).values(alive=False, overrides={}))
    unit_relations.end_all(connection, service_id)
    connection.execute(update(unit).where(unit.c.service == service_id, ~unit.c.gone).values(dying=True))


def leave_in(connection: Connection, project: str, playbook: str, hosts: Sequence[str], now: float) -> None:
    """Destroy a playbook's units on these hosts, and its services that have no units on other hosts.

    :param hosts: the hosts of the run
    :param now: seconds since 1970
    """
    mine = select(service.c.id).where(service.c.project == project, service.c.playbook == playbook, service.c.alive)
    left = False
    for number in connection.execute(mine).scalars().all():
        there = and_(unit.c.service == number, ~unit.c.gone)
        connection.execute(update(unit).where(there, unit.c.host.in_(hosts)).values(dying=True))
        if connection.execute(select(unit.c.id).where(there, ~unit.c.dying).limit(1)).first() is None:
            _end(connection, number)
        else:
            left = True
    for row in relations_of(connection, project):
        if row.playbook == playbook and not left:
            unit_relations.end(connection, row.id)


def relations_of(connection: Connection, project: str) -> list[Row[Any]]:
    """Return the rows of a project's relations that are not ending, in the order of their creation."""
    query = select(relation).join(service, relation.c.service == service.c.id)
    live = query.where(service.c.project == project, ~relation.c.dying)
    return list(connection.execute(live.order_by(relation.c.id)).all())


def ends_of(row: Row[Any], names: Mapping[int, str]) -> tuple[End, ...]:
    """Return the ends of a relation, sorted.

    :param names: id of a service → name
    """
    ends = [(names[row.service], row.name)]
    return tuple(sorted([*ends, (names[row.other], row.other_name)] if row.other is not None else ends))


def ends_text(ends: Iterable[End]) -> str:
    """Return the ends of a relation as text, such as `db:db web:db`."""
    return " ".join(f"{name}:{called}" for name, called in sorted(ends))


def service_names(connection: Connection, project: str) -> dict[str, int]:
    """Return the services of a project that were not destroyed: name → id, sorted by name."""
    rows = connection.execute(select(service).where(service.c.project == project, service.c.alive))
    return {row.name: row.id for row in sorted(rows, key=lambda row: str(row.name))}


def _relations(
    connection: Connection,
    project: str,
    playbook: str,
    relations: Sequence[DeclaredRelation],
    prune: bool,
    now: float,
) -> None:
    services = service_names(connection, project)
    every = connection.execute(select(service.c.id, service.c.name).where(service.c.project == project))
    names = {row.id: row.name for row in every}
    declared = [tuple(sorted(item.ends)) for item in relations]
    _check_services(declared, services)
    existing = {ends_of(row, names): row for row in relations_of(connection, project)}
    for ends, row in existing.items():
        if prune and row.playbook == playbook and ends not in declared:
            unit_relations.end(connection, row.id)
    withheld = _withheld(connection, services, playbook, declared)
    for item, ends in zip(relations, declared, strict=True):
        if ends not in existing and ends_text(ends) not in withheld:
            unit_relations.begin(connection, playbook, item.ends, services, now)


def _check_services(declared: Sequence[tuple[End, ...]], services: Mapping[str, int]) -> None:
    problems = [
        problem("SC0750", f"the relation names the unknown service `{name}`", suggest(name, services, "available"))
        for ends in declared
        for name, _ in ends
        if name not in services
    ]
    if problems:
        raise InvalidInput(problems)


def _withheld(
    connection: Connection, services: Mapping[str, int], playbook: str, declared: Sequence[tuple[End, ...]]
) -> set[str]:
    """Return the relations that were ended manually, as `ends_text`. Forget those that are no longer declared."""
    wanted = {ends_text(ends) for ends in declared}
    rows = connection.execute(
        select(service).where(service.c.id.in_(services.values()), service.c.playbook == playbook)
    )
    withheld: set[str] = set()
    for row in rows.all():
        kept = [ended for ended in row.without["relations"] if ended in wanted]
        withheld.update(kept)
        if kept != row.without["relations"]:
            without = {**row.without, "relations": kept}
            connection.execute(update(service).where(service.c.id == row.id).values(without=without))
    return withheld


def addressed_in(connection: Connection, project: str, host: str, addresses: Mapping[str, str]) -> set[int]:
    """Store the addresses of a host, for its units and in their relation settings.

    Don't change an address in relation settings that a hook has changed.

    :param addresses: "private-address" and "public-address"
    :returns: the units that are notified of changed relation settings
    """
    mine = select(service.c.id).where(service.c.project == project)
    units = select(unit).where(unit.c.service.in_(mine), unit.c.host == host, ~unit.c.gone)
    notified: set[int] = set()
    for row in connection.execute(units.order_by(unit.c.id)).all():
        if row.addresses == dict(addresses):
            continue
        connection.execute(update(unit).where(unit.c.id == row.id).values(addresses=dict(addresses)))
        notified |= _readdressed(connection, row, addresses.get(ADDRESS))
    return notified


def _readdressed(connection: Connection, row: Row[Any], address: str | None) -> set[int]:
    before = row.addresses.get(ADDRESS)
    relations = (
        select(relation_unit, relation.c.dying)
        .join(relation, relation_unit.c.relation == relation.c.id)
        .where(relation_unit.c.unit == row.id, ~relation_unit.c.gone)
    )
    notified: set[int] = set()
    for own in connection.execute(relations).all():
        if address is not None and address != before and own.settings.get(ADDRESS) == before:
            this = and_(relation_unit.c.relation == own.relation, relation_unit.c.unit == row.id)
            settings = {**own.settings, ADDRESS: address}
            connection.execute(update(relation_unit).where(this).values(settings=settings))
            notified |= set() if own.dying else unit_relations.tell_changed(connection, own.relation, row.id)
    return notified
