"""The facts of hosts that definitions used, as the hosts last sent them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from statecfg.facts.catalogue import NAMES, OWN, wrong_fact
from statecfg.facts.recorded import Recorded
from statecfg.store import hosts
from statecfg.store.database import Store
from statecfg.store.tables import host, host_fact


def keep(store: Store, name: str, values: Mapping[str, Any]) -> None:
    """Store facts of a host; other facts of the host stay as they are.

    :param name: the host
    :param values: name of a fact → value
    """
    now = time.time()

    def enter(connection: Connection) -> None:
        number = hosts.ensure(connection, store.project, name).id
        connection.execute(delete(host_fact).where(host_fact.c.host == number, host_fact.c.name.in_([*values])))
        rows = [{"host": number, "name": fact, "value": value, "at": now} for fact, value in values.items()]
        connection.execute(insert(host_fact), rows)

    if values:
        store.attempt(enter)


def known(store: Store) -> dict[str, Recorded]:
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
    columns = select(host.c.name.label("of"), host_fact.c.name, host_fact.c.value, host_fact.c.at)
    with store.reading() as connection:
        for row in connection.execute(columns.join(host).where(host.c.project == store.project)):
            known = row.name in NAMES or row.name.startswith(f"{OWN}.")
            if not known or wrong_fact(row.name, row.value):
                continue  # another version of statecfg stored it
            if row.of in values and row.at >= times[row.of].get(row.name, 0.0):
                values[row.of][row.name], times[row.of][row.name] = row.value, row.at
    return {name: Recorded(facts, times[name]) for name, facts in values.items()}
