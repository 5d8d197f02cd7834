"""Hook objects: their configuration, the queue of their invocations, and the log of what came of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    CursorResult,
    Row,
    Text,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from statecfg.remote.hooks.result import Judged, complete
from statecfg.store.database import Store
from statecfg.store.tables import binding, event, hook, host, invocation

KEPT = 100_000  # events that the log keeps, the newest
DEADLINE = "PT30S"

Schema = Mapping[str, Mapping[str, Any]]
Judge = Callable[[dict[str, Any], dict[str, Any] | None], Judged]


@dataclass(frozen=True, slots=True)
class Spec:
    """What a hook is called for, and how; nothing selects everything.

    :param hosts: pattern of the inventory
    :param types: of nodes
    :param names: of nodes, `*` and `?` standing for any letters
    :param tags: of nodes
    :param events: those it is called for
    :param where: "controller" or "host"
    :param order: hooks of one resource event are called by order, then by name
    :param deadline: of one invocation, ISO 8601
    :param on_failure: "abort", "continue" or "retry": what follows a failure at a resource event
    :param declared: it was made by a project that declares it, and is called where one still does
    """

    hosts: str | None = None
    types: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    where: str = "controller"
    order: int = 100
    deadline: str = DEADLINE
    on_failure: str = "abort"
    declared: bool = False


@dataclass(frozen=True, slots=True)
class HookObject:
    """A hook.

    :param id: its number; never given again
    :param name: as it was created
    :param type: name of its type
    :param folder: where its type was then
    :param configuration: as it stands
    :param spec: what it is called for
    :param access: the users who have Full Control
    :param created: seconds since 1970
    """

    id: int
    name: str
    type: str
    folder: str
    configuration: dict[str, Any]
    spec: Spec
    access: tuple[str, ...]
    created: float


@dataclass(frozen=True, slots=True)
class Queued:
    """An invocation that is still to be run.

    :param id: its place in the queue
    :param hook: whose
    :param event: what for
    :param host: number of the host it is about, None for none
    :param given: what was known when it was queued: "node" and "policy", as the program reads them
    :param playbook: the policy's name
    :param started: how often it was begun and never ended, because whoever ran it was killed
    """

    id: int
    hook: HookObject
    event: str
    host: int | None
    given: dict[str, Any]
    playbook: str | None
    started: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An entry of the log.

    :param at: seconds since 1970
    :param hook: name of the hook, None once that is deleted
    :param host: name of the host, None for none and once that is forgotten
    :param playbook: the policy's name
    :param severity: "info", "warn" or "error"
    :param entry: as Razor's log has it
    :param detail: what that does not say
    :param invocation: its place in the queue, None for what was never queued
    """

    id: int
    at: float
    hook: str | None
    host: str | None
    playbook: str | None
    severity: str
    entry: dict[str, Any]
    detail: str
    invocation: int | None


def create(
    store: Store, name: str, type: str, folder: str, configuration: Mapping[str, Any], spec: Spec, user: str
) -> tuple[HookObject, list[str]]:
    """Make a hook; return it, and in which fields one of that name that was there already differs.

    :param configuration: complete, with its defaults
    :param user: who gets Full Control
    """

    def make(connection: Connection) -> tuple[HookObject, list[str]]:
        known = find(connection, name)
        if known is not None:
            asked = {"name": name, "hook_type": type, "configuration": dict(configuration), **asdict(spec)}
            stands = {"name": known.name, "hook_type": known.type, "configuration": known.configuration}
            stands.update(asdict(known.spec))
            return known, [field for field in asked if not _same(asked[field], stands[field])]
        connection.execute(
            insert(hook).values(
                name=name,
                folded=name.casefold(),
                type=type,
                folder=folder,
                configuration=dict(configuration),
                spec=asdict(spec),
                access=[user],
                created=time.time(),
            )
        )
        made = find(connection, name)
        assert made is not None
        return made, []

    return store.attempt(make)


def _same(one: Any, other: Any) -> bool:
    """Compare JSON values: true is not 1, and 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def remove(store: Store, name: str) -> str:
    """Delete a hook and what is queued for it; return what was done, in Razor's words. Its events stay."""

    def drop(connection: Connection) -> bool:
        return connection.execute(delete(hook).where(hook.c.folded == name.casefold())).rowcount == 1

    return f"hook {name} destroyed" if store.attempt(drop) else f"no changes; hook {name} does not exist"


def get(store: Store, name: str) -> HookObject | None:
    """Return a hook by its name, upper and lower case being the same; None for none."""
    with store.reading() as connection:
        return find(connection, name)


