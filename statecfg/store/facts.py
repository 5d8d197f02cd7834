"""The facts of hosts that definitions used, as the hosts last sent them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from statecfg.facts.catalogue import NAMES, OWN, wrong_fact
from statecfg.facts.recorded import StoredFacts
from statecfg.store import hosts
from statecfg.store.connection import Connection, from_json, to_json
from statecfg.store.database import Store


def keep(store: Store, name: str, values: Mapping[str, Any]) -> None:
    """Store facts of a host; other facts of the host stay as they are.

    :param name: the host
    :param values: name of a fact → value
    """
    now = time.time()

    def enter(connection: Connection) -> None:
        number = hosts.ensure(connection, store.project, name).id
        rows = [{"host": number, "name": fact, "value": to_json(value), "at": now} for fact, value in values.items()]
        connection.change("DELETE FROM host_fact WHERE host = :host AND name = :name", *rows)
        connection.change("INSERT INTO host_fact (host, name, value, at) VALUES (:host, :name, :value, :at)", *rows)

    if values:
        store.attempt(enter)


def known(store: Store) -> dict[str, StoredFacts]:
    """Return host → the facts that the store knows, with their times.

    These are the facts that definitions used, and those that every host sends when a playbook is applied.
    """
    values: dict[str, dict[str, Any]] = {}
    times: dict[str, dict[str, float]] = {}
    for record in hosts.every(store):
        usual = {fact: record.facts[fact] for fact in NAMES if fact in record.facts}
        usual = {fact: value for fact, value in usual.items() if not wrong_fact(fact, value)}
        values[record.name] = usual
        times[record.name] = dict.fromkeys(usual, record.last_checkin or 0.0)
    query = (
        "SELECT host.name AS host, host_fact.name, host_fact.value, host_fact.at FROM host_fact"
        " JOIN host ON host_fact.host = host.id WHERE host.project = :project"
    )
    with store.reading() as connection:
        rows = connection.rows(query, project=store.project)
    for row in rows:
        host, name, value, at = row["host"], row["name"], from_json(row["value"]), row["at"]
        known = name in NAMES or name.startswith(f"{OWN}.")
        if not known or wrong_fact(name, value):
            continue  # another version of statecfg stored it
        if host in values and at >= times[host].get(name, 0.0):
            values[host][name], times[host][name] = value, at
    return {name: StoredFacts(facts, times[name]) for name, facts in values.items()}
