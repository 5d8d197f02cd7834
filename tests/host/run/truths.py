"""Cuts the network and kills processes during applies, and compares the report and the history with the host.

Each run defines layers of commands and small files, some of which a failing command stops, and prunes the files of the
run before. Afterwards, the files on the host show what was done: no report may say "skipped" or "failed" of something
that was done, and none may say "changed" or "ok" of something that was not.
"""

from __future__ import annotations

import collections
import json
import random
import subprocess
import time
from collections.abc import Callable
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.resources import command, directory, file
from statecfg.run import fleet
from tests.host.run import crashes, rig
from tests.lab import Host, processes

PLAYBOOK = "truths"
SPAN = 1.5  # seconds from the first event to the last cut
GONE = 45.0  # seconds after which no process of statecfg may be left on the host
Json = dict[str, Any]

_TABLE = "add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; policy accept; }}; "
# How the network is cut: rules of nft in the network namespace of the host.
CUTS = {
    "reset": _TABLE.format(hook="input") + "add rule inet t c tcp dport 22 reject with tcp reset",
    "reset from the host": _TABLE.format(hook="output") + "add rule inet t c tcp sport 22 reject with tcp reset",
    "drop": _TABLE.format(hook="input") + "add rule inet t c drop",
    "drop from the host": _TABLE.format(hook="output") + "add rule inet t c drop",
}


def definition(place: str, number: int, seed: int) -> Definition:
    """Return the definition for a run: a chain of layers with commands and files.

    A command leaves the mark `NAME.did`, and fails afterwards if it is the one that fails.
    """
    choose = random.Random(f"{seed} {number}")
    before = directory(place)
    graphs = [before]
    fails = choose.randrange(12)
    for layer in range(choose.randint(3, 5)):
        mine = []
        for position in range(choose.randint(1, 3)):
            name = f"{number}-{layer}-{position}"
            if choose.random() < 0.5:
                script = f"sleep {choose.uniform(0, 0.5):.2f}; touch {place}/{name}.did"
                script += "; exit 1" if layer == fails else ""
                mine.append(command(name, shell=script, requires=[before], effects={}, creates=f"{place}/{name}.did"))
            else:
                mine.append(file(f"{place}/{name}", content=f"{name}\n" * 300, requires=[before]))
        graphs += mine
        before = mine[-1]
    return rig.define(*graphs)


def job(host: Any, place: str, number: int, seed: int) -> fleet.Job:
    return fleet.Job(host, definition(place, number, seed), PLAYBOOK, prune=True)


def options(connect: Any, seed: int, number: int) -> fleet.Options:
    keep_going = random.Random(f"{seed} {number} keep").random() < 0.3
    limits = fleet.Limits(keep_going=keep_going)
    return fleet.Options(mode="apply", access=fleet.Access(connect), agreed=True, limits=limits)


def was_done(host: Host, place: str, name: str) -> bool:
    """Return whether the host has what a node makes."""
    kind, _, about = name.partition(":")
    return host.path(f"{place}/{about}.did" if kind == "command" else about).exists()


def compare(host: Host, place: str, report: Json, before: set[str]) -> collections.Counter[str]:
    """Compare a report with the host; return how many nodes it has of each outcome.

    :param before: the names in the directory before the run
    """
    seen: collections.Counter[str] = collections.Counter()
    for part, layers in (("layers", report["layers"]), ("removals", report.get("removals", ()))):
        for node in (node for layer in layers for node in layer if not node["name"].startswith("directory:")):
            name, outcome = node["name"], node["outcome"]
            seen[outcome] += 1
            there = was_done(host, place, name)
            removed = part == "removals"
            path = host.path(name.partition(":")[2])
            if removed and (name.startswith("command:") or path.name not in before):
                continue  # its record is deleted, or an interrupted run had removed it
            did = (not there) if removed else there
            statuses = {action["status"] for action in node["actions"]}
            about = f"{name} is reported as {outcome} with {statuses}, and was {'' if did else 'not '}done"
            if outcome == "skipped" or statuses == {"not-attempted"}:
                assert not did, about
            if outcome == "changed":
                assert did, about
            if outcome == "failed":
                assert statuses == {"error"}, about
            if outcome == "unchanged" and not removed:
                assert did, about
    if report["status"] == "ok":
        assert set(seen) <= {"changed", "unchanged"}, seen
    return seen


