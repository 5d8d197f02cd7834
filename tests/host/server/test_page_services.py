"""Services with many units: the server filters and pages, and the page shows why a unit failed, with links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import insert

from statecfg import store
from statecfg.playbook import project
from statecfg.store.service_tables import unit
from tests.host.server.browser import CANARY, DESK, PHONE, address, fits, go, paged, reload, signed_in
from tests.host.server.many import LARGE_RUN, fill
from tests.host.server.many_services import WHY, add_service, fill_services, service_row, unit_row
from tests.host.server.serving import Served, serving

UNITS, HOSTS, PAGE = 150, 300, 50
SERVICES = "/statecfg/1.0/services"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("services") / "project") as served:
        fill(served, HOSTS, 10)
        fill_services(served, UNITS, HOSTS)
        yield served


@pytest.fixture
def client(many: Served) -> Iterator[httpx.Client]:
    with many.client() as found:
        yield found


def asked(client: httpx.Client, **query: Any) -> Any:
    return client.get(SERVICES, params=query).raise_for_status().json()


def names(page: Any) -> list[str]:
    """Return the names of the units of a page, and those of services without units."""
    return [
        name
        for service in page["services"]
        for name in [unit["name"] for unit in service["units"]] or [service["name"]]
    ]


def test_pages_list_every_unit_once_in_natural_order(client: httpx.Client) -> None:
    seen: list[str] = []
    after = ""
    while after is not None:
        page = asked(client, limit=40, after=after)
        assert len(names(page)) <= 40
        seen += names(page)
        after = page["next"]
    others = [f"web{service}/{number}" for service in range(15) for number in range(5)]
    assert seen == [*(f"agent/{number}" for number in range(75)), "idle", *others]
    assert names(asked(client)) == seen, "without parameters, the server sends everything"


def test_a_service_on_several_pages_has_its_whole_counts_and_relations(client: httpx.Client) -> None:
    page = asked(client, limit=10, after="served/agent/69")
    agent, idle, web0 = page["services"]
    assert [(each["name"], each["count"], each["failed"]) for each in page["services"]] == [
        ("agent", 75, 4),
        ("idle", 0, 0),
        ("web0", 5, 1),
    ]
    assert [len(each["units"]) for each in (agent, idle, web0)] == [5, 0, 4]
    assert len(page["relations"]) == 15, "those of agent"
    assert [each["ends"] for each in asked(client, find="web3")["relations"]] == [
        [["agent", "clients"], ["web3", "agent"]]
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"find": "web1/0"}, ["web1/0"]),
        ({"find": "WEB14 ready"}, [f"web14/{number}" for number in range(5)]),
        ({"find": "space device", "host": "host1*"}, ["agent/37", "web10/1"]),
        ({"host": "HOST4"}, ["web1/0"]),
        ({"state": "start_error", "find": "agent"}, ["agent/12", "agent/37", "agent/62"]),
        ({"state": "trouble", "find": "agent"}, ["agent/0", "agent/12", "agent/37", "agent/62"]),
        ({"find": "exit code 9"}, ["agent/0"]),
        ({"find": "idle"}, ["idle"]),
        ({"find": "idle", "state": "started"}, []),
        ({"state": "stopped"}, []),
    ],
)
def test_filters_select_the_matching_units(client: httpx.Client, query: dict[str, Any], found: list[str]) -> None:
    page = asked(client, **query)
    assert names(page) == found
    assert (page["total"], page["matching"]) == (UNITS, len([name for name in found if name != "idle"]))


def test_a_failed_unit_has_its_reason_and_its_run(client: httpx.Client) -> None:
    units = {unit["name"]: unit for service in asked(client, state="trouble")["services"] for unit in service["units"]}
    own, of_relation = units["agent/12"], units["agent/0"]
    assert (own["why"], own["failed_in"], own["relation_errors"]) == (WHY, [LARGE_RUN], {})
    assert (of_relation["why"], of_relation["failed_in"]) == ("", ["0123456789ab"])
    assert of_relation["relation_errors"] == {"clients:0": "clients-relation-joined: exit code 9"}


@pytest.mark.parametrize("after", ["x", "served/agent", "served/agent/x", "served/agent/99999999999"])
def test_a_wrong_cursor_is_refused(client: httpx.Client, after: str) -> None:
    assert client.get(SERVICES, params={"after": after}).status_code == 400


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_browser_draws_one_page_and_keeps_filters_in_the_address(
    browser: Browser, many: Served, size: tuple[int, int]
) -> None:
    with paged(browser, size) as page:
        go(signed_in(page, many), "#/services")
        units = page.locator(".unit")
        expect(units).to_have_count(PAGE)
        assert fits(page)
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        page.click("text=More units")
        expect(units.first).to_contain_text("agent/50")
        page.select_option('[data-param="state"]', "trouble")
        expect(page.locator("main")).to_contain_text("7 of 150 units match.")
        assert address(page) == "#/services?state=trouble"
        expect(units).to_have_count(7)
        assert fits(page)
        page.fill('[data-param="host"]', "host5")
        expect(units).to_have_count(1)
        assert address(page) == "#/services?state=trouble&host=host5"
        reload(page)
        expect(units).to_have_count(1)
        expect(page.locator('[data-param="host"]')).to_have_value("host5")
        page.fill('[data-param="find"]', "nothing")
        expect(page.locator(".empty")).to_have_text("No service or unit matches these filters.")


def test_a_failed_unit_shows_its_reason_and_links_to_its_host_and_run(browser: Browser, many: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, many), "#/services?find=agent/12")
        failed = page.locator(".unit.cause")
        expect(failed.locator("p.bad")).to_have_text(WHY)
        failed.locator("a", has_text=LARGE_RUN).click()
        expect(page.locator("h1")).to_have_text("apply site.yml")
        page.go_back()
        failed.locator("a", has_text="host50").click()
        expect(page.locator("h1")).to_have_text("host50")
        page.go_back()
        expect(failed).to_be_visible()
        page.locator(".lead a", has_text="site.yml").click()
        expect(page.locator('[data-param="playbook"]')).to_have_value("site.yml")
        expect(page.locator("article.row")).to_have_count(10)


def test_relations_link_to_the_other_service_and_long_lists_are_cut(browser: Browser, many: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, many), "#/services")
        relations = page.locator(".facts span", has_text="↔")
        expect(relations).to_have_count(5)
        page.click("text=Show 5 more of 10")
        expect(relations).to_have_count(10)
        relations.locator("a", has_text="web3").click()
        assert address(page) == "#/services?find=web3"
        expect(page.locator(".unit")).to_have_count(5)


def test_services_of_other_projects_have_no_links_to_hosts_and_runs(browser: Browser, served: Served) -> None:
    with store.opened(project.find(served.root), served.store) as opened, opened.transaction() as connection:
        mine = add_service(connection, service_row(opened.project, "blog"))
        other = add_service(connection, service_row("other", CANARY))
        bad = unit_row(other, 0, CANARY, run="0123456789ab")
        connection.execute(insert(unit), [unit_row(mine, 0, "web1"), {**bad, "why": CANARY, "status": CANARY}])
    with paged(browser) as page:
        go(signed_in(page, served), "#/services")
        expect(page.locator("h2")).to_have_text(["other", "served"])
        rows = page.locator("article.row")
        expect(rows.nth(0).locator("p.bad")).to_have_text(CANARY)
        assert rows.nth(0).locator("a").count() == 0
        expect(rows.nth(1).locator("a")).to_have_text(["served/site.yml", "web1"])
