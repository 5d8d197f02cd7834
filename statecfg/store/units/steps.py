"""Determine the next hook of a unit, and store its result, in one transaction.

All functions work on a connection inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, and_, delete, select, update

from statecfg.store.connection import Connection
from statecfg.store.service_tables import relation, relation_unit, service, unit, unit_event
from statecfg.store.units import relations as unit_relations
from statecfg.store.units import rows as unit_rows
from statecfg.store.units.records import (
    DueRelation,
    DueStep,
    Handled,
    StoredChange,
    StoredChanges,
    Surroundings,
    UnitNow,
    UnitRequestError,
)
from statecfg.store.units.relations import ANSWERED, unit_name
from statecfg.unit_rules import workflow
from statecfg.unit_rules.scheduler import MODIFIED, Queue
from statecfg.unit_rules.workflow import Due, Entered


def next_in(connection: Connection, unit_id: int, run: str | None) -> DueStep | None:
    """Return the hook that is due for a unit; None if no hook is due. Write nothing.

    :param run: don't retry hooks that failed in this run; None: retry all failed hooks
    :raises UnitRequestError: the unit does not exist
    """
    row, service_row = unit_rows.find(connection, unit_id)
    entered = unit_rows.relations_of(connection, unit_id)
    due = workflow.due(unit_rows.life(row, service_row), entered, run)
    return None if due is None else _step(connection, row, service_row, entered, due)


def _step(
    connection: Connection, row: Row[Any], service_row: Row[Any], entered: Sequence[Entered], due: Due
) -> DueStep:
    about = next((item for item in entered if item.key == due.relation), None)
    others = unit_rows.others(connection, service_row)
    members = {item.key: due.members if item is about else tuple(sorted(item.members)) for item in entered}
    return DueStep(
        unit=unit_name(service_row.name, row.number),
        unit_id=row.id,
        service=service_row.name,
        charm=service_row.charm,
        hook=due.hook,
        hooks=workflow.files(due.hook),
        timeout=service_row.timeout,
        last=due.hook == workflow.STOP,
        relation=None if about is None else _relation(about, due),
        now=UnitNow(
            leader=unit_rows.leader_of(connection, service_row.id) == row.number,
            ports=tuple(row.ports),
            status={"status": row.status, "message": row.message},
            failed_before=bool(row.error if about is None else about.failed),
        ),
        around=Surroundings(
            relations={item.id: members[item.key] for item in entered},
            services={item.id: others[item.key] for item in entered},
            goal=unit_rows.goal(connection, service_row),
        ),
        handled=Handled(
            digest=service_row.digest,
            config=unit_rows.config_digest(service_row),
            upto=0 if about is None else max((at for at, remote, _ in about.events if remote == due.remote), default=0),
        ),
    )


def _relation(about: Entered, due: Due) -> DueRelation:
    return DueRelation(
        id=about.id,
        number=int(about.id.rpartition(":")[2]),
        key=about.key,
        name=about.name,
        remote=due.remote,
        members=due.members,
        broken=due.event == workflow.BROKEN,
    )


def over_in(connection: Connection, unit_id: int) -> bool:
    """Return whether a unit is dying and has no hook left to run.

    :raises UnitRequestError: the unit does not exist
    """
    row, service_row = unit_rows.find(connection, unit_id)
    return workflow.over(unit_rows.life(row, service_row), unit_rows.relations_of(connection, unit_id))


def commit_in(connection: Connection, step: DueStep, run: str, changes: StoredChanges, now: float) -> set[int]:
    """Store the changes of a successful hook and the new state of its unit; return the units that have new events.

    :param run: the run in which the hook succeeded
    :param changes: merged key by key with the current settings
    :param now: seconds since 1970
    :raises UnitRequestError: the unit does not exist, or is not in a relation whose settings it changed
    """
    row, service_row = unit_rows.find(connection, step.unit_id)
    notified = _write(connection, row, service_row, changes)
    if step.relation is None:
        notified |= _moved(connection, row, step.hook, step.handled, now)
    else:
        about = step.relation
        notified |= _answered(connection, row.id, about.key, _hook_type(step), about.remote, step.handled.upto)
    return notified


def _hook_type(step: DueStep) -> str:
    """Return the last part of the name of a hook about a relation: joined, changed, departed or broken."""
    return step.hook.rpartition("-")[2]


def _write(connection: Connection, row: Row[Any], service_row: Row[Any], changes: StoredChanges) -> set[int]:
    notified: set[int] = set()
    for relation_id, change in sorted(changes.get("relations", {}).items()):
        own = in_relation(connection, row.id, relation_id)
        settings = merged(own.settings, change)
        if settings != own.settings:
            this = and_(relation_unit.c.relation == own.relation, relation_unit.c.unit == row.id)
            connection.execute(update(relation_unit).where(this).values(settings=settings))
            notified |= set() if own.dying else unit_relations.tell_changed(connection, own.relation, row.id)
    leader = merged(service_row.leader, changes.get("leader", {}))
    if leader != service_row.leader:
        connection.execute(update(service).where(service.c.id == service_row.id).values(leader=leader))
    return notified


def merged(settings: dict[str, str], change: StoredChange) -> dict[str, str]:
    """Return settings with a change applied."""
    gone = set(change.get("delete", ()))
    return {key: value for key, value in {**settings, **change.get("set", {})}.items() if key not in gone}


def in_relation(connection: Connection, unit_id: int, relation_id: str) -> Row[Any]:
    """Return the row of a unit in a relation, with a column `dying` of the relation.

    :param relation_id: id of the relation: NAME:NUMBER
    :raises UnitRequestError: the unit is not in the relation
    """
    name, _, number = relation_id.rpartition(":")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        own = (
            select(relation_unit, relation.c.dying)
            .join(relation, relation_unit.c.relation == relation.c.id)
            .where(relation.c.number == int(number), relation_unit.c.unit == unit_id)
            .where(relation_unit.c.name == name, ~relation_unit.c.gone)
        )
        row = connection.execute(own).one_or_none()
        if row is not None:
            return row
    raise UnitRequestError("UnitRelationStateNotFound", f"The unit is in no relation '{relation_id}'")


def _moved(connection: Connection, row: Row[Any], hook: str, handled: Handled, now: float) -> set[int]:
    """Store that a hook of the unit itself, not about a relation, succeeded; return the units that have new events."""
    state = workflow.reached(row.state, hook)
    values: dict[str, object] = {"state": state, "error": "", "failed": "", "why": "", "tried": ""}
    if hook in (workflow.INSTALL, workflow.UPGRADE):
        values["charm"] = handled.digest
    if hook == workflow.CONFIG:
        values["configured"] = handled.config
    if workflow.shown(row.state, row.error) != state:
        values["since"] = now
    connection.execute(update(unit).where(unit.c.id == row.id).values(values))
    return unit_relations.enter_all(connection, row.id) if hook == workflow.START and not row.dying else set()


def _answered(connection: Connection, unit_id: int, number: int, hook_type: str, remote: str, upto: int) -> set[int]:
    """Store that a hook about a relation succeeded. Remove the events that it handled; newer events stay due.

    :param hook_type: as `_hook_type` returns
    :returns: the units that are notified that this one left
    """
    this = and_(relation_unit.c.relation == number, relation_unit.c.unit == unit_id)
    row = connection.execute(select(relation_unit.c.members).where(this)).one_or_none()
    if row is None:
        return set()
    members = set(row.members)
    _take(connection, unit_id, number, remote, upto, members if hook_type == workflow.JOINED else None)
    if hook_type == workflow.JOINED:
        members.add(remote)
    elif hook_type == workflow.DEPARTED:
        members.discard(remote)
    left = hook_type == workflow.BROKEN
    notified = unit_relations.tell_left(connection, number, unit_id) if left else set()
    values = {"members": sorted(members), "gone": left, **ANSWERED}
    connection.execute(update(relation_unit).where(this).values(values))
    if hook_type in (workflow.DEPARTED, workflow.BROKEN):
        unit_relations.sweep(connection, [number])
    return notified


def _take(connection: Connection, unit_id: int, number: int, remote: str, upto: int, joined: set[str] | None) -> None:
    """Remove the events that a hook handled from the queue. After joined, changed is due at the same position.

    :param joined: for a joined hook, the members before it; None for other hooks
    """
    about = and_(unit_event.c.unit == unit_id, unit_event.c.relation == number, unit_event.c.remote == remote)
    seen = connection.execute(select(unit_event).where(about, unit_event.c.id <= upto).order_by(unit_event.c.id)).all()
    queue = Queue(joined or ())
    for event in seen:
        queue.happened(event.remote, event.op, event.id)
    first = queue.first() if joined is not None else None
    for event in seen:
        same = unit_event.c.id == event.id
        if first is not None and event.id == first.at:
            connection.execute(update(unit_event).where(same).values(op=MODIFIED))
        else:
            connection.execute(delete(unit_event).where(same))


def fail_in(connection: Connection, step: DueStep, run: str, error: str, now: float) -> None:
    """Store that a hook failed. Discard its changes. Another run retries it, or any run after `service resolved`.

    :param error: what went wrong
    :raises UnitRequestError: the unit does not exist
    """
    row, _ = unit_rows.find(connection, step.unit_id)
    if step.relation is None:
        charm = step.handled.digest
        announced = {workflow.CONFIG: step.handled.config, workflow.INSTALL: charm, workflow.UPGRADE: charm}
        failed = announced.get(step.hook, "")
        values = {"error": workflow.ERRORS[step.hook], "failed": failed, "why": error, "tried": run}
        since = now if row.error != values["error"] else row.since
        connection.execute(update(unit).where(unit.c.id == row.id).values(**values, since=since))
        return
    this = and_(relation_unit.c.relation == step.relation.key, relation_unit.c.unit == row.id)
    about = {"failed": step.hook, "remote": step.relation.remote, "upto": step.handled.upto}
    connection.execute(update(relation_unit).where(this).values(**about, why=error, tried=run))


def endless_in(connection: Connection, step: DueStep) -> None:
    """Store that a unit's hooks in a relation were stopped because they would never end."""
    if step.relation is not None:
        this = and_(relation_unit.c.relation == step.relation.key, relation_unit.c.unit == step.unit_id)
        connection.execute(update(relation_unit).where(this).values(unsettled=True))