def every(store: Store) -> list[HookObject]:
    """Return all hooks, in the order in which they were made."""
    with store.reading() as connection:
        return all_of(connection)


def all_of(connection: Connection) -> list[HookObject]:
    """Return all hooks, in the order in which they were made."""
    return [_hook(row) for row in connection.execute(select(hook).order_by(hook.c.id))]


def find(connection: Connection, name: str) -> HookObject | None:
    """Return a hook by its name, inside a transaction."""
    row = connection.execute(select(hook).where(hook.c.folded == name.casefold())).one_or_none()
    return None if row is None else _hook(row)


def _hook(row: Row[Any]) -> HookObject:
    values: dict[str, Any] = dict(row._mapping)
    spec: dict[str, Any] = {key: tuple(one) if isinstance(one, list) else one for key, one in values["spec"].items()}
    values.update(spec=Spec(**spec), access=tuple(values["access"]))
    del values["folded"]
    return HookObject(**values)


def set_keys(store: Store, name: str, values: Mapping[str, Any], schema: Schema) -> tuple[list[str], list[str]]:
    """Change keys of a hook's configuration, all or none; return what was done, and what is not allowed."""

    def change(configuration: dict[str, Any], key: str) -> tuple[bool, str]:
        configuration[key] = values[key]
        if key not in schema:
            return False, f"configuration key {key} is not in the schema and must be cleared"
        return True, f"value for key {key} updated"

    return _configure(store, name, values, change)


def unset_keys(store: Store, name: str, keys: Iterable[str], schema: Schema) -> tuple[list[str], list[str]]:
    """Take keys out of a hook's configuration, or back to their defaults; otherwise as `set_keys`."""

    def change(configuration: dict[str, Any], key: str) -> tuple[bool, str]:
        there = key in configuration
        configuration.pop(key, None)
        whole, wrong = complete({key: dict(schema[key])} if key in schema else {}, {})
        if wrong:
            return False, f"cannot clear required configuration key {key}"
        configuration.update(whole)
        if whole:
            return True, f"value for key {key} reset to default"
        return True, f"key {key} removed from configuration" if there else f"no changes; key {key} already absent"

    return _configure(store, name, keys, change)


def _configure(
    store: Store, name: str, keys: Iterable[str], change: Callable[[dict[str, Any], str], tuple[bool, str]]
) -> tuple[list[str], list[str]]:
    asked = list(keys)

    def write(connection: Connection) -> tuple[list[str], list[str]]:
        known = find(connection, name)
        if known is None:
            return [], [f"hook {name} does not exist"]
        configuration = dict(known.configuration)
        outcomes = [change(configuration, key) for key in asked]
        refused = [said for allowed, said in outcomes if not allowed]
        if refused:
            return [], refused
        connection.execute(update(hook).where(hook.c.id == known.id).values(configuration=configuration))
        return [said for _, said in outcomes], []

    return store.attempt(write)


def grant(store: Store, name: str, user: str, more: bool = True) -> bool:
    """Give a user Full Control of a hook, or take it; return whether anything changed."""

    def change(connection: Connection) -> bool:
        known = find(connection, name)
        if known is None or (user in known.access) == more:
            return False
        access = [*known.access, user] if more else [each for each in known.access if each != user]
        connection.execute(update(hook).where(hook.c.id == known.id).values(access=access))
        return True

    return store.attempt(change)


# The queue


def enqueue(connection: Connection, items: Iterable[Queued]) -> list[int]:
    """Put invocations at the queue's end; return their places."""
    places = []
    for item in items:
        values = {
            "hook": item.hook.id,
            "event": item.event,
            "host": item.host,
            "given": item.given,
            "playbook": item.playbook,
            "queued": time.time(),
            "started": 0,
        }
        places.append(_place(connection.execute(insert(invocation).values(values))))
    return places


def last(store: Store) -> int:
    """Return the last place in the queue, 0 where it is empty."""
    with store.reading() as connection:
        return int(connection.execute(select(func.coalesce(func.max(invocation.c.id), 0))).scalar_one())


def waiting(store: Store) -> int:
    """Return how many invocations are queued."""
    with store.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(invocation)).scalar_one())


def bound(store: Store, playbook: str) -> int:
    """Return to how many hosts a playbook is bound."""
    with store.reading() as connection:
        asked = select(func.count()).select_from(binding).where(binding.c.playbook == playbook)
        return int(connection.execute(asked).scalar_one())


