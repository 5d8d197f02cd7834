"""Hooks, services, saved plans, the question and Ctrl-C with worker processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import ROOT
from tests.host.cli.test_terminal import Terminal
from tests.host.run import hooked, rig
from tests.host.units.fabric import WEB_AND_DB, Fabric, hooks
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts

ENGINE = ("--engine", "processes:2")


@pytest.fixture(scope="module")
def pair() -> Iterator[list[Host]]:
    yield from light_hosts(2, "whole")


def check_services(root: Path, pair: Sequence[Host], *engine: str, **environment: str) -> None:
    """Save a plan with services and relations, apply it, refuse it the second time, and destroy what it made."""
    db, web = pair
    fabric = Fabric(root, pair)
    fabric.charm("db", {"db-relation-joined": 'relation-set word="$(unit-get private-address)"\n'}, ["db"])
    fabric.charm("web", {"db-relation-changed": "relation-get word > /srv/web.conf\n"}, ["db"])
    fabric.play(WEB_AND_DB.format(db.name, web.name))
    fabric("plan", "site.yml", "--out", "one.plan", *engine, **environment)
    done = fabric("apply", "one.plan", "--json", *engine, **environment).json()["hosts"]
    assert hooks(done[web.name], "web/0")[:3] == ["install", "config-changed", "start"]
    assert web.path("/srv/web.conf").read_text().strip() == db.address
    fabric("apply", "one.plan", *engine, code=6, **environment)
    fabric("destroy", "site.yml", "--yes", *engine, **environment)
    assert not web.path("/srv/web").exists()


def test_a_saved_plan_with_services_and_relations_is_applied(tmp_path: Path, pair: list[Host]) -> None:
    check_services(tmp_path, pair, *ENGINE)


def test_hooks_run_on_the_controller_and_on_the_host(tmp_path: Path, pair: list[Host]) -> None:
    site = hooked.Site(tmp_path / "site", pair, {"STATECFG_ENGINE": "processes:2"})
    site.files(a="one")
    here = site.hook("here", dict.fromkeys(("post-create", "node-install-finished"), hooked.NOTE))
    site.hook("there", {"post-create": "#!/bin/sh\ncat > /srv/site-seen\n"}, where="host")
    report = site.do("apply")
    assert [host["status"] for host in report.values()] == ["ok", "ok"]
    seen = [json.loads(line) for line in (here / "seen").read_text().splitlines()]
    assert len(seen) == 4
    assert all(host.path("/srv/site-seen").exists() for host in pair)
    fired = [(one["hook"], one["status"]) for host in report.values() for one in host["fired"]]
    assert sorted(set(fired)) == [("here", "ok"), ("there", "ok")]


def test_the_question_and_ctrl_c_work(tmp_path: Path, pair: list[Host]) -> None:
    site = hooked.Site(tmp_path / "site", pair[:1])
    site.playbook(
        "- command: wait\n  argv: [sleep, '2']\n  always: true\n"
        "- file: /srv/after\n  content: x\n  requires: [command:wait]\n"
    )
    environ = {**os.environ, **site.environment, "PYTHONPATH": str(ROOT)}
    screen = Terminal(SimpleNamespace(base=site.root, environ=environ), "apply", "site.yml", *ENGINE)
    screen.until("[y/N]")
    workers = processes.descendants(screen.process.pid)
    assert len([pid for pid in workers if b"statecfg.engines.processes" in _argv(pid)]) == 2
    screen.type("y\n")
    screen.until("command:wait")
    processes.wait_until(lambda: any(b"sleep" in _argv(pid) for pid in rig.everything_ours(pair[0])), 30, "sleep")
    screen.type("\x03")
    screen.until("Stopping")
    assert screen.end() == 130, screen.shown
    assert not pair[0].path("/srv/after").exists()
    processes.wait_until(lambda: not any(map(processes.alive, workers)), 30, "the end of the workers")
    assert not rig.everything_ours(pair[0])
    assert rig.lock_is_free(pair[0])


def _argv(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return b""