def history(host: Host, run: str) -> Json:
    """Return a run in the history of the host."""
    job = fleet.Job(rig.inventoried(host), Definition([]), "")
    query = {"playbook": "", "run": run, "limit": 1}
    given = fleet.Options(mode="history", access=fleet.Access(rig.settings(host)), query=query)
    found = fleet.run([job], given, lambda event: None)["hosts"][host.name]
    assert found["status"] == "ok", found
    return dict((found["history"] or [{}])[0])


def compare_history(host: Host, place: str, past: Json) -> None:
    """Compare the history of a run with the host."""
    for name, outcome in past.get("outcomes", {}).items():
        if name.startswith("directory:") or outcome in ("unknown", "failed"):
            continue
        is_removal = not name.rpartition("/")[2].startswith(past["number"]) and name.startswith("file:")
        did = was_done(host, place, name) != is_removal
        assert did == (outcome in ("changed", "unchanged")), f"the history has {name} as {outcome}"


def cut(host: Host, how: str) -> Callable[[], None]:
    """Cut the network of the host; return what mends it."""

    def nft(rules: str) -> None:
        subprocess.run([*host.enter_network(), "nft", "-f", "-"], input=rules, text=True, check=True)

    nft(CUTS[how])
    return lambda: nft("delete table inet t")


def one(host: Host, place: str, how: str, delay: float, number: int, seed: int) -> collections.Counter[str]:
    """Apply, cut or kill after `delay` seconds, and compare what is reported with what the host did."""
    folder = host.path(place)
    before = {path.name for path in folder.iterdir()} if folder.exists() else set()
    heal: Callable[[], None] | None = None
    with rig.client(host, "truths", place, str(number), str(seed)) as client:
        client.await_line("connect" if number % 7 == 0 else "action-started")
        time.sleep(delay)
        if how in CUTS:
            heal = cut(host, how)
        else:
            crashes.KILLS[how](host, client)
        try:
            said = client.end()
            if heal is not None:
                processes.wait_until(lambda: not rig.executors(host), GONE, f"the executor to end: {how}")
        finally:
            if heal is not None:
                heal()
    processes.wait_until(lambda: not rig.everything_ours(host), GONE, "all processes on the host to end")
    assert "Traceback" not in said, said
    seen = collections.Counter({f"{how}: runs": 1})
    run = ""
    if how != "client":
        report = json.loads(said.splitlines()[-1])
        run = report.pop("run")
        for outcome, many in compare(host, place, report, before).items():
            seen[f"{how}: {outcome}"] += many
        seen[f"{how}: the host was {report['status']}"] += 1
        if report["status"] == "unknown":
            assert f"statecfg run-history target --run {run}" in report["error"]["hint"]
    else:
        run = next((line.split()[1] for line in said.splitlines() if line.startswith("run ")), "")
    past = history(host, run) if run else {}
    if past:
        compare_history(host, place, {**past, "number": f"{number}-"})
        seen[f"{how}: in the history as {past['status']}"] += 1
    assert rig.lock_is_free(host)
    return seen


def at_random(host: Host, place: str, ways: list[str], count: int, seed: int) -> collections.Counter[str]:
    """Cut or kill `count` times at random moments; return what was seen."""
    choose = random.Random(seed)
    seen: collections.Counter[str] = collections.Counter()
    for number in range(1, count + 1):
        how, delay = choose.choice(ways), choose.uniform(0, SPAN)
        try:
            seen += one(host, place, how, delay, number, seed)
        except BaseException as problem:
            problem.add_note(f"case {how}, seed {seed}, run {number}: {delay:.3f} s after the first action")
            raise
    return seen
