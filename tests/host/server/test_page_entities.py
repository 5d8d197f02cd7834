"""Lists of many entities and tasks: the server filters, and the address holds the filters."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.host.server.browser import DESK, PHONE, address, fits, go, paged, reload, signed_in
from tests.host.server.many import MINUTE
from tests.host.server.many_entities import entity_id, fill_entities
from tests.host.server.serving import Served, serving

ENTITIES, TASKS, PAGE = 120, 200, 25
DAY = 24 * 60 * MINUTE


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("entities") / "project") as served:
        fill_entities(served, ENTITIES, TASKS)
        yield served


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("owner.name==blog7", 2),
        ("owner.name==*blog11*", 11 + 1),
        ("owner==urn:vcloud:entity:acme:site:*", TASKS // 2),
        ("(owner.name==*user3*,user==*user3*);operationName==executeBehavior", 8),
        ("creationDate=ge=2025-06-15T18:00:00Z;creationDate=lt=2025-06-15T18:10:00Z", 10),
        (f"owner=={entity_id(119)}", 1),
    ],
)
def test_tasks_are_filtered_by_entity_type_operation_and_time(many: Served, query: str, count: int) -> None:
    with many.client() as client:
        page = client.get("/statecfg/1.0/tasks", params={"filter": query}).raise_for_status().json()
    assert page["resultTotal"] == count


def total(page: Page, rows: int, pages: int) -> None:
    """Check how many entries the first page of a list shows, and how many pages there are."""
    expect(page.locator("article.row")).to_have_count(rows)
    if pages > 1:
        expect(page.locator(".pages")).to_contain_text(f"1 of {pages}")
    else:
        expect(page.locator(".pages")).to_have_count(0)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_list_of_tasks_has_filters_for_entity_type_operation_and_time(
    browser: Browser, many: Served, size: tuple[int, int]
) -> None:
    with paged(browser, size) as page:
        go(signed_in(page, many), "#/tasks")
        total(page, PAGE, 8)
        assert fits(page)
        page.select_option('[data-param="type"]', label="Site")
        total(page, PAGE, 4)
        page.select_option('[data-param="operation"]', label="create")
        total(page, PAGE, 2)
        page.click("text=Older")
        expect(page.locator(".pages")).to_contain_text("2 of 2")
        page.fill('[data-param="find"]', "blog10")
        total(page, 3, 1)
        expect(page.locator("article.row").first).to_contain_text("blog108")
        page.select_option('[data-param="status"]', "error")
        total(page, 1, 1)
        assert address(page) == "#/tasks?type=acme%3Asite&operation=createDefinedEntity&find=blog10&status=error"
        page.go_back()
        total(page, 3, 1)
        reload(page)
        expect(page.locator('[data-param="operation"]')).to_have_value("createDefinedEntity")
        expect(page.locator('[data-param="type"]')).to_have_value("acme:site")
        page.fill('[data-param="find"]', "x;(y),\\*")
        expect(page.locator(".empty")).to_have_text("No task matches these filters.")
        assert fits(page)


@pytest.mark.parametrize(("section", "pages"), [("tasks", 8), ("entities", 5)])
def test_lists_of_tasks_and_entities_are_filtered_by_day(
    browser: Browser, many: Served, section: str, pages: int
) -> None:
    with paged(browser) as page:
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        go(signed_in(page, many), f"#/{section}")
        total(page, PAGE, pages)
        page.fill('[data-param="since"]', "2025-06-14")
        page.fill('[data-param="until"]', "2025-06-16")
        page.locator('[data-param="until"]').blur()
        total(page, PAGE, pages)
        assert address(page) == f"#/{section}?since=2025-06-14&until=2025-06-16"
        begin, end = _times([url for url in requests if "filter=" in url][-1])
        assert end - begin == 3 * DAY
        page.fill('[data-param="until"]', "2025-06-12")
        page.locator('[data-param="until"]').blur()
        expect(page.locator(".empty")).to_be_visible()
        page.fill('[data-param="since"]', "")
        page.locator('[data-param="since"]').blur()
        expect(page.locator(".empty")).to_contain_text("matches these filters.")


def _times(url: str) -> list[float]:
    """Return the times in the filter of a request."""
    (query,) = parse_qs(urlsplit(url).query)["filter"]
    return [datetime.fromisoformat(each.split("=")[2]).timestamp() for each in query.split(";")]


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_list_of_entities_keeps_all_filters(browser: Browser, many: Served, size: tuple[int, int]) -> None:
    with paged(browser, size) as page:
        go(signed_in(page, many), "#/entities?state=RESOLUTION_ERROR&find=blog&since=2025-06-15")
        total(page, 2, 1)
        expect(page.locator("article.row").first).to_contain_text("'title' is a required property")
        assert fits(page)
