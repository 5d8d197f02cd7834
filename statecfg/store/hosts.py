"""Hosts in the store: their facts, tags, metadata and bound playbooks.

Two projects may have a host with the same name. Unless stated otherwise, a function works on the hosts of the project
for which the store was opened.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.events import HostEvent
from statecfg.store.connection import Connection, Row, from_json, row_of, to_json
from statecfg.store.database import Store

# Facts that change between runs although the host did not change.
VOLATILE = frozenset({"boot_id", "user"})
_FEW = 10  # hosts: finding more of them one by one takes longer than reading all hosts


@dataclass(frozen=True, slots=True)
class HostRecord:
    """A host in the store.

    :param id: its number; never reused
    :param name: its name in the inventory
    :param facts: its facts at the last contact
    :param tags: sorted
    :param metadata: key → JSON value, set by hooks and by users
    :param boot_id: its boot id at the last contact; "" if unknown
    :param ledger: lineage of its ledger; "" if unknown
    :param registered: time of the first contact (seconds since 1970); None if it was only tagged or bound
    :param last_checkin: time of the last contact; None if there was none
    :param installed: the playbook whose apply finished last; None if there is none
    :param installed_at: when that apply finished
    :param playbooks: the playbooks bound to it, sorted
    """

    id: int
    name: str
    facts: Mapping[str, Any]
    tags: list[str]
    metadata: Mapping[str, Any]
    boot_id: str
    ledger: str
    registered: float | None
    last_checkin: float | None
    installed: str | None
    installed_at: float | None
    playbooks: list[str]


def check_in(store: Store, name: str, facts: Mapping[str, Any], ledger: str, boot_id: str) -> list[str]:
    """Store that a host was contacted; return the events that this causes.

    :param facts: its current facts
    :param ledger: lineage of its ledger; "" if unknown
    :param boot_id: its current boot id; "" if unknown
    :returns: in this order: node-registered (first contact), node-facts-changed (also for the first facts, as in Razor;
        changes of `VOLATILE` facts don't count), node-booted (booted since the last contact)
    """
    now = time.time()

    def enter(connection: Connection) -> list[str]:
        record = ensure(connection, store.project, name)
        events = [
            event
            for event, true in (
                (HostEvent.REGISTERED, record.registered is None),
                (HostEvent.FACTS_CHANGED, _lasting(record.facts) != _lasting(facts)),
                (HostEvent.BOOTED, bool(record.boot_id and boot_id and record.boot_id != boot_id)),
            )
            if true
        ]
        connection.change(
            "UPDATE host SET facts = :facts, ledger = :ledger, boot_id = :boot_id, registered = :registered,"
            " last_checkin = :now WHERE id = :id",
            facts=to_json(dict(facts)),
            ledger=ledger or record.ledger,
            boot_id=boot_id or record.boot_id,
            registered=now if record.registered is None else record.registered,
            now=now,
            id=record.id,
        )
        return events

    return store.attempt(enter)


def _lasting(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in facts.items() if key not in VOLATILE}


def get(store: Store, name: str) -> HostRecord | None:
    """Return a host; None if the store does not have it."""
    with store.reading() as connection:
        return find(connection, store.project, name)


def named(store: Store, names: Collection[str]) -> dict[str, HostRecord]:
    """Return name → host, for the names that the store has."""
    if len(names) <= _FEW:
        return {name: record for name in names if (record := get(store, name)) is not None}
    return {record.name: record for record in every(store) if record.name in names}


def by_number(store: Store, number: int) -> HostRecord | None:
    """Return the host with this number, of any project; None if there is none."""
    with store.reading() as connection:
        row = row_of(connection, f"SELECT {_COLUMNS} FROM host WHERE id = :id", id=number)
        return None if row is None else _bound(connection, row)


def every(store: Store) -> list[HostRecord]:
    """Return all hosts, sorted by name."""
    with store.reading() as connection:
        bound: dict[int, list[str]] = {}
        for row in connection.rows("SELECT host, playbook FROM binding"):
            bound.setdefault(row["host"], []).append(row["playbook"])
        mine = f"SELECT {_COLUMNS} FROM host WHERE project IN ('', :project) ORDER BY name, project"
        # The project's own host comes last.
        rows = {row["name"]: row for row in connection.rows(mine, project=store.project)}
        return [_record(row, bound.get(row["id"], [])) for row in rows.values()]


def tag(store: Store, name: str, tags: Iterable[str]) -> HostRecord:
    """Add tags to a host; return the host. Create it if the store does not have it."""
    return _with_tags(store, name, set(tags), set())


def untag(store: Store, name: str, tags: Iterable[str]) -> HostRecord:
    """Remove tags from a host; return the host. Create it if the store does not have it."""
    return _with_tags(store, name, set(), set(tags))


def _with_tags(store: Store, name: str, more: set[str], less: set[str]) -> HostRecord:
    def change(connection: Connection) -> HostRecord:
        record = ensure(connection, store.project, name)
        tags = sorted((set(record.tags) | more) - less)
        connection.change("UPDATE host SET tags = :tags WHERE id = :id", tags=to_json(tags), id=record.id)
        return ensure(connection, store.project, name)

    return store.attempt(change)


def set_metadata(
    store: Store, name: str, update: Mapping[str, Any], remove: Iterable[str] = (), clear: bool = False
) -> HostRecord:
    """Change a host's metadata; return the host. See `change_metadata`."""

    def change(connection: Connection) -> HostRecord:
        change_metadata(connection, store.project, name, update, remove, clear)
        return ensure(connection, store.project, name)

    return store.attempt(change)


def bind(store: Store, name: str, playbook: str) -> bool:
    """Bind a playbook to a host. Create the host if the store does not have it.

    :param playbook: PROJECT/PATH
    :returns: whether it was not bound before
    """
    record = get(store, name)
    if record is not None and playbook in record.playbooks:
        return False
    return store.attempt(lambda connection: bind_in(connection, store.project, name, playbook))


def bound(store: Store, playbook: str) -> int:
    """Return the number of hosts, of all projects, to which a playbook is bound."""
    with store.reading() as connection:
        query = "SELECT count(*) AS number FROM binding WHERE playbook = :playbook"
        return int(connection.rows(query, playbook=playbook)[0]["number"])


def lineages(store: Store, playbook: str) -> dict[str, str]:
    """Return host → lineage of the ledger that contained a playbook's resources after the last run, if known."""
    with store.reading() as connection:
        rows = connection.rows(
            "SELECT host.name, binding.ledger FROM host JOIN binding ON binding.host = host.id"
            " WHERE host.project IN ('', :project) AND binding.playbook = :playbook AND binding.ledger <> ''",
            project=store.project,
            playbook=playbook,
        )
        return {row["name"]: row["ledger"] for row in rows}


def forget(store: Store, name: str) -> HostRecord | None:
    """Delete a host and its bindings; return the deleted host, or None if the store does not have it."""

    def drop(connection: Connection) -> HostRecord | None:
        record = find(connection, store.project, name)
        if record is not None:
            connection.change("DELETE FROM host WHERE id = :id", id=record.id)
        return record

    return store.attempt(drop)


# Functions for use inside a transaction of the caller


_COLUMNS = "id, name, facts, tags, metadata, boot_id, ledger, registered, last_checkin, installed, installed_at"


def find(connection: Connection, project: str, name: str) -> HostRecord | None:
    """Return a host of a project, or None. A host from 0.3.0 whose project is unknown belongs to every project."""
    query = (
        f"SELECT {_COLUMNS} FROM host WHERE name = :name AND project IN ('', :project) ORDER BY project DESC LIMIT 1"
    )
    row = row_of(connection, query, name=name, project=project)
    return None if row is None else _bound(connection, row)


def _bound(connection: Connection, row: Row) -> HostRecord:
    bound = connection.rows("SELECT playbook FROM binding WHERE host = :id", id=row["id"])
    return _record(row, [binding["playbook"] for binding in bound])


def ensure(connection: Connection, project: str, name: str) -> HostRecord:
    """Return a host of a project. If the store does not have it, create it as never contacted."""
    record = find(connection, project, name)
    if record is not None:
        # A host without a project now belongs to this project.
        adopt = "UPDATE host SET project = :project WHERE id = :id AND project = ''"
        connection.change(adopt, project=project, id=record.id)
        return record
    connection.change(
        "INSERT INTO host (project, name, facts, tags, metadata, boot_id, ledger)"
        " VALUES (:project, :name, '{}', '[]', '{}', '', '')",
        project=project,
        name=name,
    )
    return ensure(connection, project, name)


def bind_in(connection: Connection, project: str, name: str, playbook: str) -> bool:
    """Bind a playbook to a host; see `bind`."""
    record = ensure(connection, project, name)
    if playbook in record.playbooks:
        return False
    _bind(connection, record.id, playbook)
    return True


def _bind(connection: Connection, number: int, playbook: str) -> None:
    connection.change(
        "INSERT INTO binding (host, playbook, since, ledger) VALUES (:host, :playbook, :since, '')",
        host=number,
        playbook=playbook,
        since=time.time(),
    )


def went_by_in(connection: Connection, project: str, name: str, playbook: str, ledger: str) -> None:
    """Store which ledger contains the resources of a playbook that is bound to a host."""
    record = find(connection, project, name)
    if record is not None:
        _went_by(connection, record.id, playbook, ledger)


def _went_by(connection: Connection, number: int, playbook: str, ledger: str) -> None:
    connection.change(
        "UPDATE binding SET ledger = :ledger WHERE host = :host AND playbook = :playbook AND ledger <> :ledger",
        ledger=ledger,
        host=number,
        playbook=playbook,
    )


def installed_in(connection: Connection, project: str, name: str, playbook: str) -> HostRecord:
    """Store that an apply of a playbook has finished on a host; return the host as it was before."""
    record = ensure(connection, project, name)
    change = "UPDATE host SET installed = :playbook, installed_at = :now WHERE id = :id"
    connection.change(change, playbook=playbook, now=time.time(), id=record.id)
    return record


def applied_in(connection: Connection, project: str, name: str, playbook: str, ledger: str) -> bool:
    """Store that an apply of a playbook has finished on a host, and bind the playbook to the host.

    :param ledger: the ledger that contains its resources; "" if it is as before
    :returns: whether the playbook was not bound before
    """
    record = installed_in(connection, project, name, playbook)
    new = playbook not in record.playbooks
    if new:
        _bind(connection, record.id, playbook)
    if ledger:
        _went_by(connection, record.id, playbook, ledger)
    return new


def unbind_in(connection: Connection, project: str, name: str, playbook: str) -> bool:
    """Unbind a playbook from a host; return whether it was bound."""
    record = find(connection, project, name)
    if record is None:
        return False
    of_host = {"host": record.id, "playbook": playbook}
    connection.change(
        "UPDATE host SET installed = NULL, installed_at = NULL WHERE id = :host AND installed = :playbook", **of_host
    )
    return connection.change("DELETE FROM binding WHERE host = :host AND playbook = :playbook", **of_host) == 1


def change_metadata(
    connection: Connection,
    project: str,
    name: str,
    update: Mapping[str, Any],
    remove: Iterable[str] = (),
    clear: bool = False,
) -> None:
    """Change the metadata of a host.

    :param update: key → JSON value
    :param remove: keys to remove; missing keys are ignored
    :param clear: remove all keys; overrides `update`. Source: Razor
    """
    record = ensure(connection, project, name)
    removed = set(remove)
    metadata = (
        {} if clear else {key: value for key, value in {**record.metadata, **update}.items() if key not in removed}
    )
    change = "UPDATE host SET metadata = :metadata WHERE id = :id"
    connection.change(change, metadata=to_json(metadata), id=record.id)


def _record(row: Row, playbooks: Iterable[str]) -> HostRecord:
    values = {**row, **{name: from_json(row[name]) for name in ("facts", "tags", "metadata")}}
    return HostRecord(**values, playbooks=sorted(playbooks))
