"""The base of all API calls: the store, the clock, and paged lists."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from statecfg.entities import filters
from statecfg.entities.filters import Fields
from statecfg.entities.model import Page, Query
from statecfg.entities.problems import bad
from statecfg.playbook.project import Project
from statecfg.store.database import Store
from statecfg.store.entities import lists as entity_lists

T = TypeVar("T")
LARGEST_PAGE = 128


class Calls:
    """Base class of the API calls.

    Each call takes the requesting user first. It raises ApiError if it refuses the request, and StoreError if the store
    fails.

    :param store: the store; threads may share it and this object
    :param clock: returns seconds since 1970
    :param project: project that must contain the functions and playbooks of new behaviors; None: don't check that
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time, project: Project | None = None) -> None:
        self.store, self.clock, self.project = store, clock, project


def listed(
    connection: Any, table: Any, scope: Sequence[Any], query: Query, fields: Fields, convert: Callable[[Any], T]
) -> Page[T]:
    """Return the requested page of a list.

    :param scope: conditions that limit the list (see `store.entities.lists`)
    :param fields: fields for filters and sorting
    :param convert: converts a row to an item
    :raises ApiError: the filter, the sort field or the page is invalid
    """
    check_page(query)
    condition, order = filters.parse(query.filter, fields), filters.order(query.sort, fields)
    offset = (query.page - 1) * query.page_size
    rows, total = entity_lists.page(
        connection, table, scope, condition, order, query.descending, offset, query.page_size
    )
    return Page([convert(row) for row in rows], total, query.page, query.page_size)


def part(values: Sequence[T], query: Query) -> Page[T]:
    """Return the requested page of a short list, in its given order.

    :raises ApiError: the page is invalid, or the query filters or sorts
    """
    check_page(query)
    if query.filter or query.sort:
        raise bad("This list can be neither filtered nor sorted.")
    first = (query.page - 1) * query.page_size
    return Page(values[first : first + query.page_size], len(values), query.page, query.page_size)


def check_page(query: Query) -> None:
    """Check the page number and the page size.

    :raises ApiError: one of them is out of range
    """
    if not 1 <= query.page <= 10**9:
        raise bad("page must be a number from 1.")
    if not 1 <= query.page_size <= LARGEST_PAGE:
        raise bad(f"pageSize must be a number from 1 to {LARGEST_PAGE}.")
