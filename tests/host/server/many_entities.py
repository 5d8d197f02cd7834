"""A store with many entities and tasks, written directly because the API would need minutes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from statecfg import store
from statecfg.entities.model import CREATE, DELETE, EXECUTE, STATES, UPDATE
from statecfg.playbook import project
from statecfg.store.entities.tables import entity, entity_type, task
from tests.host.server.many import MINUTE, START
from tests.host.server.serving import Served

TYPES = ("site", "mailbox")
OPERATIONS = (CREATE, UPDATE, DELETE, EXECUTE)
TROUBLED = 100  # every entity and every task whose number is divisible by it failed
_, RESOLVED, RESOLUTION_ERROR, _ = STATES
FAILED = {"majorErrorCode": 500, "minorErrorCode": "BEHAVIOR_FAILED", "message": "exit code 3"}
_NO_TEXTS = {"parent": "", "details": "", "worker": "", "role": "administrator"}


def entity_id(number: int) -> str:
    return f"urn:vcloud:entity:acme:{TYPES[number % len(TYPES)]}:{_uuid(number)}"


def _uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def fill_entities(served: Served, entities: int, tasks: int) -> None:
    """Write entities of two types, one changed per minute, and tasks on them, one started per minute."""
    with store.opened(project.find(served.root), served.store) as opened, opened.transaction() as connection:
        connection.execute(insert(entity_type), [_type(nss) for nss in TYPES])
        connection.execute(insert(entity), [_entity(number) for number in range(entities)])
        connection.execute(insert(task), [_task(number, number % entities) for number in range(tasks)])


def _type_id(nss: str) -> str:
    return f"urn:vcloud:type:acme:{nss}:1.0.0"


def _type(nss: str) -> dict[str, Any]:
    names = {"id": _type_id(nss), "name": nss.title(), "vendor": "acme", "nss": nss, "version": "1.0.0"}
    return {**names, "schema": {"type": "object"}, "interfaces": [], "hooks": {}, "readonly": False}


def _entity(number: int) -> dict[str, Any]:
    state = RESOLVED if number % TROUBLED else RESOLUTION_ERROR
    message = "" if state == RESOLVED else "'title' is a required property"
    names = {"id": entity_id(number), "type": _type_id(TYPES[number % len(TYPES)]), "name": f"blog{number}"}
    owner = {"owner": "ann", "org": "acme", "tenant": "acme", "created": START, "modified": START + MINUTE * number}
    return {**names, **owner, "content": {"size": number}, "state": state, "message": message, "revision": 1}


def _task(number: int, about: int) -> dict[str, Any]:
    name, at = OPERATIONS[number % len(OPERATIONS)], START + MINUTE * number
    failed = number % TROUBLED == 0
    names = {"id": f"urn:vcloud:task:{_uuid(number)}", "name": name, "operation": f"{name} blog{about}"}
    of = {"entity": entity_id(about), "entity_name": f"blog{about}", "user": f"user{number % 7}", "org": "acme"}
    ended = {"status": "error" if failed else "success", "progress": 100, "error": FAILED if failed else None}
    times = {"created": at, "started": at, "ended": at + 5}
    return {**names, **of, **ended, **times, **_NO_TEXTS, "result": None, "work": {}, "serial": True}
