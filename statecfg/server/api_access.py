"""Access controls of types, entities and behaviors over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statecfg.entities import access_calls, shapes
from statecfg.entities.calls import part
from statecfg.entities.model import LEVELS
from statecfg.entities.problems import forbidden
from statecfg.server.exchange import AUTHOR, VIEWER, Answer, Asked, Route
from statecfg.server.lists import page
from statecfg.server.parameters import PAGED, listing, listing_by

_TYPE = "/cloudapi/1.0.0/entityTypes/{type}"
_ENTITY = "/cloudapi/1.0.0/entities/{entity}"
_LISTING = listing_by(access_calls.FIELDS)
_LEVELS = "/cloudapi/1.0.0/accessLevels"
_BEHAVIORS = f"{_TYPE}/behaviorAccessControls"


def _object(asked: Asked) -> str:
    return asked.path.get("type") or asked.path["entity"]


def _list(asked: Asked) -> Answer:
    return page(asked, asked.operations.list_grants(asked.principal, _object(asked), listing(asked)), shapes.grant)


def _get(asked: Asked) -> Answer:
    return Answer(
        200,
        shapes.grant(asked.operations.get_grant(asked.principal, _object(asked), asked.path["grant"]), asked.version),
    )


def _add(asked: Asked) -> Answer:
    return Answer(
        201, shapes.grant(asked.operations.add_grant(asked.principal, _object(asked), asked.body), asked.version)
    )


def _update(asked: Asked) -> Answer:
    place = _object(asked), asked.path["grant"]
    return Answer(200, shapes.grant(asked.operations.update_grant(asked.principal, *place, asked.body), asked.version))


def _replace(asked: Asked) -> Answer:
    found = asked.operations.replace_grants(asked.principal, _object(asked), asked.body)
    return page(asked, found, shapes.grant)


def _delete(asked: Asked) -> Answer:
    asked.operations.delete_grant(asked.principal, _object(asked), asked.path["grant"])
    return Answer(204)


def _level(id: str) -> dict[str, Any]:
    return {"id": id, "name": id.rpartition(":")[2], "description": None, "readOnly": True}


def _levels(asked: Asked) -> Answer:
    return page(asked, part(LEVELS, listing(asked)), lambda id, _: _level(id))


def _get_level(asked: Asked) -> Answer:
    if asked.path["level"] not in LEVELS:
        raise forbidden(asked.path["level"][:200])
    return Answer(200, _level(asked.path["level"]))


def _list_behaviors(asked: Asked) -> Answer:
    found = asked.operations.list_behavior_grants(asked.principal, asked.path["type"], listing(asked))
    return page(asked, found, shapes.behavior_grant)


def _add_behavior(asked: Asked) -> Answer:
    made = asked.operations.add_behavior_grant(asked.principal, asked.path["type"], asked.body)
    return Answer(201, shapes.behavior_grant(made, asked.version))


def _replace_behaviors(asked: Asked) -> Answer:
    found = asked.operations.replace_behavior_grants(asked.principal, asked.path["type"], asked.body)
    return page(asked, found, shapes.behavior_grant)


def _of(path: str, what: str) -> Iterator[Route]:
    """Yield the routes of the access controls of a type or an entity."""
    all, one = f"{path}/accessControls", f"{path}/accessControls/{{grant}}"
    full = f"Needs Full Control of the {what}."
    yield Route("GET", all, VIEWER, _list, f"List the access controls of an {what}.", {200: "Accesses"}, _LISTING)
    yield Route("POST", all, AUTHOR, _add, f"Give access to an {what}. {full}", {201: "Access"}, (), "NewAccess")
    yield Route(
        "PUT",
        all,
        AUTHOR,
        _replace,
        f"Replace all access controls of an {what}. {full}",
        {200: "Accesses"},
        (),
        "NewAccesses",
    )
    yield Route("GET", one, VIEWER, _get, f"Show an access control of an {what}.", {200: "Access"})
    yield Route(
        "PUT",
        one,
        AUTHOR,
        _update,
        f"Change an access control of an {what}. {full}",
        {200: "Access"},
        (),
        "ChangedAccess",
    )
    yield Route("DELETE", one, AUTHOR, _delete, f"Take access to an {what} away. {full}", {204: None})


ROUTES = (
    Route("GET", _LEVELS, VIEWER, _levels, "List the levels of access.", {200: "AccessLevels"}, PAGED),
    Route("GET", f"{_LEVELS}/{{level}}", VIEWER, _get_level, "Show a level of access.", {200: "AccessLevel"}),
    *_of(_TYPE, "entity type"),
    *_of(_ENTITY, "entity"),
    Route(
        "GET",
        _BEHAVIORS,
        VIEWER,
        _list_behaviors,
        "List who may invoke the behaviors of a type.",
        {200: "BehaviorAccesses"},
        PAGED,
    ),
    Route(
        "POST",
        _BEHAVIORS,
        AUTHOR,
        _add_behavior,
        "Say who may invoke a behavior. Needs Full Control of the type.",
        {201: "BehaviorAccess"},
        (),
        "NewBehaviorAccess",
    ),
    Route(
        "PUT",
        _BEHAVIORS,
        AUTHOR,
        _replace_behaviors,
        "Replace the access controls of all behaviors of a type. Needs Full Control of it.",
        {200: "BehaviorAccesses"},
        (),
        "NewBehaviorAccesses",
    ),
)
