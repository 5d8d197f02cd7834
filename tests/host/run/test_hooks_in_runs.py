"""Hooks in runs from the command line on real hosts: they are called at the right time with the right input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.service import HookError
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.graph.names import ResourceEvent
from tests import ROOT, lab
from tests.host.hooks.http.projects import Watched
from tests.host.run import hooked, rig
from tests.host.run.hooked import FAIL, NOTE, USER, Site, causes, fired, outcomes, states
from tests.lab import Host, processes
from tests.lab.fixtures import or_skip

A, B, C = "file:/srv/site-a", "file:/srv/site-b", "file:/srv/site-c"
HELD = (
    "#!/bin/sh\ncat > /dev/null\ntouch {root}/begun\n"
    "for n in $(seq 400); do [ -e {root}/go ] && break; sleep 0.05; done\ntouch {root}/ended\n"
)
SLOW = "#!/bin/sh\ncat > /dev/null\ntouch {root}/begun\nsleep {seconds}\ntouch {root}/ended\n"


@pytest.fixture
def host() -> Iterator[Host]:
    with or_skip():
        (found,) = lab.light_hosts(1, prefix="run")
    yield found
    found.stop()


@pytest.fixture
def site(host: Host, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "site", [host])
    yield made
    assert not hooked.left_here(made), "a hook still runs on the controller"
    processes.wait_until(lambda: not rig.everything_ours(host), 20, "all processes on the host to end")


def boot(host: Host, name: str) -> None:
    """Make the host report a new boot id."""
    script = f"echo {name} > /run/boot-{name}; mount --bind /run/boot-{name} /proc/sys/kernel/random/boot_id"
    host.run(["sh", "-c", script])


# Events of hosts


def test_host_events_fire_only_when_they_happen(site: Site, host: Host) -> None:
    site.files(a="1")
    site.hook("notes", dict.fromkeys(HostEvent.ALL, NOTE))
    count = 0

    def after(*words: str, code: int = 0) -> list[str]:
        nonlocal count
        site.run(*words, code=code)
        seen = causes(site.seen("notes"))[count:]
        count += len(seen)
        return [each.removeprefix("node-") for each in seen]

    apply = ("apply", "site.yml", "--yes")
    assert after("plan", "site.yml", "--out", "it.plan") == after("verify", "site.yml", code=2) == []
    assert not (site.root / "store.db").exists()
    host.path("/srv/site-a").write_text("x")
    assert after("apply", "it.plan", code=6) == ["registered", "facts-changed"]
    assert after(*apply) == ["bound-to-policy", "install-finished"]
    assert after(*apply) == ["install-finished"]
    host.run(["hostname", "other"])
    boot(host, "second")
    before = (site.root / "store.db").read_bytes()
    assert after("plan", "site.yml") == after("verify", "site.yml") == []
    assert (site.root / "store.db").read_bytes() == before
    assert sorted(after(*apply)) == ["booted", "facts-changed", "install-finished"]
    site.playbook("- command: fails\n  argv: ['false']\n  creates: /none\n")
    assert after(*apply, code=1) == []
    assert after("hosts", "unbind", host.name, "site.yml") == ["unbound-from-policy"]
    boot(host, "third")
    assert after("destroy", "site.yml", "--yes") == ["booted"]  # the host was no longer bound
    site.files(a="2")
    assert after(*apply) == ["bound-to-policy", "install-finished"]
    assert after("destroy", "site.yml", "--yes") == ["unbound-from-policy"]
    assert after("hosts", "forget", host.name, "--yes") == ["deleted"]
    (site.root / "hooks/notes.yml").unlink()
    assert after(*apply) == []  # the hook is no longer declared

    told = {each["hook"]["cause"].removeprefix("node-"): each for each in site.seen("notes")}
    for each in told.values():
        assert each["node"]["name"] == host.name and each["node"]["facts"]["machine_id"]
    assert told["booted"]["node"]["facts"]["boot_id"] == "third" and told["registered"]["policy"] is None
    assert told["facts-changed"]["node"]["facts"]["hostname"] == "other" == told["deleted"]["node"]["hostname"]
    for name in ("bound-to-policy", "install-finished", "unbound-from-policy"):
        assert told[name]["policy"]["name"] == "site/site.yml"
    assert told["install-finished"]["node"]["state"]["installed"] == "site/site.yml"


# Events of resources


def test_resource_events_call_the_selected_hooks_in_order(site: Site, host: Host) -> None:
    site.files(a="1", b="1")
    order = {"here-first": 1, "there-second": 2, "here-third": 3}
    for name, number in order.items():
        where = "host" if name.startswith("there") else "controller"
        site.hook(name, dict.fromkeys(ResourceEvent.ALL, NOTE), where=where, order=number, select={"tags": ["a"]})
    others = {"types": ["service"]}, {"names": ["file:*-b"]}, {"hosts": "none", "names": ["*"]}
    (site.root / "inventory.yml").write_text(
        (site.root / "inventory.yml").read_text() + "  none: {address: 127.0.0.9}\n"
    )
    site.playbook((site.root / "site.yml").read_text().partition("resources:\n")[2].replace("\n  ", "\n").strip())
    (site.root / "site.yml").write_text(
        (site.root / "site.yml").read_text().replace("hosts: all", f"hosts: {host.name}")
    )
    for number, select in enumerate(others):
        site.hook(f"other{number}", {"post-create": NOTE}, select=select)
    planned = site.one("plan")
    first = site.one("apply")
    assert [each["hook"] for each in planned["hooks"]] == [*order, *order, "other1"]
    assert fired(first) == [
        *((name, event, A, "ok") for event in ("pre-reconcile", "post-create") for name in order),
        ("other1", "post-create", B, "ok"),
    ]
    here, there = site.seen("here-first"), site.seen("there-second", host)
    assert causes(here) == causes(there) == [f"pre-reconcile {A}", f"post-create {A}"]
    for one, other in zip(here, there, strict=True):
        assert one["resource"] == other["resource"] and one["policy"]["name"] == other["policy"]["name"]
        assert one["node"]["facts"] == other["node"]["facts"] and one["resource"]["playbook"] == "site/site.yml"
        assert (one["resource"]["type"], one["resource"]["tags"]) == ("file", ["a"])
    assert [each["resource"]["state"] for each in here] == ["", "PRE_CREATED"]
    assert here[1]["resource"]["outcome"] == "changed"
    gone = site.one("destroy")
    assert fired(gone) == [
        (name, event, A, "ok") for event in ("pre-delete", "finalize", "post-delete") for name in order
    ]


def test_items_of_hosts_call_hooks_like_other_resources(site: Site, host: Host) -> None:
    site.playbook(
        "- file: '/srv/site-{{ host_item }}'\n  content: x\n  tags: [a]\n"
        "  for_each_host: {command: [printf, 'a\\nb\\n'], read_only: true, reads: []}"
    )
    text = (site.root / "site.yml").read_text()
    (site.root / "site.yml").write_text(text.replace("hosts: all", f"hosts: {host.name}"))
    site.hook("notes", dict.fromkeys(ResourceEvent.ALL, NOTE), select={"tags": ["a"]})
    planned, first = site.one("plan"), site.one("apply")
    assert {each["name"] for each in planned["hooks"]} == {A, B}
    events = ("pre-reconcile", "post-create")
    assert sorted(fired(first)) == sorted(("notes", event, name, "ok") for event in events for name in (A, B))
    gone = site.one("destroy")
    events = ("pre-delete", "finalize", "post-delete")
    assert sorted(fired(gone)) == sorted(("notes", event, name, "ok") for event in events for name in (A, B))


def test_hooks_can_update_their_configuration_and_the_host_metadata(site: Site, host: Host) -> None:
    counts = """#!/bin/sh
