"""The page in a real browser: real applies to this machine, live, on a phone, and with hostile texts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from statecfg import store
from statecfg.playbook import project
from statecfg.store import hosts, runs
from tests import ROOT
from tests.host.command import statecfg
from tests.host.run.relay import Relay
from tests.host.server.browser import CANARY, PHONE, fits, go, paged, signed_in
from tests.host.server.scenes import NOOP, created, entity_type, interface, made
from tests.host.server.serving import Served, serving

LONG = "a line that is much longer than any phone is wide, as lines of configuration files tend to be"
PLAYBOOK = """from statecfg import play
from statecfg.resources import command, directory, file

@play(hosts="@local")
def site(host):
    top = directory({place!r})
    conf = file({place!r} + "/app.conf", content={content!r}, mode={mode!r}, requires=[top])
    same = [file({place!r} + "/same-%d" % i, content="x\\n", requires=[top]) for i in range(3)]
    return [top, conf, *same, {last}]
"""
FAILS = """command("migrate", argv=["sh", "-c", {script!r}], requires=[conf]),
        file({place!r} + "/after", content="z\\n", requires=["command:migrate"])"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server whose store contains two real applies: a successful one, and one that failed at its end."""
    root = tmp_path_factory.mktemp("page") / "project"
    place = str(root.parent / "made")
    with serving(root) as served:
        play(root, "site.py", place, f"a = 1\n{LONG}\n", "0640", "")
        apply(served, "site.py")
        script = f"echo '{CANARY}'; echo 'could not connect to the database' >&2; exit 3"
        play(root, "site.py", place, f"a = 2\n{CANARY}\n{LONG}\n", "0600", FAILS.format(script=script, place=place))
        apply(served, "site.py", code=1)
        yield served


def play(root: Path, name: str, place: str, content: str, mode: str, last: str) -> None:
    (root / name).write_text(PLAYBOOK.format(place=place, content=content, mode=mode, last=last))


def apply(served: Served, playbook: str, code: int = 0) -> None:
    state = str(served.root.parent / "state")
    own = {"STATECFG_STORE": served.store, "STATECFG_STATE_DIR": state}
    statecfg("apply", playbook, "--yes", cwd=served.root, code=code, **own)


