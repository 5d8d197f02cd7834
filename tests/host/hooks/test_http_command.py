"""HTTP hooks with the real command: it applies their changes, respects their refusals and never hangs."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.service import HookError
from tests.host.hooks.http.projects import Watched
from tests.host.hooks.http.servers import answer, serving
from tests.host.pages import Reader

PLAYBOOK = """
hosts: "@local"
resources:
  - directory: {out}
  - file: {out}/motd
    content: "hello\\n"
    requires: [directory:{out}]
"""


class Site:
    """A project for this machine with its own store, ledger and hook."""

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
        """Run a verb on the playbook. Return the report of this machine."""
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


def test_apply_uses_the_hooks_changes_and_destroy_waits_for_finalize(site: Site) -> None:
    watched = Watched()

    def greet(request: Any) -> None:
        if request.children:
            request.children[f"file:{site.out}/motd"]["spec"]["content"] += "looked after\n"

    watched.change = greet
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


def test_hook_verbs_show_http_hooks_and_retry_repeats_pending_calls(site: Site) -> None:
    def verb(words: str, code: int = 0) -> str:
        done = site.reader.shell(f"STATECFG_STORE={site.root}/store.db statecfg hook {words}")
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def retried(code: int) -> dict[str, Any]:
        """Repeat `hook retry` until it makes the pending call."""
        while True:
            done = site.reader.shell(f"STATECFG_STORE={site.root}/store.db statecfg hook retry --json")
            found: dict[str, Any] = json.loads(done.stdout)
            if found["called"]:
                assert done.returncode == code, done.stdout + done.stderr
                return found

    watched = Watched()
    with watched.service.serving() as url:
        site.hook(url)
        site.run("apply --yes", 0)
        (first,) = json.loads(verb("log greeting --json"))["events"]
        assert first["node"] == "@local"  # although the host is new to the store
        assert url in verb("list") and "no pending" not in verb("show greeting")
        watched.errors = [HookError("guests"), HookError("more guests")]
        site.run("destroy --yes", 1)
        owed = json.loads(verb("show greeting --json"))["owed"]
        assert [(each["hook"], each["phase"], each["host"], each["playbook"]) for each in owed] == [
            ("greeting", "finalize", "@local", "work/site.yml")
        ]
        assert re.search(
            r"owed +greeting +finalize +@local +work/site.yml +tried 1 time.*: guests", verb("show greeting")
        )
        newest, oldest = json.loads(verb("log greeting --json"))["events"]
        assert (newest["hook"], newest["node"], newest["policy"]) == ("greeting", "@local", "work/site.yml")
        assert (newest["event"], newest["severity"], newest["error"]) == ("finalize", "error", "guests")
        assert (oldest["event"], oldest["severity"]) == ("pre-reconcile", "info")
        assert re.search(r"error +finalize +greeting +@local +work/site.yml", verb("log greeting"))
        again = retried(1)
        assert [(each["hook"], each["host"], each["status"]) for each in again["called"]] == [
            ("greeting", "@local", "owed")
        ]
        assert [(each["hook"], each["attempts"], each["error"]) for each in again["owed"]] == [
            ("greeting", 2, "more guests")
        ]
        assert retried(0)["owed"] == []
        assert verb("retry") == "0 run, 0 still queued\n"


@pytest.mark.parametrize(("policy", "code", "motd"), [("abort", 1, None), ("continue", 0, "hello\n")])
def test_the_policy_decides_what_a_failing_service_means(site: Site, policy: str, code: int, motd: str | None) -> None:
    with serving(answer(500, "boom")) as server:
        site.hook(server.url, policy)
        host = site.run("apply --yes", code)
    assert f"hook request at {server.url} returned 500: boom" in json.dumps(host)
    assert site.motd == motd


def test_a_stalled_service_fails_the_run_in_time(site: Site) -> None:
    with serving(lambda line, _: line.recv(1) and None) as server:
        site.hook(server.url, timeout="PT2S")
        host = site.run("apply --yes", 1)
    assert host["status"] == "failed" and "Client.Timeout exceeded" in host["error"]["summary"]
    assert site.motd is None


def test_the_progress_names_the_awaited_service_with_attempt_and_deadline(site: Site) -> None:
    """The service fails once. The second attempt is held until the run names it."""
    named = threading.Event()
    watched = Watched()
    watched.change = lambda request: named.wait(60)
    with watched.service.serving() as url:
        site.hook(url, "retry", timeout="PT55S")
        for verb, event in (("apply", "pre-reconcile"), ("destroy", "finalize")):
            watched.errors = [HookError("not yet")]
            named.clear()
            said = ""
            command = f"exec statecfg {verb} site.yml --yes --store {site.root}/store.db 2>&1"
            with site.reader.started(command) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    said += line
                    if "waits for hook greeting " in line:
                        named.set()
                assert process.wait(60) == 0, said
            waits = rf"^@local: waits for hook greeting \({event}\), attempt 2, until \d\d:\d\d:\d\d$"
            assert re.search(waits, said, re.M), said


def test_wrong_children_end_apply_with_bad_input(site: Site) -> None:
    with serving(answer(200, '{"children":{"x":{"kind":"File"}}}')) as server:
        site.hook(server.url)
        done = site.reader.shell(f"statecfg apply site.yml --yes --store {site.root}/store.db")
    assert done.returncode == 5, done.stderr
    assert "SC0609" in done.stderr and "hooks/greeting.yml:1" in done.stderr and "is missing" in done.stderr
    assert site.motd is None


def test_hooks_of_several_hosts_are_called_in_parallel(site: Site) -> None:
    """The service answers only after it was called for all hosts, so the calls must run at the same time."""
    names = ["one", "two", "three"]
    together = threading.Barrier(len(names))
    watched = Watched()
    watched.change = lambda request: together.wait(20)
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