exec python3 -c 'import json, sys
given = json.load(sys.stdin)
count, key = given["hook"]["configuration"]["count"] + 1, given["hook"]["name"]
left = [key for key in given["node"]["metadata"] if key.startswith("old")]
print(json.dumps({"hook": {"configuration": {"update": {"count": count}}},
                  "node": {"metadata": {"update": {key: count}, "remove": left}}}))'
"""
    for where in ("controller", "host"):
        site.hook(f"on-{where}", {"pre-reconcile": counts}, "count: {default: 0}\n", where=where)
    site.run("hosts", "set", host.name, "old=1", "keep=2")
    site.files(a="1", b="1", c="1")
    site.do("apply")
    shown = site.run("hosts", "show", host.name, "--json").json()["hosts"][host.name]["metadata"]
    assert shown == {"keep": 2, "on-controller": 3, "on-host": 3}
    assert site.configuration("on-controller") == {"count": 3}
    assert site.configuration("on-host") == {"count": 0}  # the host has its own configuration
    site.do("apply")
    assert site.run("hosts", "show", host.name, "--json").json()["hosts"][host.name]["metadata"]["on-host"] == 6


def test_a_hook_gets_no_secret(site: Site, host: Host) -> None:
    for where in ("controller", "host"):
        site.hook(f"on-{where}", {"post-create": NOTE}, where=where)
    site.playbook("- line_in_file: /srv/told\n  line: !secret {env: STATECFG_TEST_WORD}\n  create: true\n")
    site.run("apply", "site.yml", "--yes", STATECFG_TEST_WORD="xyzzy-plugh")
    assert host.path("/srv/told").read_text() == "xyzzy-plugh\n"
    for seen in (site.seen("on-controller"), site.seen("on-host", host)):
        assert len(seen) == 1 and seen[0]["resource"]["attributes"]["line"] and "xyzzy" not in json.dumps(seen)


def test_a_plan_lists_the_hooks_of_host_events(site: Site) -> None:
    site.files(a="1")
    site.hook("notes", dict.fromkeys(HostEvent.ALL, NOTE))

    def planned() -> list[str]:
        return [hook["event"] for hook in site.one("plan")["hooks"]]

    first = planned()
    assert sorted(first) == sorted(
        [HostEvent.REGISTERED, HostEvent.FACTS_CHANGED, HostEvent.BOUND, HostEvent.INSTALLED]
    )
    assert "node-install-finished  the host" in site.run("plan", "site.yml").out
    site.one("apply")
    assert sorted(cause.split()[0] for cause in causes(site.seen("notes"))) == sorted(first)
    assert planned() == [HostEvent.INSTALLED]


# HTTP hooks


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_http_hooks_are_retried_and_can_block_a_destroy(site: Site, host: Host, watched: Watched) -> None:
    def change(request: Any) -> None:
        if request.children:
            request.children[A]["spec"]["content"] = "reshaped"

    watched.change = change
    site.files(a="1")
    with watched.service.serving() as url:
        site.http(url, onFailure="retry", deadline="PT1M")
        site.run("plan", "site.yml", "--out", "it.plan")
        assert not watched.seen
        stale = site.run("apply", "it.plan", code=6)
        assert "The plan uses earlier answers of HTTP hooks" in stale.out and "greeting" in stale.out
        assert not host.path("/srv/site-a").exists()
        watched.errors = [HookError("no"), HookError("not yet")]
        assert fired(site.one("apply")) == [("greeting", "pre-reconcile", "", "ok")]
        assert host.path("/srv/site-a").read_text() == "reshaped"
        watched.errors = [HookError("never", permanent=True)]
        done = site.one("apply", code=1)
        assert fired(done) == [("greeting", "pre-reconcile", "", "failed")] and "never" in done["error"]["summary"]
        watched.errors = [HookError("as you like", continue_=True)]
        assert fired(site.one("apply")) == [("greeting", "pre-reconcile", "", "continued")]
        assert host.path("/srv/site-a").read_text() == "reshaped"  # the last answer stays in force
        site.http(url, onFailure="retry", deadline="PT2S")
        watched.errors = [HookError("guests")] * 9
        held = site.one("destroy", code=1)
        assert "finalize failed (greeting: guests); nothing was removed" in held["error"]["summary"]
        assert host.path("/srv/site-a").exists() and outcomes(held) == {A: "skipped"}
        watched.errors = []
        assert fired(site.one("destroy")) == [("greeting", "finalize", "", "ok")]
        assert not host.path("/srv/site-a").exists()
        site.do("apply")
        host.run(["rm", "-r", "/var/lib/statecfg"])  # without the ledger, nothing is removed, but finalize still runs
        assert fired(site.one("destroy")) == [("greeting", "finalize", "", "ok")]
        site.do("apply")
    (site.root / "hooks/greeting.yml").unlink()
    assert "register it again, or pass --no-hooks" in site.one("destroy", code=1)["error"]["summary"]
    assert site.one("destroy", "--no-hooks")["status"] == "ok"


def test_doing_without_hooks_needs_full_control(site: Site, watched: Watched) -> None:
    site.files(a="1")
    site.hook("written", {"post-create": FAIL})
    site.type("kept", {"post-create": FAIL})
    site.run("hook", "create", "stored", "kept")
    site.run("hook", "revoke", "stored", USER)
    site.http("http://127.0.0.1:9/v1")
    for name in ("written", "stored", "greeting"):
        said = site.run("apply", "site.yml", "--yes", "--no-hooks", code=5).err
        assert f"does not have Full Control of the hook {name}" in said
        if name == "stored":
            site.run("hook", "grant", "stored", USER)
        else:
            path = site.root / f"hooks/{name}.yml"
            spec = json.loads(path.read_text())["spec"]
            site.register(name, {**spec, "fullControl": [USER]})
    done = site.one("apply", "--no-hooks")
    assert (done["status"], fired(done)) == ("ok", [])


# One at a time


def test_hooks_of_many_hosts_take_turns_without_timing_out(tmp_path: Path) -> None:
    with or_skip():
        machines = lab.light_hosts(10, prefix="turn")
    try:
        site = Site(tmp_path / "site", machines)
        site.files(a="1")
        busy = site.root / "busy"
        alone = f"#!/bin/sh\ncat > /dev/null\nmkdir {busy} || exit 1\nsleep 0.2\nrmdir {busy}\n"
        site.hook("alone", dict.fromkeys(("pre-reconcile", "post-create"), alone), deadline="PT3S")
        found = site.do("apply")
        assert {each["status"] for host in found.values() for each in host["fired"]} == {"ok"}
        assert {len(host["fired"]) for host in found.values()} == {2}
    finally:
        for host in machines:
            host.stop()


def test_statecfg_started_by_a_hook_is_refused_without_blocking(site: Site, host: Host) -> None:
    site.files(a="1")
    settings = " ".join(f"{name}={value}" for name, value in site.environment.items())
    statecfg = f"{settings} PYTHONPATH={ROOT} {sys.executable} -m statecfg"
    script = f"#!/bin/sh\ncat > /dev/null\ncd {site.root}\n"
    for number, words in enumerate(
        ("apply site.yml --yes --lock-timeout 0", f"hook run notes node-booted {host.name}")
    ):
        script += f"{statecfg} {words} > said{number} 2>&1; echo $? >> said{number}\n"
    site.hook("inner", {"post-create": script}, deadline="PT2M")
    site.hook("notes", {"node-install-finished": NOTE, "node-booted": NOTE})
    begun = time.monotonic()
    site.do("apply")
    assert time.monotonic() - begun < 100
    apply, run = ((site.root / f"said{number}").read_text() for number in range(2))
    assert "another run has locked this host" in apply and apply.endswith("\n7\n")
    assert "a running hook started this command, and hooks run one at a time" in run and run.endswith("\n8\n")
    assert causes(site.seen("notes")) == ["node-install-finished"]


# Interrupted from outside


@contextmanager
def applying(site: Site) -> Iterator[subprocess.Popen[str]]:
    """Apply in a separate process, and wait until its hook has begun."""
    for mark in ("begun", "ended"):
        (site.root / mark).unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **site.environment}
    argv = [sys.executable, "-m", "statecfg", "apply", "site.yml", "--yes"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(argv, cwd=site.root, env=environment, stdout=pipe, stderr=pipe, text=True)
    try:
        processes.wait_until(lambda: (site.root / "begun").exists(), 60, "the hook to begin")
        yield process
    finally:
        process.kill()
        process.communicate()


def test_ctrl_c_waits_for_resource_hooks_and_ends_host_hooks(site: Site, host: Host) -> None:
    site.files(a="1", b="1")
    site.hook("slow", {"post-create": HELD.format(root=site.root)}, select={"tags": ["a"]})
    with applying(site) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None and any("Stopping" in line for line in process.stderr)
        time.sleep(4)  # until the host has received the stop, also on a busy machine
        (site.root / "go").touch()
        process.communicate(timeout=60)
        assert process.returncode == 130
    assert (site.root / "ended").exists() and states(host) == {A: "RESOLVED"}
    (site.root / "hooks/slow.yml").unlink()
    site.hook("last", {"node-install-finished": SLOW.format(root=site.root, seconds=60)})
    with applying(site) as process:
        processes.wait_until(lambda: states(host).get(B) == "RESOLVED", 60, "the apply to end")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130 and not hooked.left_here(site)
    (event, *_) = site.log("last")
    assert event["severity"] == "error" and "cut off" in json.dumps(event)


def test_a_hook_that_is_killed_has_failed(site: Site, host: Host) -> None:
    site.files(a="1")
    site.hook("slow", {"post-create": SLOW.format(root=site.root, seconds=60)})
    with applying(site) as process:
        for pid in hooked.running_here(site):
            os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and "the post-create hook slow failed: ended by signal 9" in said
    assert states(host) == {A: "RESOLUTION_ERROR"}
