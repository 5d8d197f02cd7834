"""The parameters that paths and queries have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.entities.model import Query
from statecfg.server.exchange import Asked, Parameter

PAGE_SIZE, LARGEST_PAGE = 25, 128

_PAGE = Parameter(
    "page", {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1}, "Which page, the first being 1."
)
_SIZE = Parameter(
    "pageSize",
    {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE_SIZE},
    "How many entries a page has.",
)
_FILTER = Parameter(
    "filter",
    {"type": "string", "maxLength": 4096, "default": ""},
    "What to list, in FIQL: `name==web*;state==RESOLVED`; `;` is and, `,` is or.",
)
_ASCENDING = Parameter("sortAsc", {"type": "string", "maxLength": 256, "default": ""}, "Sort by this field.")
_DESCENDING = Parameter(
    "sortDesc", {"type": "string", "maxLength": 256, "default": ""}, "Sort by this field, the largest first."
)
LISTING = (_PAGE, _SIZE, _FILTER, _ASCENDING, _DESCENDING)
HOOKS = Parameter(
    "invokeHooks",
    {"type": "boolean", "default": True},
    "`false` calls no hook; only for who has Full Control of the type.",
)
RESOLVE = Parameter(
    "resolveEntity",
    {"type": "boolean", "default": False},
    "`true` resolves the entity at once; without effect where the type has a PostCreate hook.",
)

# What stands in the place of a path's parameters: name → what it is.
IN_PATH: Mapping[str, str] = {
    "interface": "URN of an interface, such as `urn:vcloud:interface:acme:cluster:1.0.0`.",
    "type": "URN of an entity type, such as `urn:vcloud:type:acme:basicCluster:1.0.0`.",
    "behavior": "URN of a behavior, such as `urn:vcloud:behavior-interface:createCluster:acme:cluster:1.0.0`.",
    "entity": "URN of an entity, such as `urn:vcloud:entity:acme:basicCluster:` and a UUID.",
    "grant": "URN of an access control.",
    "task": "UUID or URN of a task.",
    "file": "Name of a file that the page is made of.",
    "host": "Name of a host, as the inventory has it.",
    "run": "Id of a run.",
    "vendor": "Vendor of an entity type or interface.",
    "nss": "Name of an entity type or interface among its vendor's.",
    "version": "Version of an entity type or interface; `1` stands for every `1.x.y`.",
}


def listing(asked: Asked) -> Query:
    """Return what part of a list a request asks for."""
    query: Mapping[str, Any] = asked.query
    return Query(
        filter=query["filter"],
        sort=query["sortDesc"] or query["sortAsc"],
        descending=bool(query["sortDesc"]),
        page=query["page"],
        page_size=query["pageSize"],
    )
