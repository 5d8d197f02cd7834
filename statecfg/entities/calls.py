"""What the calls of the API have in common: the store they work on, the clock they go by, and lists."""

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
    """Calls of the API: each takes who asks first, raises ApiError where it refuses, StoreError where it can't.

    :param store: what they work on; threads may share both
    :param clock: gives seconds since 1970
    :param project: where functions and playbooks of behaviors are looked for when these are made; None: they are not
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time, project: Project | None = None) -> None:
        self.store, self.clock, self.project = store, clock, project


def listed(
    connection: Any, table: Any, scope: Sequence[Any], query: Query, fields: Fields, made: Callable[[Any], T]
) -> Page[T]:
    """Return the page of a list that is asked for.

    :param scope: what the list is of (see `store.entities.lists`)
    :param fields: what it can be filtered and sorted by
    :param made: makes a value of a row
    :raises ApiError: the filter, the field to sort by, or the page is wrong
    """
    check_page(query)
    condition, order = filters.parse(query.filter, fields), filters.order(query.sort, fields)
    offset = (query.page - 1) * query.page_size
    rows, total = entity_lists.page(
        connection, table, scope, condition, order, query.descending, offset, query.page_size
    )
    return Page([made(row) for row in rows], total, query.page, query.page_size)


def part(values: Sequence[T], query: Query) -> Page[T]:
    """Return the page of a short list that is asked for, as it stands; it can be neither filtered nor sorted."""
    check_page(query)
    if query.filter or query.sort:
        raise bad("This list can be neither filtered nor sorted.")
    first = (query.page - 1) * query.page_size
    return Page(values[first : first + query.page_size], len(values), query.page, query.page_size)


def check_page(query: Query) -> None:
    """Refuse pages that there can't be. Raises ApiError."""
    if not 1 <= query.page <= 10**9:
        raise bad("page has to be a number from 1.")
    if not 1 <= query.page_size <= LARGEST_PAGE:
        raise bad(f"pageSize has to be a number from 1 to {LARGEST_PAGE}.")
