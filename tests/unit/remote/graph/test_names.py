"""The names of outcomes, statuses, states, modes and events: the docs explain them."""

from __future__ import annotations

import re
from pathlib import Path

from statecfg.remote.graph import events, names
from tests.each import each

REPOSITORY = Path(__file__).parents[4]
PAGES = {
    names.Outcome: "report.md",
    names.ActionStatus: "report.md",
    names.HostStatus: "report.md",
    names.RunStatus: "report.md",
    names.HookStatus: "report.md",
    names.State: "lifecycle.md",
    names.Mode: "report.md",
    names.ResourceEvent: "lifecycle.md",
    events.HostEvent: "lifecycle.md",
    events.RunEvent: "architecture.md",
}


@each("listed", PAGES, ids=lambda listed: listed.__name__)
def test_the_docs_explain_every_name(listed: type[names.Outcome]) -> None:
    page = (REPOSITORY / "docs" / PAGES[listed]).read_text()
    assert [name for name in listed.ALL if f"`{name}`" not in page and not re.search(rf"\b{name}\b", page)] == []


@each("listed", PAGES, ids=lambda listed: listed.__name__)
def test_each_list_contains_all_its_names(listed: type[names.Outcome]) -> None:
    single = {value for name, value in vars(listed).items() if name.isupper() and isinstance(value, str)}
    assert single == set(listed.ALL)
    assert len(listed.ALL) == len(single)


def test_only_one_page_has_a_table_of_host_events() -> None:
    rows = tuple(f"| `{name}` |" for name in events.HostEvent.ALL)
    pages = {
        page.name
        for page in (REPOSITORY / "docs").rglob("*.md")
        for line in page.read_text().splitlines()
        if line.startswith(rows)
    }
    assert pages == {PAGES[events.HostEvent]}


def test_every_list_of_names_has_a_page_in_the_docs() -> None:
    assert set(PAGES) == {
        value
        for module in (names, events)
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