def pending(store: Store) -> list[Queued]:
    """Return the invocations that are queued, in the order in which they will run."""
    with store.reading() as connection:
        rows = connection.execute(select(invocation).order_by(invocation.c.id)).all()
        owners = {row.id: _hook(row) for row in connection.execute(select(hook))}
    return [Queued(row.id, owners[row.hook], row.event, row.host, row.given, row.playbook, row.started) for row in rows]


def begin(connection: Connection, upto: int) -> Queued | None:
    """Return the first of the queue, its place at most `upto`, and count that it is begun; None for none."""
    first = select(invocation).where(invocation.c.id <= upto).order_by(invocation.c.id).limit(1)
    row = connection.execute(first).one_or_none()
    if row is None:
        return None
    connection.execute(update(invocation).where(invocation.c.id == row.id).values(started=row.started + 1))
    owner = _hook(connection.execute(select(hook).where(hook.c.id == row.hook)).one())
    return Queued(row.id, owner, row.event, row.host, row.given, row.playbook, row.started)


def settle(connection: Connection, item: Queued, judge: Judge) -> Judged:
    """Store what came of an invocation, and take it off the queue; return it.

    :param judge: gets the hook's configuration and the host's metadata as they stand now, says what they are to be
    """
    configured = connection.execute(select(hook.c.configuration).where(hook.c.id == item.hook.id)).one_or_none()
    met = connection.execute(select(host.c.metadata).where(host.c.id == item.host)).one_or_none()
    node = item.given.get("node")
    metadata = met.metadata if met is not None else None if node is None else node.get("metadata", {})
    judged = judge(configured.configuration if configured is not None else item.hook.configuration, metadata)
    connection.execute(update(hook).where(hook.c.id == item.hook.id).values(configuration=judged.configuration))
    if met is not None:
        connection.execute(update(host).where(host.c.id == item.host).values(metadata=judged.metadata))
    connection.execute(delete(invocation).where(invocation.c.id == item.id))
    log(connection, item, judged)
    return judged


def log(connection: Connection, item: Queued, judged: Judged) -> None:
    """Write what came of an invocation into the log."""
    values = {
        "at": time.time(),
        # Who was deleted meanwhile is not named.
        "hook": select(hook.c.id).where(hook.c.id == item.hook.id).scalar_subquery(),
        "host": select(host.c.id).where(host.c.id == item.host).scalar_subquery(),
        "playbook": item.playbook,
        "invocation": item.id or None,
        "severity": judged.severity,
        "entry": judged.entry,
        "detail": judged.detail,
    }
    connection.execute(
        delete(event).where(event.c.id <= _place(connection.execute(insert(event).values(values))) - KEPT)
    )


def _place(inserted: CursorResult[Any]) -> int:
    key = inserted.inserted_primary_key
    assert key is not None
    return int(key[0])


def events(
    store: Store,
    name: str | None = None,
    limit: int | None = None,
    start: int = 0,
    invocations: Sequence[int] = (),
    about: str | None = None,
) -> list[Event]:
    """Return the log, newest first.

    :param name: of one hook only
    :param limit: at most so many
    :param start: leave out so many of the newest
    :param invocations: of these places in the queue only
    :param about: of this host only
    """
    asked = (
        select(event, hook.c.name.label("hook_name"), host.c.name.label("host_name"))
        .outerjoin(hook, event.c.hook == hook.c.id)
        .outerjoin(host, event.c.host == host.c.id)
        .order_by(event.c.id.desc())
        .offset(start)
    )
    if name is not None:
        # An HTTP hook is no object of the store: the entry has its name.
        text = type_coerce(event.c.entry, Text).contains(f'"hook":{json.dumps(name)}', autoescape=True)
        asked = asked.where(or_(hook.c.folded == name.casefold(), and_(event.c.hook.is_(None), text)))
    if invocations:
        asked = asked.where(event.c.invocation.in_(invocations))
    if about is not None:
        asked = asked.where(host.c.name == about)
    # Of other projects' hosts, which may have the same names, nothing is shown.
    if not invocations:
        asked = asked.where(or_(host.c.id.is_(None), host.c.project.in_(("", store.project))))
    if limit is not None:
        asked = asked.limit(limit)
    with store.reading() as connection:
        return [_event(row) for row in connection.execute(asked)]


def _event(row: Row[Any]) -> Event:
    values: dict[str, Any] = dict(row._mapping)
    values.update(hook=values.pop("hook_name"), host=values.pop("host_name"))
    return Event(**values)
