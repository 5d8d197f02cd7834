"""HTTP hooks through the real command: what they change is applied, what they refuse is not, and nothing hangs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.service import HookError
from tests.hooks.http.projects import Watched
from tests.hooks.http.servers import answer, serving
from tests.pages import Reader

PLAYBOOK = """
hosts: "@local"
resources:
  - directory: {out}
  - file: {out}/motd
    content: "hello\\n"
    requires: [directory:{out}]
"""


class Site:
    """A project for this machine, with a store, a ledger and a hook of its own."""

    def __init__(self, root: Path) -> None:
        self.reader = Reader(root / "home")
        self.root, self.out = self.reader.place, root / "out"
        (self.root / "hooks").mkdir(mode=0o755)
        (self.root / "inventory.yml").write_text('hosts: {"@local": {}}\n')
        (self.root / "site.yml").write_text(PLAYBOOK.replace("{out}", str(self.out)))

    def hook(self, url: str, policy: str = "abort", timeout: str = "PT30S") -> None:
        hook = f"version: v1, address: {{uri: '{url}'}}, timeout: {timeout}, capabilities: [pre-reconcile, finalize]"
        path = self.root / "hooks/greeting.yml"
        path.write_text(f"metadata: {{name: greeting}}\nspec: {{hook: {{{hook}}}, onFailure: {policy}}}\n")
        path.chmod(0o644)

    def run(self, verb: str, code: int) -> dict[str, Any]:
        """Run a verb on the playbook; return what is reported of this machine."""
        started = time.monotonic()
        done = self.reader.shell(f"statecfg {verb} site.yml --store {self.root}/store.db --json")
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr and time.monotonic() - started < 60
        found: dict[str, Any] = json.loads(done.stdout)["hosts"]["@local"]
        return found

    @property
    def motd(self) -> str | None:
        path = self.out / "motd"
        return path.read_text() if path.exists() else None


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    assert not list(tmp_path.glob("**/.statecfg-*"))


def test_what_a_hook_changes_is_applied_and_goes_when_it_lets_it_go(site: Site) -> None:
    watched = Watched()

    def greet(request: Any) -> None:
        if request.children:
            request.children[f"file:{site.out}/motd"]["spec"]["content"] += "looked after\n"

    watched.change = greet  # type: ignore[method-assign]
    with watched.service.serving() as url:
        site.hook(url)
        site.run("plan", 0)
        assert watched.seen == []
        applied = site.run("apply --yes", 0)
        assert site.motd == "hello\nlooked after\n"
        assert [(each["hook"], each["event"], each["status"]) for each in applied["fired"]] == [
            ("greeting", "pre-reconcile", "ok")
        ]
        site.run("apply --yes", 0)
        ready = [item for item in watched.seen[-1].status["conditions"] if item["type"] == "Ready"]
        assert ready[0]["reason"] == "CONDITIONSOK" and watched.seen[-1].status["observedGeneration"] == 1
        watched.errors = [HookError("guests")]
        held = site.run("destroy --yes", 1)
        assert "guests" in json.dumps(held) and site.motd == "hello\nlooked after\n"
        site.run("destroy --yes", 0)
    assert site.motd is None


@pytest.mark.parametrize(("policy", "code", "motd"), [("abort", 1, None), ("continue", 0, "hello\n")])
def test_a_service_that_fails_is_taken_as_its_policy_says(site: Site, policy: str, code: int, motd: str | None) -> None:
    with serving(answer(500, "boom")) as server:
        site.hook(server.url, policy)
        host = site.run("apply --yes", code)
    assert f"hook request at {server.url} returned 500: boom" in json.dumps(host)
    assert site.motd == motd


def test_a_service_that_stalls_ends_the_run_in_time(site: Site) -> None:
    with serving(lambda line, _: line.recv(1) and None) as server:
        site.hook(server.url, timeout="PT2S")
        host = site.run("apply --yes", 1)
    assert host["status"] == "failed" and "Client.Timeout exceeded" in host["error"]["summary"]
    assert site.motd is None


def test_children_that_are_wrong_are_bad_input(site: Site) -> None:
    with serving(answer(200, '{"children":{"x":{"kind":"File"}}}')) as server:
        site.hook(server.url)
        done = site.reader.shell(f"statecfg apply site.yml --yes --store {site.root}/store.db")
    assert done.returncode == 5, done.stderr
    assert "SC0609" in done.stderr and "hooks/greeting.yml:1" in done.stderr and "is missing" in done.stderr
    assert site.motd is None


def test_hosts_are_asked_for_side_by_side(site: Site) -> None:
    """A service that answers only once it has been asked for all hosts is asked for all of them at a time."""
    names = ["one", "two", "three"]
    together = threading.Barrier(len(names))
    watched = Watched()
    watched.change = lambda request: together.wait(20)  # type: ignore[assignment]
    (site.root / "inventory.yml").write_text(
        "hosts:\n" + "".join(f"  {name}: {{transport: local}}\n" for name in names)
    )
    playbook = site.root / "site.yml"
    playbook.write_text(playbook.read_text().replace('"@local"', "all"))
    with watched.service.serving() as url:
        site.hook(url)
        how = f"--yes -f 1 --lock-timeout 60 --store {site.root}/s.db"
        done = site.reader.shell(f"statecfg apply site.yml {how}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not together.broken and len(watched.seen) == len(names)
