"""Create the services, units and relations that a playbook declares, and end those that it no longer declares.

All functions work on a connection inside a transaction of the caller.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, insert, select, update

from statecfg.problems import InvalidInput, problem, suggest
from statecfg.store.service_tables import relation, relation_unit, service, unit
from statecfg.store.units import relations as unit_relations
from statecfg.store.units import rows as unit_rows
from statecfg.store.units.records import Declared, DeclaredRelation, End
from statecfg.store.units.relations import ADDRESS
from statecfg.units.rules import workflow

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
        _prune_services(connection, project, playbook, [each.name for each in declared])
    for each in declared:
        _units(connection, _service(connection, project, playbook, each, now), each, prune, now)
    for host, known in addresses.items():
        addressed_in(connection, project, host, known)
    _relations(connection, project, playbook, relations, prune, now)


def _refuse(connection: Connection, project: str, playbook: str, declared: Sequence[Declared]) -> None:
    taken = select(service.c.name, service.c.playbook).where(
        service.c.project == project, service.c.alive, service.c.playbook != playbook
    )
    others = {row.name: row.playbook for row in connection.execute(taken)}
    hint = "give it another name, or destroy it by the playbook that has it"
    wrong = [
        problem("SC0751", f"the service `{each.name}` belongs to {others[each.name]}", hint)
        for each in declared
        if each.name in others
    ]
    if wrong:
        raise InvalidInput(wrong)


def _service(connection: Connection, project: str, playbook: str, each: Declared, now: float) -> Row[Any]:
    known = find(connection, project, each.name)
    values: dict[str, Any] = {
        "playbook": playbook,
        "alive": True,
        "charm": each.charm,
        "digest": each.digest,
        "endpoints": {name: list(end) for name, end in each.endpoints.items()},
        "schema": dict(each.schema),
        "settings": dict(each.settings),
        "timeout": each.timeout,
        "hosts": list(each.hosts),
    }
    fresh = {"overrides": {}, "leader": {}, "without": NOTHING}
    if known is None:
        values |= {"salt": secrets.token_hex(16), "next": 0, "created": now, **fresh}
        values["secrets"] = unit_rows.secrets_digest(values["salt"], each.secrets)
        connection.execute(insert(service).values(project=project, name=each.name, **values))
    else:
        values["secrets"] = unit_rows.secrets_digest(known.salt, each.secrets)
        held = [host for host in known.without["hosts"] if host in each.hosts]
        values |= fresh if not known.alive else {"without": {**known.without, "hosts": held}}
        connection.execute(update(service).where(service.c.id == known.id).values(values))
    found = find(connection, project, each.name)
    assert found is not None
    return found


def find(connection: Connection, project: str, name: str) -> Row[Any] | None:
    """Return the row of a service, also if it was destroyed; None if it never existed."""
    return connection.execute(select(service).where(service.c.project == project, service.c.name == name)).one_or_none()


def _units(connection: Connection, owner: Row[Any], each: Declared, prune: bool, now: float) -> None:
    there = connection.execute(
        select(unit).where(unit.c.service == owner.id, ~unit.c.dying, ~unit.c.gone).order_by(unit.c.number)
    ).all()
    served = {row.host for row in there} | set(owner.without["hosts"])
    for host in each.hosts:
        if host not in served:
            add(connection, owner.id, host, False, now)
    for row in there if prune else ():
        if not row.added and row.host not in each.hosts:
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
    gone = select(service.c.id).where(service.c.project == project, service.c.playbook == playbook)
    for number in connection.execute(gone.where(service.c.alive, service.c.name.not_in(names))).scalars().all():
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
    asked = select(relation).join(service, relation.c.service == service.c.id)
    live = asked.where(service.c.project == project, ~relation.c.dying)
    return list(connection.execute(live.order_by(relation.c.id)).all())


def ends_of(row: Row[Any], names: Mapping[int, str]) -> tuple[End, ...]:
    """Return the ends of a relation, sorted.

    :param names: id of a service → name
    """
    ends = [(names[row.service], row.name)]
    return tuple(sorted([*ends, (names[row.other], row.other_name)] if row.other is not None else ends))


def shown(ends: Iterable[End]) -> str:
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
    declared = [tuple(sorted(each.ends)) for each in relations]
    _known_services(declared, services)
    there = {ends_of(row, names): row for row in relations_of(connection, project)}
    for ends, row in there.items():
        if prune and row.playbook == playbook and ends not in declared:
            unit_relations.end(connection, row.id)
    held = _withheld(connection, services, playbook, declared)
    for each, ends in zip(relations, declared, strict=True):
        if ends not in there and shown(ends) not in held:
            unit_relations.begin(connection, playbook, each.ends, services, now)


def _known_services(declared: Sequence[tuple[End, ...]], services: Mapping[str, int]) -> None:
    wrong = [
        problem("SC0750", f"there is no service `{name}` to relate to", suggest(name, services, "there are"))
        for ends in declared
        for name, _ in ends
        if name not in services
    ]
    if wrong:
        raise InvalidInput(wrong)


def _withheld(
    connection: Connection, services: Mapping[str, int], playbook: str, declared: Sequence[tuple[End, ...]]
) -> set[str]:
    """Return the relations that were ended manually, as `shown`. Forget those that are no longer declared."""
    wanted = {shown(ends) for ends in declared}
    rows = connection.execute(
        select(service).where(service.c.id.in_(services.values()), service.c.playbook == playbook)
    )
    held: set[str] = set()
    for row in rows.all():
        kept = [each for each in row.without["relations"] if each in wanted]
        held.update(kept)
        if kept != row.without["relations"]:
            without = {**row.without, "relations": kept}
            connection.execute(update(service).where(service.c.id == row.id).values(without=without))
    return held


def addressed_in(connection: Connection, project: str, host: str, addresses: Mapping[str, str]) -> set[int]:
    """Store the addresses of a host, for its units and in their relation settings.

    Don't change an address in relation settings that a hook has changed.

    :param addresses: "private-address" and "public-address"
    :returns: the units that are notified of changed relation settings
    """
    mine = select(service.c.id).where(service.c.project == project)
    there = select(unit).where(unit.c.service.in_(mine), unit.c.host == host, ~unit.c.gone)
    told: set[int] = set()
    for row in connection.execute(there.order_by(unit.c.id)).all():
        if row.addresses == dict(addresses):
            continue
        connection.execute(update(unit).where(unit.c.id == row.id).values(addresses=dict(addresses)))
        told |= _readdressed(connection, row, addresses.get(ADDRESS))
    return told


def _readdressed(connection: Connection, row: Row[Any], address: str | None) -> set[int]:
    before = row.addresses.get(ADDRESS)
    there = (
        select(relation_unit, relation.c.dying)
        .join(relation, relation_unit.c.relation == relation.c.id)
        .where(relation_unit.c.unit == row.id, ~relation_unit.c.gone)
    )
    told: set[int] = set()
    for each in connection.execute(there).all():
        if address is not None and address != before and each.settings.get(ADDRESS) == before:
            this = and_(relation_unit.c.relation == each.relation, relation_unit.c.unit == row.id)
            settings = {**each.settings, ADDRESS: address}
            connection.execute(update(relation_unit).where(this).values(settings=settings))
            told |= set() if each.dying else unit_relations.tell_changed(connection, each.relation, row.id)
    return told
