"""The parameters of paths and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.entities.filters import Fields
from statecfg.entities.model import Query
from statecfg.problems.frozen import dataclass
from statecfg.server.request import ApiRequest

PAGE_SIZE, LARGEST_PAGE = 25, 128
OWN_API = "/statecfg/1.0"  # path of the calls that the original API does not have


@dataclass(frozen=True, slots=True)
class QueryParameter:
    """A query parameter.

    :param schema: a JSON schema of ``type`` string (with maxLength), integer (with minimum and maximum) or boolean. Its
        ``default``, or None, is the value if the client does not send the parameter
    """

    name: str
    schema: Mapping[str, Any]
    summary: str


def text(name: str, summary: str, longest: int = 255) -> QueryParameter:
    """Return a parameter that is a string; "" if the client does not send it."""
    return QueryParameter(name, {"type": "string", "maxLength": longest, "default": ""}, summary)


def number(name: str, most: int, default: int | None, summary: str) -> QueryParameter:
    """Return a parameter that is an integer from 1 to `most`."""
    otherwise = {} if default is None else {"default": default}
    return QueryParameter(name, {"type": "integer", "minimum": 1, "maximum": most, **otherwise}, summary)


_PAGE = QueryParameter(
    "page", {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1}, "Number of the page, from 1."
)
_SIZE = QueryParameter(
    "pageSize",
    {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE_SIZE},
    "Number of entries in a page.",
)
PAGED = (_PAGE, _SIZE)
# Values in the patterns. The server accepts more: other characters in strings, and any form of ISO 8601 for times.
_TEXT = "[A-Za-z0-9_.:*@-]{0,100}"
_VALUES = {
    "text": _TEXT,
    "json": _TEXT,
    "number": "[0-9]{1,18}",
    "time": "20[0-9]{2}-1[0-2]-[12][0-8]T1[0-9]:[0-5][0-9]:[0-5][0-9]Z",
}
_OPERATORS = "(?:==|!=|=lt=|=le=|=gt=|=ge=)"
_BELOW = r"(?:\.[A-Za-z0-9_-]{1,100}){1,9}"  # the keys inside a field that is JSON


def listing_by(fields: Fields) -> tuple[QueryParameter, ...]:
    """Return the query parameters of a list that clients can filter and sort by these fields."""
    names = "|".join(re.escape(name) + (_BELOW if field.value_type == "json" else "") for name, field in fields.items())
    about = f"by `{'`, `'.join(fields)}`"
    order = {"type": "string", "maxLength": 256, "default": "", "pattern": f"^(?:{names})?$"}
    which = {"type": "string", "maxLength": 4096, "default": "", "pattern": _filter(fields)}
    return (
        *PAGED,
        QueryParameter("filter", which, f"Filter in FIQL: `name==web*;state==RESOLVED`; `,` means or; {about}."),
        QueryParameter("sortAsc", order, f"Sort {about}."),
        QueryParameter("sortDesc", order, f"Sort {about}, descending."),
    )


def _filter(fields: Fields) -> str:
    """Return a pattern for filters. It omits nested parentheses, which a pattern can't describe."""
    either = []
    for value_type in sorted({field.value_type for field in fields.values()}):
        names = "|".join(re.escape(name) for name, field in fields.items() if field.value_type == value_type)
        either.append(f"(?:{names}){_BELOW if value_type == 'json' else ''}{_OPERATORS}{_VALUES[value_type]}")
    one = f"(?:{'|'.join(either)})"
    several = f"{one}(?:[;,]{one}){{0,9}}"
    return f"^(?:\\s*|{several}|\\({several}\\))$"


HOOKS = QueryParameter(
    "invokeHooks",
    {"type": "boolean", "default": True},
    "`false` skips the hooks. Requires Full Control of the type.",
)
RESOLVE = QueryParameter(
    "resolveEntity",
    {"type": "boolean", "default": False},
    "`true` resolves the entity immediately. Has no effect if the type has a PostCreate hook.",
)

# The parameters of paths: name → description. A module with routes adds the parameters that only it uses.
IN_PATH: dict[str, str] = {
    "interface": "URN of an interface, such as `urn:vcloud:interface:acme:cluster:1.0.0`.",
    "type": "URN of an entity type, such as `urn:vcloud:type:acme:basicCluster:1.0.0`.",
    "behavior": "URN of a behavior, such as `urn:vcloud:behavior-interface:createCluster:acme:cluster:1.0.0`.",
    "entity": "URN of an entity, such as `urn:vcloud:entity:acme:basicCluster:` and a UUID.",
    "grant": "URN of an access control.",
    "level": "URN of an access level, such as `urn:vcloud:accessLevel:ReadOnly`.",
    "metadata": "URN of a metadata entry.",
    "task": "UUID or URN of a task.",
    "session": "URN of your session.",
    "org": "Name of an organization; under `/api`, its UUID.",
    "file": "Name of a file of the page.",
    "host": "Name of a host in the inventory.",
    "run": "Id of a run.",
    "vendor": "Vendor of an entity type or interface.",
    "nss": "Name (nss) of an entity type or interface.",
    "version": "Version of an entity type or interface; `1` means every `1.x.y`.",
}


def listing(request: ApiRequest) -> Query:
    """Return the part of a list that a client requests."""
    query = request.query
    return Query(
        filter=query.get("filter", ""),
        sort=query.get("sortDesc") or query.get("sortAsc", ""),
        descending=bool(query.get("sortDesc")),
        page=query["page"],
        page_size=query["pageSize"],
    )
