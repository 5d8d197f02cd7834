"""A store with many services and units, written directly because real hooks would take hours."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from statecfg import store
from statecfg.playbook import project
from statecfg.store.connection import Connection
from statecfg.store.service_tables import relation, relation_unit, service, unit
from tests.host.server.many import LARGE_RUN, START
from tests.host.server.serving import Served

PLAYBOOK = "site.yml"
AGENT = "agent"  # a service with half of all units, related to every other service
UNITS_OF_OTHERS = 5
TROUBLED = 25  # every unit whose number is divisible by it failed
WHY = "hook start: exit code 7: no space left on device"
_SETTINGS = {"endpoints": {}, "schema": {}, "settings": {}, "overrides": {}, "leader": {}, "hosts": [], "without": []}
_TEXTS = {"charm": "", "digest": "", "salt": "", "secrets": ""}
_UNTOLD = {"failed": "", "charm": "", "configured": "", "addresses": {}, "early": False, "added": False, "gone": False}


def service_row(owner: str, name: str, playbook: str = PLAYBOOK) -> dict[str, Any]:
    """Return the row of a service of a project."""
    row = {"project": owner, "name": name, "playbook": f"{owner}/{playbook}", "alive": True}
    return {**row, **_SETTINGS, **_TEXTS, "timeout": 9.0, "next": 1, "created": 0.0}


def unit_row(of: int, number: int, host: str, run: str = "") -> dict[str, Any]:
    """Return the row of a unit that works, or whose start hook failed in a run.

    :param of: the number of its service
    """
    row = {"service": of, "number": number, "host": host, "since": START, "dying": False, "ports": ["80/tcp"]}
    fine = {"state": "started", "error": "", "why": "", "tried": "", "status": "active", "message": "ready"}
    bad = {"state": "installed", "error": "start_error", "why": WHY, "tried": run, "status": "", "message": ""}
    return {**row, **_UNTOLD, **(bad if run else fine)}


def add_service(connection: Connection, row: dict[str, Any]) -> int:
    """Add a service. Return its number."""
    (key,) = connection.execute(insert(service).values(row)).inserted_primary_key or (0,)
    return int(key)


def fill_services(served: Served, units: int, hosts: int) -> None:
    """Write services with units on hosts of `many.fill`. The service `agent` has half of the units, others have five.

    Every 25th unit failed, on a host that is in trouble already if there are four hosts per unit. The first working
    agent failed in its relation to `web0`. Every other service is related to `agent`; `idle` has no unit.
    """
    here = project.find(served.root)
    with store.opened(here, served.store) as opened, opened.transaction() as connection:
        agent = add_service(connection, service_row(opened.project, AGENT))
        others = [
            add_service(connection, service_row(opened.project, f"web{number}"))
            for number in range(units // 2 // UNITS_OF_OTHERS)
        ]
        add_service(connection, service_row(opened.project, "idle"))
        rows = []
        for number in range(units):
            place, which = divmod(number // 2, len(others))
            of, own = (agent, number // 2) if number % 2 else (others[which], place)
            run = "" if number % TROUBLED else LARGE_RUN
            rows.append(unit_row(of, own, f"host{number * hosts // units}", run))
        connection.execute(insert(unit), rows)
        ends = {"name": "agent", "other": agent, "other_name": "clients", "playbook": PLAYBOOK, "dying": False}
        made = [{**ends, "service": other, "created": 0.0, "number": number} for number, other in enumerate(others)]
        connection.execute(insert(relation), made)
        entered = {"relation": 1, "unit": 2, "name": "clients", "settings": {}, "members": [], "gone": False}
        failed = {"failed": "clients-relation-joined", "remote": "web0/0", "upto": 1, "why": "exit code 9"}
        connection.execute(insert(relation_unit).values({**entered, **failed, "tried": "0123456789ab"}))
