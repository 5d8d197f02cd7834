"""A page of a list, as every list of the API is returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from statecfg.entities import shapes
from statecfg.entities.model import Page
from statecfg.server.exchange import Answer, Asked

T = TypeVar("T")


def page(asked: Asked, found: Page[T], shape: Callable[[T, float], shapes.Shape]) -> Answer:
    """Return the answer for a page, with a link to the next one where there is one."""
    body = shapes.page(found, shape, asked.version)
    if found.page >= found.page_count:
        return Answer(200, body)
    query = {name: asked.query[name] for name in ("filter", "sortAsc", "sortDesc") if asked.query.get(name)}
    following = urlencode({**query, "page": found.page + 1, "pageSize": found.page_size})
    # The relation that clients of the API look for, and the one that all others do. Source: RFC 8288, 3.3.
    links = ", ".join(f'<{asked.address}?{following}>;rel="{relation}"' for relation in ("nextPage", "next"))
    return Answer(200, body, {"Link": links})
