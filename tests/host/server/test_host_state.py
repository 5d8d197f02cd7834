"""A host's state is its worst playbook or service, and the page says why."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from sqlalchemy import insert

from statecfg import store
from statecfg.playbook import project
from statecfg.server.api_runs import natural
from statecfg.store import hosts, runs
from statecfg.store.service_tables import unit
from tests.host.server.browser import browsing, paged, signed_in
from tests.host.server.many_services import WHY, add_service, service_row, unit_row
from tests.host.server.serving import Served


@pytest.fixture(scope="module")
def states(served: Served) -> Iterator[dict[str, str | None]]:
    """Give the states of four hosts: without errors, with a failed playbook, with a failed unit, and new."""
    with store.opened(project.find(served.root), served.store) as opened:
        for number, (playbook, statuses) in enumerate(
            [("a.yml", {"fine": "ok", "failed": "failed", "unit": "ok"}), ("b.yml", {"fine": "ok", "failed": "ok"})]
        ):
            for name in statuses:
                hosts.check_in(opened, name, {}, "", "")
                hosts.bind(opened, name, f"{opened.project}/{playbook}")
            said = {name: {"status": status, "summary": {}} for name, status in statuses.items()}
            report = {"run": f"r{number}", "mode": "apply", "playbook": playbook, "hosts": said}
            runs.record(opened, report, float(number), float(number), "ann@desk")
        hosts.tag(opened, "new", ["rack1"])
        with opened.transaction() as connection:
            blog = add_service(connection, service_row(opened.project, "blog", "blog.yml"))
            connection.execute(insert(unit).values(unit_row(blog, 0, "unit", run="r1")))
    with served.client() as client:
        found = client.get("/statecfg/1.0/hosts").raise_for_status().json()["hosts"]
    yield {host["name"]: host["state"] for host in found}


def test_names_with_numbers_sort_in_natural_order() -> None:
    names = ["WEB2", "web02", "web2", "web10", "web10a", "web²", "web٣"]
    for order in itertools.permutations(names[:5]):
        assert sorted(order, key=natural) == names[:5]
    assert len({str(natural(name)) for name in names}) == len(names)
    assert sorted(names, key=natural)[:5] == names[:5]


def test_a_hosts_state_is_its_worst_playbook_or_service(served: Served, states: dict[str, str | None]) -> None:
    assert states == {"fine": "ok", "failed": "failed", "unit": "failed", "new": None}
    with browsing() as browser, paged(browser) as page:
        signed_in(page, served)
        expect(page.locator("h1")).to_contain_text("2 hosts in trouble of 4")
        expect(page.locator(".cause")).to_contain_text(WHY)
        for address in ("#/hosts/unit", "#/services"):
            page.evaluate("address => { location.hash = address; }", address)
            expect(page.locator("p.bad")).to_have_text(WHY)


def test_a_run_that_was_cut_off_counts_until_a_newer_run_of_its_playbook_has_ended(
    served: Served, states: dict[str, str | None]
) -> None:
    assert states["fine"] == "ok"

    def now() -> tuple[str, list[str]]:
        with served.client() as client:
            host = client.get("/statecfg/1.0/hosts/fine").raise_for_status().json()
        return host["state"], [last["run"] for last in host["states"]]

    with store.opened(project.find(served.root), served.store) as opened:
        runs.begin(opened, "killed", 5.0, "apply", "ann@desk", "a.yml", ["fine"])
        assert now() == ("ok", ["r1", "r0"]), "it may still be running"
        opened.attempt(lambda connection: connection.change("UPDATE going SET beat = 0", {}))
        assert now() == ("unknown", ["killed", "r1"])
        report = {"run": "r2", "mode": "apply", "playbook": "a.yml", "hosts": {"fine": {"status": "ok", "summary": {}}}}
        runs.record(opened, report, 6.0, 6.0, "ann@desk")
    assert now() == ("ok", ["r2", "r1"])