def gone_in(connection: Connection, unit_id: int, now: float) -> set[int]:
    """Store that a unit is gone; return the notified units. The unit's number is never reused.

    :raises UnitRequestError: the unit does not exist
    """
    unit_rows.find(connection, unit_id)
    connection.execute(update(unit).where(unit.c.id == unit_id).values(gone=True, since=now))
    return unit_relations.leave(connection, unit_id)


def resolved_in(connection: Connection, unit_id: int, now: float) -> list[str]:
    """Continue a unit as if its failed hooks had succeeded without changes; return these hooks.

    Later events are still due: new settings or files, further changes of the remote unit.

    :raises UnitRequestError: the unit does not exist
    """
    row, _ = unit_rows.find(connection, unit_id)
    passed = []
    if row.error:
        hook = workflow.failed_hook(row.error)
        _moved(connection, row, hook, Handled(row.failed, row.failed, 0), now)
        passed.append(hook)
    for entered in unit_rows.relations_of(connection, unit_id):
        if entered.failed:
            passed.append(entered.failed)
            _passed(connection, unit_id, entered)
    return passed


def _passed(connection: Connection, unit_id: int, about: Entered) -> None:
    """Treat the failed hook of a relation as successful if it is still the one that is due there."""
    this = and_(relation_unit.c.relation == about.key, relation_unit.c.unit == unit_id)
    failed = connection.execute(select(relation_unit.c.remote, relation_unit.c.upto).where(this)).one()
    dying = connection.execute(select(unit.c.dying).where(unit.c.id == unit_id)).scalar_one()
    due = workflow.ended(about) if about.dying or dying else workflow.happening(about)
    if due is not None and (due.hook, due.remote) == (about.failed, failed.remote):
        _answered(connection, unit_id, about.key, due.event, due.remote, failed.upto)
    connection.execute(update(relation_unit).where(this).values(ANSWERED))


def again_in(connection: Connection, unit_id: int) -> list[str]:
    """Allow every run to retry the failed hooks of a unit; return these hooks.

    :raises UnitRequestError: the unit does not exist
    """
    row, _ = unit_rows.find(connection, unit_id)
    failed = [workflow.failed_hook(row.error)] if row.error else []
    failed += [entered.failed for entered in unit_rows.relations_of(connection, unit_id) if entered.failed]
    connection.execute(update(unit).where(unit.c.id == unit_id).values(tried=""))
    connection.execute(update(relation_unit).where(relation_unit.c.unit == unit_id).values(tried=""))
    return failed
