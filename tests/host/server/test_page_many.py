"""The page with many hosts and runs: the server filters and pages, and the address holds the filters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.host.server.browser import DESK, PHONE, address, fits, go, paged, reload, signed_in
from tests.host.server.many import LARGE_RUN, MINUTE, START, fill
from tests.host.server.serving import Served, serving

HOSTS, RUNS = 300, 200
PAGE = 50
OWN = "/statecfg/1.0"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("many") / "project") as served:
        fill(served, HOSTS, RUNS)
        yield served


@pytest.fixture
def client(many: Served) -> Iterator[httpx.Client]:
    with many.client() as found:
        yield found


def asked(client: httpx.Client, path: str, **query: Any) -> Any:
    return client.get(f"{OWN}/{path}", params=query).raise_for_status().json()


def every_page(client: httpx.Client, path: str, key: str, **query: Any) -> list[str]:
    """Return the names of the entries of all pages."""
    seen: list[str] = []
    after = ""
    while True:
        page = asked(client, path, **query, after=after)
        seen += [each if isinstance(each, str) else each.get("id") or each["name"] for each in page[key]]
        if page["next"] is None:
            return seen
        after = page["next"]


def test_pages_list_every_run_once_newest_first(client: httpx.Client) -> None:
    seen = every_page(client, "runs", "runs", limit=30)
    assert seen == [LARGE_RUN, *(f"run{number:05}" for number in reversed(range(RUNS - 1)))]


def test_pages_list_every_host_once_in_natural_order(client: httpx.Client) -> None:
    assert every_page(client, "hosts", "hosts", limit=70) == [f"host{number}" for number in range(HOSTS)]


def test_pages_of_a_run_list_hosts_in_trouble_first(client: httpx.Client) -> None:
    seen = every_page(client, f"runs/{LARGE_RUN}", "hosts", limit=70)
    assert seen[:3] == ["host0", "host100", "host200"]
    assert sorted(seen) == sorted(f"host{number}" for number in range(HOSTS))


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"host": "host7"}, [LARGE_RUN, "run00102", "run00002"]),
        ({"host": "HOST29*", "outcome": "failed"}, ["run00196", "run00096"]),
        ({"playbook": "other*"}, []),
        ({"playbook": "*.yml", "until": int(START + 2 * MINUTE)}, ["run00001", "run00000"]),
        ({"since": int(START + MINUTE * (RUNS - 1))}, [LARGE_RUN]),
        ({"outcome": "ok", "until": int(START + 3 * MINUTE)}, ["run00002", "run00001"]),
        ({"outcome": "unreachable"}, []),
    ],
)
def test_filters_select_the_matching_runs(client: httpx.Client, query: dict[str, Any], ids: list[str]) -> None:
    found = [run["id"] for run in asked(client, "runs", **query)["runs"]]
    assert found == ids


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({}, HOSTS),
        ({"host": "host1"}, 1),
        ({"host": "host1*"}, 111),
        ({"find": "rack3 debian"}, 8 + 70),
        ({"outcome": "failed"}, 3),
        ({"outcome": "trouble"}, 3),
        ({"outcome": "ok"}, HOSTS - 3),
        ({"playbook": "*site.yml"}, HOSTS),
        ({"playbook": "other"}, 0),
        ({"since": int(START + MINUTE * RUNS) + 1}, 0),
    ],
)
def test_filters_select_the_matching_hosts(client: httpx.Client, query: dict[str, Any], count: int) -> None:
    page = asked(client, "hosts", **query)
    assert (page["matching"], len(page["hosts"]), page["total"]) == (count, count, HOSTS)
    assert page["states"] == {"ok": HOSTS - 3, "failed": 3}


@pytest.mark.parametrize(
    ("words", "hosts"), [("needle", ["host100"]), ("NEEDLE host100", ["host100"]), ("host29 config", 11), ("n%dle", 0)]
)
def test_search_in_a_run_matches_host_names_and_reports(
    client: httpx.Client, words: str, hosts: list[str] | int
) -> None:
    found = asked(client, f"runs/{LARGE_RUN}", find=words)
    assert (found["matching"] if isinstance(hosts, int) else list(found["hosts"])) == hosts
    assert found["count"] == HOSTS


def test_a_wrong_cursor_is_refused(client: httpx.Client) -> None:
    for after in ("x", "1", "nan,x", "1e9,x"):
        assert client.get(f"{OWN}/runs", params={"after": after}).status_code == 400, after


@pytest.mark.parametrize("section", ["hosts", "runs", f"runs/{LARGE_RUN}"])
def test_the_browser_draws_only_one_page_of_a_long_list(browser: Browser, many: Served, section: str) -> None:
    with paged(browser, DESK) as page:
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        go(signed_in(page, many), f"#/{section}")
        rows = page.locator(".list > *")
        expect(rows).to_have_count(PAGE)
        first = rows.first.get_attribute("data-key")
        page.click(".pages a")
        expect(page.locator(".pages a")).to_have_count(2)
        expect(rows).to_have_count(PAGE)
        assert rows.first.get_attribute("data-key") != first
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        page.go_back()
        expect(page.locator(".pages a")).to_have_count(1)
        assert rows.first.get_attribute("data-key") == first
        lists = [url for url in requests if f"{OWN}/{section}?" in url and "limit=50" in url]
        assert len(lists) <= 4, "the list is requested once for each page, and again when the connection is live"


def test_filters_are_kept_in_the_address_and_browser_history(browser: Browser, many: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, many), "#/hosts")
        expect(page.locator("article.row")).to_have_count(PAGE)
        page.locator('[data-param="find"]').press_sequentially("host29")
        expect(page.locator("article.row")).to_have_count(11)
        expect(page.locator('[data-param="find"]')).to_be_focused()
        assert address(page) == "#/hosts?find=host29"
        page.select_option('[data-param="outcome"]', "failed")
        expect(page.locator(".empty")).to_have_text("No host matches these filters.")
        assert address(page) == "#/hosts?find=host29&outcome=failed"
        page.go_back()
        expect(page.locator("article.row")).to_have_count(11)
        expect(page.locator('[data-param="outcome"]')).to_have_value("")
        page.go_back()
        expect(page.locator("article.row")).to_have_count(PAGE)
        expect(page.locator('[data-param="find"]')).to_have_value("")


def test_a_link_opens_a_filtered_list(browser: Browser, many: Served) -> None:
    with paged(browser) as page:
        signed_in(page, many)
        page.goto(f"{many.url}/#/runs?host=host77&outcome=ok")
        reload(page)
        expect(page.locator('[data-param="host"]')).to_have_value("host77")
        expect(page.locator('[data-param="outcome"]')).to_have_value("ok")
        expect(page.locator("article.row")).to_have_count(3)


def test_search_in_a_run_shows_only_matching_resources(browser: Browser, many: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, many), f"#/runs/{LARGE_RUN}")
        expect(page.locator("details.fold.host")).to_have_count(PAGE)
        page.fill('[data-param="find"]', "needle")
        expect(page.locator("details.fold.host")).to_have_count(1)
        expect(page.locator(".nodes details")).to_have_count(1)
        expect(page.locator(".nodes details")).to_contain_text("command:migrate")


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_lists_fit_desktop_and_phone_windows(browser: Browser, many: Served, size: tuple[int, int]) -> None:
    with paged(browser, size) as page:
        signed_in(page, many)
        for section in ("", "hosts", "runs", f"runs/{LARGE_RUN}", "hosts/host100"):
            go(page, f"#/{section}")
            page.wait_for_selector("main :is(.row, .fold.host)")
            assert fits(page), section
