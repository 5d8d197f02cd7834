"""Plans use the answers of HTTP hooks, and a hook that does not answer removes nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.http.children import API_VERSION
from statecfg.hooks.service import HookError
from tests import lab
from tests.host.hooks.http.projects import Watched
from tests.host.run.hooked import Site
from tests.lab import Host
from tests.lab.fixtures import or_skip

A, ADDED = "file:/srv/site-a", "file:/srv/site-added"


@pytest.fixture(scope="module")
def machine() -> Iterator[Host]:
    with or_skip():
        (found,) = lab.light_hosts(1, prefix="answers")
    yield found
    found.stop()


@pytest.fixture
def host(machine: Host) -> Host:
    machine.run(["sh", "-c", "rm -rf /srv/* /var/lib/statecfg"])
    return machine


@pytest.fixture
def site(host: Host, tmp_path: Path) -> Site:
    return Site(tmp_path / "site", [host])


class Adding:
    """A hook service that changes the content of a file and adds another one."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.watched.change = self.change  # type: ignore[method-assign]  # what it is for
        self.word = "reshaped"

    def change(self, request: Any) -> None:
        if A in request.children:
            request.children[A]["spec"]["content"] = self.word
            request.children[ADDED] = {
                "apiVersion": API_VERSION, "kind": "File", "metadata": {"name": ADDED},
                "spec": {"path": "/srv/site-added", "content": "added"},
            }  # fmt: skip


@pytest.fixture
def adding() -> Adding:
    return Adding()


def answers(report: dict[str, Any]) -> list[str]:
    """Return the answers of hooks that a plan uses."""
    return [hook.get("answer", "") for hook in report["hooks"]]


def test_a_plan_uses_the_last_answer(site: Site, host: Host, adding: Adding) -> None:
    site.files(a="1")
    with adding.watched.service.serving() as url:
        site.http(url)
        assert answers(site.one("plan")) == ["unknown"]
        site.one("apply")
        calls = len(adding.watched.seen)
        assert site.one("verify")["summary"] == {"unchanged": 2}
        planned = site.one("plan", "--detailed-exitcode")
        assert answers(planned) == ["last"]
        assert "; this plan uses its last answer, of " in site.run("plan", "site.yml").out
        site.files(a="1", b="2")  # the answer applies to the other definition as well
        planned = site.one("plan", "--detailed-exitcode", code=2)
        assert planned["summary"] == {"unchanged": 2, "changed": 1}
        site.run("plan", "site.yml", "--out", "it.plan")
        assert len(adding.watched.seen) == calls, "a plan called the service"
        site.run("apply", "it.plan")
        assert {name: host.read(f"/srv/site-{name}") for name in ("a", "b", "added")} == {
            "a": "reshaped", "b": "2", "added": "added"
        }  # fmt: skip
        site.files(a="1", b="3")
        site.run("plan", "site.yml", "--out", "it.plan")
        adding.word = "other"
        stale = site.run("apply", "it.plan", code=6)
        assert "The plan uses earlier answers of HTTP hooks" in stale.out
        assert host.read("/srv/site-b") == "2"


@pytest.mark.parametrize("works", [True, False])
def test_a_plan_asks_a_service_that_declares_dry_runs(site: Site, host: Host, adding: Adding, works: bool) -> None:
    site.files(a="1")
    with adding.watched.service.serving() as url:
        site.http(url, hook={"capabilities": ["pre-reconcile", "dry-run"]})
        planned = site.one("plan", "--detailed-exitcode", code=2)
        assert (answers(planned), planned["summary"]) == (["dry-run"], {"changed": 2})
        assert adding.watched.seen[-1].dry_run and not site.one("apply").get("error")
        assert not adding.watched.seen[-1].dry_run
        adding.word = "new"
        if not works:
            adding.watched.errors = [HookError("closed")] * 2
        planned = site.one("plan", "--detailed-exitcode", code=2 if works else 0)
        assert answers(planned) == (["dry-run"] if works else ["last"])
        assert planned["hooks"][0].get("error") == (None if works else "closed")
        assert host.read("/srv/site-a") == "reshaped"


@pytest.mark.parametrize("how", ["continue", "rule", "nobody answers"])
def test_a_hook_that_does_not_answer_removes_nothing(site: Site, host: Host, adding: Adding, how: str) -> None:
    site.files(a="1")
    rule = {} if how == "continue" else {"onFailure": "continue"}
    with adding.watched.service.serving() as url:
        site.http(url, **rule)
        site.one("apply", "--prune")
        if how != "nobody answers":
            adding.watched.errors = [HookError("not now", continue_=how == "continue")] * 9
            done = site.one("apply", "--prune")
    if how == "nobody answers":
        done = site.one("apply", "--prune")
    assert host.read("/srv/site-added") == "added"
    assert host.read("/srv/site-a") == "reshaped"
    (fired,) = done["fired"]
    assert fired["status"] == "continued" and fired["error"].endswith("; its last answer stays in force")


def test_without_a_last_answer_nothing_is_pruned(site: Site, host: Host, adding: Adding) -> None:
    """The store of an earlier version has no answers."""
    site.files(a="1", b="2")
    with adding.watched.service.serving() as url:
        site.http(url, onFailure="continue")
        site.one("apply")
        site.change_store("DELETE FROM hook_answer")
        adding.watched.errors = [HookError("not now")] * 9
        site.files(a="1")
        done = site.one("apply", "--prune")
        assert host.read("/srv/site-added") == "added" and host.read("/srv/site-b") == "2"
        assert "prunes nothing on this host" in done["fired"][0]["error"]
        adding.watched.errors = []
        site.one("apply", "--prune")
        assert host.read("/srv/site-added") == "added" and not host.path("/srv/site-b").exists()


def test_a_run_that_fails_in_a_hook_is_stored_with_its_playbook(site: Site, adding: Adding) -> None:
    site.files(a="1")
    adding.watched.errors = [HookError("never", permanent=True)]
    with adding.watched.service.serving() as url:
        site.http(url)
        assert site.run("apply", "site.yml", "--yes", "--json", code=1).json()["playbook"] == "site.yml"
    with contextlib.closing(sqlite3.connect(site.root / "store.db")) as database:
        assert database.execute("SELECT playbook FROM run").fetchall() == [("site.yml",)]