def applying(served: Served, playbook: str) -> subprocess.Popen[bytes]:
    """Start an apply in a separate process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STORE": served.store, "STATECFG_LOCK_TIMEOUT": "120"}
    env["STATECFG_STATE_DIR"] = str(served.root.parent / "state")
    argv = [sys.executable, "-m", "statecfg", "apply", playbook, "--yes"]
    return subprocess.Popen(argv, cwd=served.root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def waits(served: Served, name: str, mark: Path) -> None:
    """Write a playbook with a command that runs until the file `mark` exists."""
    script = f"until test -e {mark}; do sleep 0.1; done"
    command = f"command('wait', argv=['sh', '-c', {script!r}], effects={{}})"
    play(served.root, name, str(served.root.parent / "other"), "x\n", "0644", command)


def test_the_login_page_shows_no_data_and_needs_a_valid_token(browser: Browser, filled: Served) -> None:
    with paged(browser) as page:
        page.goto(f"{filled.url}/")
        for secret in ("app.conf", "@local", "site.py", "migrate"):
            assert secret not in page.content()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
        assert page.locator("nav").count() == 0
        signed_in(page, filled)
        page.click("text=Sign out")
        page.wait_for_selector("#token")
        page.goto(f"{filled.url}/")
        expect(page.locator("#token")).to_be_visible()


def test_the_overview_shows_what_failed_where_and_why(browser: Browser, filled: Served) -> None:
    with paged(browser) as page:
        signed_in(page, filled)
        expect(page.locator("h1")).to_contain_text("1 host in trouble of 1")
        cause = page.locator(".cause")
        expect(cause).to_contain_text("command:migrate")
        expect(cause).to_contain_text("could not connect to the database")
        expect(cause).to_contain_text("site.py:9")
        assert page.locator("article time").first.get_attribute("title") == page.locator(
            "article time"
        ).first.get_attribute("datetime")


def test_a_run_page_shows_layers_outcomes_and_differences(browser: Browser, filled: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, filled), "#/runs")
        expect(page.locator("article.row")).to_have_count(2)
        expect(page.locator("article.row").nth(0)).to_contain_text("failed")
        expect(page.locator("article.row").nth(1)).to_contain_text("ok")
        page.locator("article.row a.name").nth(0).click()
        columns = page.locator(".map .column")
        expect(columns).to_have_count(4)
        expect(columns.nth(1)).to_contain_text("3 unchanged")
        expect(columns.nth(2)).to_contain_text("command:migrate")
        failed = page.locator("details.fold", has=page.locator("summary", has_text="command:migrate")).last
        expect(failed.locator("pre.box")).to_contain_text("could not connect to the database")
        expect(failed.locator("pre.box")).to_contain_text(CANARY)
        expect(page.locator("summary", has_text="after")).to_contain_text("skipped")
        # A chip of the map opens its node. The keyboard closes it.
        columns.nth(1).locator("button", has_text="app.conf").click()
        conf = page.locator("details.fold", has=page.locator("summary", has_text="app.conf")).last
        expect(conf.locator("tr", has_text="mode")).to_have_text("mode0640 → 0600")
        expect(conf.locator(".line.del")).to_have_text("-a = 1\n")
        expect(conf.locator(".line.ins")).to_have_text(["+a = 2\n", f"+{CANARY}\n"])
        expect(conf.locator("summary")).to_be_focused()
        page.keyboard.press("Enter")
        expect(conf.locator(".line")).to_have_count(0)
        assert page.locator("#main img").count() == 0


def test_a_host_page_shows_its_facts_and_runs(browser: Browser, filled: Served) -> None:
    with paged(browser) as page:
        go(signed_in(page, filled), "#/hosts")
        row = page.locator("article.row")
        expect(row).to_contain_text("served/site.py")
        expect(row.locator(".badge")).to_have_text("✗failed")
        row.locator("a.name").click()
        page.locator("summary", has_text="Facts").click()
        expect(page.locator("tr", has_text="machine_id")).to_be_visible()
        expect(page.locator("article.row")).to_have_count(2)


def test_hostile_names_facts_and_outputs_are_shown_as_text(browser: Browser, filled: Served) -> None:
    name, odd = CANARY, "web\u202egnp.exe\x1b[31m"
    node = {"name": f"file:/{CANARY}", "type": CANARY, "outcome": "failed", "reason": CANARY, "position": CANARY}
    change = {
        "object": CANARY,
        "field": CANARY,
        "before": CANARY,
        "after": odd,
        "diff": f"@@ -1 +1 @@\n-{CANARY}\n+{odd}",
    }
    action = {"op": CANARY, "args": {CANARY: CANARY}, "status": CANARY, "reason": CANARY, "log": f"{CANARY}\n{odd}"}
    fired = {"hook": CANARY, "event": CANARY, "name": CANARY, "where": "host", "status": "failed", "error": CANARY}
    host: dict[str, Any] = {
        "status": "failed",
        "summary": {"failed": 1, CANARY: 2},
        "layers": [[{**node, "changes": [change], "actions": [action]}]],
        "error": {"summary": CANARY, "detail": CANARY, "hint": CANARY},
        "warnings": [CANARY],
        "fired": [fired],
        "units": [{"unit": CANARY, "state": CANARY, "error": CANARY, "hooks": [{"hook": CANARY, "status": CANARY}]}],
    }
    report = {"run": "canary", "mode": "apply", "playbook": CANARY, "hosts": {name: host}}
    with store.opened(project.find(filled.root), filled.store) as opened:
        hosts.check_in(opened, name, {"os": {"pretty_name": CANARY}, CANARY: {CANARY: odd}}, "", "")
        hosts.tag(opened, name, [CANARY])
        runs.record(opened, report, time.time(), time.time(), CANARY)
    try:
        with paged(browser) as page:
            signed_in(page, filled)
            for path in ("#/", "#/runs", "#/runs/canary", "#/hosts"):
                go(page, path)
                page.wait_for_selector(f"main >> text={CANARY[:9]}")
                assert page.locator("#main img").count() == 0, path
            page.locator("article.row a.name", has_text="onerror").click()
            page.locator("summary", has_text="Facts").click()
            expect(page.locator("table")).to_contain_text("web\\u202egnp.exe\\x1b[31m")
            go(page, "#/runs/canary")
            expect(page.locator(".line.ins")).to_have_text("+web\\u202egnp.exe\\x1b[31m\n")
            assert page.locator("#main img").count() == 0
            go(page, f"#/runs/{CANARY}")
            expect(page.locator(".alarm")).to_contain_text("The store has no run")
    finally:
        with store.opened(project.find(filled.root), filled.store) as opened:
            hosts.forget(opened, name)


def test_pages_follow_a_run_live_and_keep_their_position(browser: Browser, filled: Served) -> None:
    mark = filled.root.parent / "go-on"
    waits(filled, "slow.py", mark)
    with paged(browser) as page, paged(browser) as second:
        for each in (page, second):
            go(signed_in(each, filled), "#/runs")
        first = page.locator("article.row", has_text="site.py").first
        expect(first).to_contain_text("failed")
        first.locator("a.name").click()
        page.locator("summary", has_text="app.conf").click()
        expect(page.locator(".line.ins")).to_have_count(2)
        page.evaluate("window.scrollTo(0, 300)")
        process = applying(filled, "slow.py")
        try:
            row = second.locator("article.row", has_text="slow.py")
            expect(row).to_contain_text("running")
            expect(row).to_contain_text("0 of 1 host done")
            row.locator("a.name").click()
            expect(second.locator("main")).to_contain_text("in progress, or waiting for its turn")
            mark.write_text("")
            expect(second.locator("main .badge").first).to_contain_text("ok")
            expect(second.locator(".map .column")).to_have_count(2)
            assert process.wait(30) == 0
        finally:
            mark.write_text("")
            process.kill()
            process.wait()
        # The other page was updated too, and kept its scroll position.
        expect(page.locator(".line.ins")).to_have_count(2)
        assert page.evaluate("window.scrollY") == 300


def test_a_killed_run_is_shown_as_cut_off(browser: Browser, filled: Served) -> None:
    mark = filled.root.parent / "never"
    waits(filled, "killed.py", mark)
    with paged(browser) as page, store.opened(project.find(filled.root), filled.store) as opened:
        go(signed_in(page, filled), "#/runs")
        process = applying(filled, "killed.py")
        try:
            row = page.locator("article.row", has_text="killed.py")
            expect(row).to_contain_text("running")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            mark.write_text("")
        (running,) = runs.under_way(opened)
        silent = running.beat - runs.CUT_OFF - 1
        with opened.transaction() as connection:
            connection.exec_driver_sql(f"UPDATE going SET beat = {silent!r}")  # simulates a silent run
        expect(row.locator(".badge")).to_contain_text("cut off")
        row.locator("a.name").click()
        expect(page.locator(".note")).to_contain_text(f"statecfg run-history --run {running.id}")


def test_a_lost_connection_is_shown_until_it_returns(browser: Browser, filled: Served) -> None:
    at: Any = SimpleNamespace(address="127.0.0.1", port=int(filled.url.rpartition(":")[2]))
    with Relay(at) as relay, paged(browser) as page:
        go(signed_in(page, filled, url=f"http://127.0.0.1:{relay.port}"), "#/hosts")
        expect(page.locator("article.row")).to_have_count(1)
        expect(page.locator("#lost")).to_be_hidden()
        relay.cut.set()
        expect(page.locator("#lost")).to_contain_text("The connection was lost")
        expect(page.locator("article.row")).to_have_count(1)
        with store.opened(project.find(filled.root), filled.store) as opened:
            hosts.tag(opened, "new-host", ["canary"])
        relay.cut.clear()
        expect(page.locator("#lost")).to_be_hidden()
        expect(page.locator("article.row")).to_have_count(2)
        with store.opened(project.find(filled.root), filled.store) as opened:
            hosts.forget(opened, "new-host")
        expect(page.locator("article.row")).to_have_count(1)


def test_every_section_fits_on_a_phone(browser: Browser, filled: Served) -> None:
    with paged(browser, PHONE, dark=True) as page:
        signed_in(page, filled)
        for section in ("", "runs", "hosts", "services", "entities", "tasks", "hosts/%40local"):
            go(page, f"#/{section}")
            page.wait_for_selector("main :is(.row, .empty, .facts)")
            assert fits(page), section
        go(page, "#/runs")
        page.locator("article.row", has_text="site.py").first.locator("a.name").click()
        page.locator("summary", has_text="app.conf").click()
        box = page.locator("pre.box", has=page.locator(".line.ins"))
        assert box.evaluate("box => box.scrollWidth > box.clientWidth"), "the long line scrolls in its box"
        assert fits(page)


def test_entity_and_task_lists_update_live(browser: Browser, filled: Served) -> None:
    with filled.client() as client, paged(browser) as page:
        go(signed_in(page, filled), "#/entities")
        expect(page.locator(".empty")).to_contain_text("There are no types yet")
        kept = made(client, "interfaces", interface())
        path = f"interfaces/{kept['id']}/behaviors"
        made(client, path, {"name": "look", "execution": NOOP})
        type_id = made(client, "entityTypes", entity_type(interfaces=(kept["id"],)))["id"]
        one = created(client, type_id, "first", {"foo": CANARY, "size": 3})
        created(client, type_id, "second", {"foo": "b"}, resolveEntity="true")
        expect(page.locator("article.row")).to_have_count(2)
        page.fill('[data-param="find"]', "sec")
        expect(page.locator("article.row")).to_have_count(1)
        expect(page.locator("article.row")).to_contain_text("RESOLVED")
        page.select_option('[data-param="state"]', "PRE_CREATED")
        expect(page.locator(".empty")).to_have_text("No entity matches these filters.")
        page.fill('[data-param="find"]', "")
        expect(page.locator("article.row")).to_contain_text("first")
        page.select_option('[data-param="type"]', type_id)
        page.locator("article.row a").first.click()
        expect(page.locator("table")).to_contain_text(CANARY)
        expect(page.locator("article.row")).to_contain_text("create")
        assert client.post(f"/cloudapi/1.0.0/entities/{one}/resolve").status_code == 200
        expect(page.locator(".title .badge")).to_contain_text("RESOLVED")
        go(page, "#/tasks")
        expect(page.locator("article.row")).to_have_count(2)
        expect(page.locator("article.row").first).to_contain_text(re.compile("success.*create"))


def test_a_viewer_sees_entities_but_no_hosts(browser: Browser, filled: Served) -> None:
    with paged(browser) as page:
        signed_in(page, filled, "viewer")
        expect(page.locator("nav a")).to_have_text(["Overview", "Entities", "Tasks"])
        for section in ("", "runs", "hosts", "hosts/%40local", "services"):
            go(page, f"#/{section}")
            page.wait_for_timeout(100)
            for secret in ("@local", "site.py", "app.conf", "migrate"):
                assert secret not in page.content()
    with filled.client("viewer") as client:
        for path in ("hosts", "hosts/@local", "runs", "runs/x", "runs/x/hosts/y", "services"):
            answer = client.get(f"/statecfg/1.0/{path}")
            assert answer.status_code == 403, path
            assert "local" not in answer.text
