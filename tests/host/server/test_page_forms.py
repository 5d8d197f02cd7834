"""Forms of the page: entities are created, changed and deleted, as far as the signed-in user may."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from statecfg.entities.model import user_id
from tests.host.server.browser import CANARY, DESK, PHONE, fits, go, paged, signed_in
from tests.host.server.scenes import API, created, entity_type, made
from tests.host.server.serving import Served

SCHEMA = {
    "type": "object",
    "required": ["title", "spec"],
    "properties": {
        "title": {"type": "string", "maxLength": 40, "description": "Shown to visitors."},
        "public": {"type": "boolean"},
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "plan": {"enum": ["small", "large"]},
                "ports": {"type": "array", "items": {"type": "integer"}},
            },
        },
    },
}


@pytest.fixture(scope="module")
def type_id(served: Served) -> str:
    """Return a type that authors of the organization acme may use."""
    with served.client() as client:
        id = str(made(client, "entityTypes", entity_type("site", schema=SCHEMA))["id"])
        grant(client, f"entityTypes/{id}", "author", "ReadWrite")
        grant(client, f"entityTypes/{id}", "viewer", "FullControl")
        return id


def grant(client: httpx.Client, path: str, role: str, level: str) -> None:
    member = {"grantType": "MembershipAccessControlGrant", "memberId": user_id(f"a-{role}", "acme")}
    body = {**member, "accessLevelId": f"urn:vcloud:accessLevel:{level}"}
    assert client.post(f"{API}/{path}/accessControls", json=body).status_code == 201


def field(page: Page, *path: str) -> Any:
    return page.locator(f'[data-key="content {".".join(path)}"]')


def entity(client: httpx.Client, name: str) -> dict[str, Any]:
    (found,) = client.get(f"{API}/entities", params={"filter": f"name=={name}"}).json()["values"]
    return dict(found)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_an_author_creates_changes_and_deletes_an_entity(
    browser: Browser, served: Served, type_id: str, size: tuple[int, int]
) -> None:
    name = f"blog{size[0]}"
    with served.client() as client, paged(browser, size) as page:
        go(signed_in(page, served, "author"), "#/entities")
        page.click("text=New entity")
        page.select_option('[data-param="type"]', type_id)
        page.fill('input[name="name"]', name)
        field(page, "title").fill(f"My {CANARY}")
        field(page, "spec", "size").fill("3")
        field(page, "spec", "plan").select_option(label="large")
        field(page, "spec", "ports").fill("[80, 443]")
        assert fits(page)
        page.click("text=Create")
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator(".title .badge")).to_contain_text("RESOLVED")
        wanted = {"title": f"My {CANARY}", "spec": {"size": 3, "plan": "large", "ports": [80, 443]}}
        assert entity(client, name)["entity"] == wanted

        page.get_by_role("button", name="Change").click()
        expect(field(page, "title")).to_have_value(f"My {CANARY}")
        expect(field(page, "spec", "ports")).to_have_value("[\n  80,\n  443\n]")
        field(page, "public").select_option(label="true")
        field(page, "spec", "size").fill("4")
        assert fits(page)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("form")).to_have_count(0)
        expect(page.locator("tr", has_text="spec.size")).to_contain_text("4")
        assert entity(client, name)["entity"] == {**wanted, "public": True, "spec": {**wanted["spec"], "size": 4}}

        page.get_by_role("button", name="Delete").click()
        page.get_by_role("button", name="Delete now").click()
        expect(page.locator(".title .badge")).to_contain_text("success")
        assert client.get(f"{API}/entities", params={"filter": f"name=={name}"}).json()["resultTotal"] == 0


def test_a_form_shows_errors_and_conflicting_changes(browser: Browser, served: Served, type_id: str) -> None:
    with served.client() as client, paged(browser) as page:
        id = created(client, type_id, "shared", {"title": "a", "spec": {"size": 1}, "more": {"x": 1}})
        go(signed_in(page, served), f"#/entities/{id}")
        page.get_by_role("button", name="Change").click()
        others = page.locator('textarea[data-type="others"]').last
        expect(others).to_have_value('{\n  "more": {\n    "x": 1\n  }\n}')
        others.fill("[1]")
        page.get_by_role("button", name="Save").click()
        assert others.evaluate("field => field.validationMessage") == "Enter a JSON object."
        others.fill("{}")
        assert client.put(f"{API}/entities/{id}", json={"name": "renamed"}).status_code == 200
        expect(page.locator(".note.change")).to_contain_text("has changed since you opened the form")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".alarm")).to_contain_text("changed since you read it")
        page.click("text=Load the current content")
        expect(page.locator('input[name="name"]')).to_have_value("renamed")


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"title": "", "spec": {}},
        {"title": None, "public": None, "spec": None},
        {"title": 1, "public": "yes", "spec": []},
        {"title": "a\r\nb", "spec": {"size": 1.5, "plan": "huge", "ports": {"a": [None]}}},
        {"title": " a\nb\n", "spec": {"size": 1, "x": {"y": ""}}, "z": {"__proto__": 1, "constructor": "c"}},
        {"__proto__": {"a": 1}, "title": "\u202e\u200b", "spec": {"size": -1, "plan": ""}},
    ],
)
def test_saving_without_a_change_keeps_the_content(
    browser: Browser, served: Served, type_id: str, content: dict[str, Any]
) -> None:
    with served.client() as client, paged(browser) as page:
        id = created(client, type_id, "same", content)
        go(signed_in(page, served), f"#/entities/{id}")
        page.get_by_role("button", name="Change").click()
        page.locator("form").evaluate("form => { form.noValidate = true; form.requestSubmit(); }")
        expect(page.locator("form")).to_have_count(0)
        found = client.get(f"{API}/entities/{id}")
        assert found.json()["entity"] == content
        assert found.headers["etag"] == '"2"', "the form was saved"


def test_content_with_too_large_numbers_cannot_be_edited(browser: Browser, served: Served, type_id: str) -> None:
    with served.client() as client, paged(browser) as page:
        id = created(client, type_id, "large", {"title": "a", "spec": {"size": 2**60}})
        go(signed_in(page, served), f"#/entities/{id}")
        page.get_by_role("button", name="Change").click()
        expect(page.locator(".note.change")).to_contain_text("cannot hold exactly")
        assert page.locator("form").count() == 0


def test_users_are_offered_only_allowed_actions(browser: Browser, served: Served, type_id: str) -> None:
    with served.client() as client:
        id = created(client, type_id, "mine", {"title": "a", "spec": {"size": 1}}, resolveEntity="true")
        for role in ("viewer", "author"):
            grant(client, f"entities/{id}", role, "ReadOnly")
    for role, offers in (("viewer", False), ("author", True)):
        with served.client(role) as user, paged(browser) as page:
            go(signed_in(page, served, role), "#/entities")
            page.wait_for_selector("article.row")
            expect(page.locator("text=New entity")).to_have_count(int(offers))
            go(page, f"#/entities/{id}")
            page.wait_for_selector("h2 >> text=Content")
            assert page.locator(".buttons").count() == 0
            assert user.get(f"/statecfg/1.0/rights/{id}").json() == {"level": "ReadOnly"}
            level = "ReadWrite" if role == "author" else "ReadOnly"
            assert user.get("/statecfg/1.0/rights").json() == {"types": {type_id: level}}
            assert user.put(f"{API}/entities/{id}", json={"name": "theirs"}).status_code == 403
            assert user.delete(f"{API}/entities/{id}").status_code == 403
    with served.client() as client:
        grant(client, f"entities/{id}", "author", "ReadWrite")
    with paged(browser) as page:
        go(signed_in(page, served, "author"), f"#/entities/{id}")
        expect(page.get_by_role("button", name="Change")).to_be_visible()
        assert page.get_by_role("button", name="Delete").count() == 0


def test_runs_entities_and_tasks_link_to_each_other(browser: Browser, served: Served, type_id: str) -> None:
    from sqlalchemy import update

    from statecfg import store
    from statecfg.playbook import project
    from statecfg.store import runs
    from statecfg.store.entities import tables

    with served.client() as client, paged(browser) as page:
        id = created(client, type_id, "linked", {"title": "a", "spec": {"size": 1}}, resolveEntity="true")
        with store.opened(project.find(served.root), served.store) as opened:
            report = {
                "run": "0123456789ab",
                "mode": "apply",
                "playbook": f"site.yml#{id.rpartition(':')[2]}",
                "hosts": {},
            }
            runs.record(opened, report, 1_750_000_000.0, 1_750_000_001.0, "ann@desk")
            started_run = (
                update(tables.task).where(tables.task.c.entity == id).values(details="run 0123456789ab: apply")
            )
            opened.attempt(lambda connection: connection.execute(started_run))
        go(signed_in(page, served), "#/runs/0123456789ab")
        page.click("dl >> text=create")
        expect(page.locator("h1")).to_have_text("create")
        page.click("summary >> text=Details")
        page.locator("a", has_text="run 0123456789ab").first.click()
        page.click("dl >> text=linked")
        expect(page.locator("h1")).to_have_text("linked")
        expect(page.locator("article.row", has_text="site.yml#")).to_have_count(1)
        page.locator("article.row", has_text="create").locator("a").first.click()
        expect(page.locator("h1")).to_have_text("create")
        page.locator("p a").last.click()
        expect(page.locator("h1")).to_have_text("linked")
        page.locator("article.row", has_text="site.yml#").locator("a.name").click()
        expect(page.locator("h1")).to_contain_text("apply site.yml#")
