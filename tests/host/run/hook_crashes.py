"""Kills the client, the executor or a hook during applies with hooks, and checks the state after the next apply."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from statecfg.store import opened
from statecfg.store.hooks import objects as hook_objects
from statecfg.store.hooks import queue
from tests import ROOT
from tests.host.command import start
from tests.host.hooks.http.projects import Watched
from tests.host.preloaded import Started
from tests.host.run import hooked, rig
from tests.host.run.hooked import Site, states
from tests.lab import Host, processes

Process = Started | subprocess.Popen[bytes]
# A slow hook that counts its calls in two keys of its configuration, which must never differ.
TWINS = """#!/bin/bash
read -r given
sleep 0.1
count=$(jq '.hook.configuration.count + 1' <<< "$given")
echo "{\\"hook\\": {\\"configuration\\": {\\"update\\": {\\"count\\": $count, \\"twin\\": $count}}}}"
"""
PLAYBOOK = """- file: /srv/site-a
  content: "{number}\\n"
  tags: [a]
- file: /srv/site-b
  content: "{number}\\n"
  requires: [file:/srv/site-a]
- command: restart
  argv: [sh, -c, "sleep 0.1; cat /srv/site-a >> /srv/restarts"]
  restart_on: [file:/srv/site-a]
  requires: [file:/srv/site-b]
"""


def client(process: Process, site: Site) -> None:
    """Kill the client."""
    process.kill()


def executor(process: Process, site: Site) -> None:
    """Kill the executor on the host, if it runs."""
    for pid in rig.executors(site.hosts[0]):
        _kill(pid)


def program(process: Process, site: Site) -> None:
    """Wait until a hook runs on this machine, and kill its program."""
    while not hooked.running_here(site) and process.poll() is None:
        time.sleep(0.01)
    for pid in hooked.running_here(site):
        _kill(pid)


KILLS: dict[str, Callable[[Process, Site], None]] = {
    "client": client, "executor": executor, "program": program
}  # fmt: skip


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # the process has just ended by itself
        return


def at_random(host: Host, root: Path, who: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt `count` applies with hooks on the controller, on the host and over HTTP; return the result of each."""
    site, watched, choose = Site(root, [host]), Watched(), random.Random(seed)
    keys = "count: {default: 0}\ntwin: {default: 0}\n"
    events = ("pre-reconcile", "post-create", "post-update")
    site.hook("twins", dict.fromkeys((*events, "node-install-finished"), TWINS), keys, select={"types": ["file"]})
    site.hook("theirs", dict.fromkeys(events, hooked.OK), where="host", onFailure="retry")
    seen = []
    with watched.service.serving() as url:
        site.http(url, onFailure="retry")
        # A complete run gives the duration of a run.
        begun = time.monotonic()
        site.playbook(PLAYBOOK.format(number="none"))
        site.run("apply", "site.yml", "--yes")
        span = time.monotonic() - begun
        for number in range(count):
            delay = choose.uniform(0.3 * span, span)  # before that, the client reads the project and connects
            try:
                seen.append(_cut_off(site, who, delay, number))
            except BaseException as problem:
                problem.add_note(f"case {who}, seed {seed}, point {number}: {delay:.3f} s after the start")
                raise
    return seen


def _cut_off(site: Site, who: str, delay: float, number: int) -> dict[str, Any]:
    (host,) = site.hosts
    site.playbook(PLAYBOOK.format(number=number))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **site.environment}
    output = site.root.parent / "output"
    with output.open("wb") as file:
        process = start("statecfg", ["apply", "site.yml", "--yes"], site.root, environment, file.fileno())
    time.sleep(delay)
    KILLS[who](process, site)
    code = process.wait(120)
    assert "Traceback" not in output.read_text(), output.read_text()
    processes.wait_until(lambda: not rig.everything_ours(host), 20, "all processes on the host to end")
    before = _twins(site)
    again = site.run("apply", "site.yml", "--yes")
    text = f"{number}\n"
    assert (host.path("/srv/site-a").read_text(), host.path("/srv/site-b").read_text()) == (text, text)
    restarts = host.path("/srv/restarts").read_text().splitlines()
    assert restarts[-1:] == [str(number)], f"the owed restart was lost: {restarts}\n{again.out}"
    assert set(states(host).values()) == {"RESOLVED"}, states(host)
    assert _twins(site) > before
    with opened(url=str(site.root / "store.db")) as store:
        assert queue.waiting(store) == 0
    assert not hooked.left_here(site)
    return {"delay": delay, "code": code}


def _twins(site: Site) -> int:
    """Return the count of the hook `twins`, and check that its two keys are equal."""
    with opened(url=str(site.root / "store.db")) as store:
        found = hook_objects.get(store, "twins")
    assert found is not None and found.configuration["count"] == found.configuration["twin"]
    return int(found.configuration["count"])
