"""Measure the script time of each step on the web page, with many hosts, runs, units, entities and tasks in the store.

    .venv/bin/python bench/page.py [--hosts 2000] [--runs 10000] [--units 500] [--entities 10000] [--tasks 2000]

The output gives the CPU time of scripts in a headless Chromium and the number of elements for two widths of the page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import CDPSession, Page

from tests.host.server import browser
from tests.host.server.browser import go
from tests.host.server.many import LARGE_RUN, fill
from tests.host.server.many_entities import entity_id, fill_entities
from tests.host.server.many_services import fill_services
from tests.host.server.serving import serving

LARGEST = 200.0  # limit for the script time in ms
WIDTHS = (1280, 390)
Step = Callable[[Page], object]
# The list after the search: one row.
ONLY_ROW = ":nth-match(article.row, 1):only-child"
STEPS: tuple[tuple[str, Step, str], ...] = (
    ("overview", lambda page: go(page, "#/"), "h1 >> text=in trouble"),
    ("hosts", lambda page: go(page, "#/hosts"), "article.row >> nth=49"),
    ("hosts: next page", lambda page: page.click("text=More hosts"), "a >> text=First hosts"),
    ("hosts: search", lambda page: page.fill('[data-param="find"]', "host1999"), "text=1 of 2,000 hosts match"),
    ("hosts: outcome", lambda page: go(page, "#/hosts?outcome=failed"), "text=/of 2,000 hosts match/"),
    ("a host", lambda page: go(page, "#/hosts/host7"), "h2 >> text=Last runs"),
    ("runs", lambda page: go(page, "#/runs"), "article.row >> nth=49"),
    ("runs: older", lambda page: page.click("text=Older runs"), "a >> text=Newest runs"),
    ("runs: of a host", lambda page: go(page, "#/runs?host=host77"), "article.row"),
    ("a run of all hosts", lambda page: go(page, f"#/runs/{LARGE_RUN}"), "details.fold.host >> nth=49"),
    ("search in that run", lambda page: page.fill('[data-param="find"]', "needle"), "text=1 of 2,000 hosts match"),
    ("services", lambda page: go(page, "#/services"), ".unit >> nth=49"),
    ("services: next page", lambda page: page.click("text=More units"), "a >> text=First units"),
    ("services: search", lambda page: page.fill('[data-param="find"]', "web7/3"), "text=1 of 500 units match"),
    ("services: in trouble", lambda page: go(page, "#/services?state=trouble"), "text=21 of 500 units match"),
    ("entities", lambda page: go(page, "#/entities"), "article.row >> nth=24"),
    ("entities: next page", lambda page: page.click("text=Older"), "text=2 of 400"),
    ("entities: search", lambda page: page.fill('[data-param="find"]', "blog9999"), ONLY_ROW),
    ("entities: state", lambda page: go(page, "#/entities?state=RESOLUTION_ERROR"), "text=1 of 4"),
    ("an entity", lambda page: go(page, f"#/entities/{entity_id(7)}"), "h2 >> text=Content"),
    ("tasks", lambda page: go(page, "#/tasks"), "article.row >> nth=24"),
    ("tasks: next page", lambda page: page.click("text=Older"), "text=2 of 80"),
    ("tasks: search", lambda page: page.fill('[data-param="find"]', "blog1999"), ONLY_ROW),
    ("tasks: errors", lambda page: go(page, "#/tasks?status=error&type=acme:site"), "article.row >> nth=19"),
)


def script_time(session: CDPSession) -> float:
    """Return the CPU time of all scripts so far in milliseconds."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(float(each["value"]) for each in metrics if each["name"] == "ScriptDuration")


def measured(page: Page, session: CDPSession, step: Step, done: str) -> tuple[float, int]:
    """Return the script time of a step in milliseconds and the number of elements after the step."""
    before = script_time(session)
    step(page)
    page.wait_for_selector(done)
    page.wait_for_selector(".loading", state="detached")
    page.wait_for_timeout(200)
    elements: int = page.evaluate("document.querySelectorAll('*').length")
    return script_time(session) - before, elements


def main() -> int:
    """Measure and print all steps. Return 1 if a step takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--units", type=int, default=500)
    parser.add_argument("--entities", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=2000)
    given = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "project") as served:
        fill(served, given.hosts, given.runs)
        fill_services(served, given.units, given.hosts)
        fill_entities(served, given.entities, given.tasks)
        with browser.browsing() as program:
            for width in WIDTHS:
                with browser.paged(program, (width, 900)) as page:
                    session = page.context.new_cdp_session(page)
                    session.send("Performance.enable", {"timeDomain": "threadTicks"})
                    browser.signed_in(page, served)
                    for name, step, done in STEPS:
                        took, elements = measured(page, session, step, done)
                        worst = max(worst, took)
                        print(f"{width:5} px  {name:20} {took:7.1f} ms of scripts {elements:7,} elements", flush=True)
    return 1 if worst > LARGEST else 0


if __name__ == "__main__":
    sys.exit(main())
