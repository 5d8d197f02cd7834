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
from statecfg.store.service_tables import service, unit
from tests.host.server.browser import browsing, paged, signed_in
from tests.host.server.serving import Served

WHY = "hook start: exit code 7: no space left on device"
NO_SETTINGS = {"endpoints": {}, "schema": {}, "settings": {}, "overrides": {}, "leader": {}, "hosts": [], "without": []}
SERVICE = {"name": "blog", "playbook": "blog.yml", "alive": True, "charm": "", "digest": "", "salt": "", "secrets": ""}
UNIT = {"number": 0, "added": False, "dying": False, "gone": False, "state": "installed", "error": "start_error"}
UNTOLD = {"failed": "", "tried": "", "charm": "", "configured": "", "addresses": {}, "ports": [], "early": False}


@pytest.fixture
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
            row = {**SERVICE, **NO_SETTINGS, "project": opened.project, "timeout": 9.0, "next": 1, "created": 0.0}
            (number,) = connection.execute(insert(service).values(row)).inserted_primary_key or (0,)
            said_by = {"why": WHY, "status": "", "message": "", "since": 0.0}
            connection.execute(insert(unit).values({**UNIT, **UNTOLD, **said_by, "service": number, "host": "unit"}))
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
