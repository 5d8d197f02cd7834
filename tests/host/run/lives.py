"""Interrupts applies that prune resources and fire hooks, and checks the records and the next apply.

Each run changes a configuration file, so a command has to run again. Each run also prunes some files and creates
others in place of files that existed before. A hook on the host counts its calls in two values of its configuration,
which must always be equal.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.state import APPENDED
from statecfg.resources import command, directory, file
from statecfg.run import fleet
from tests.host.remote.managed import hook
from tests.host.run import crashes, rig
from tests.lab import Host, processes

PLAYBOOK = "lives"
SPAN = 1.2  # duration of the apply in seconds, counted from its first action
COMERS = 3
EVENTS = ("pre-reconcile", "post-create", "post-update", "pre-delete", "finalize", "post-delete")
COUNT = """#!/usr/bin/python3 -ISs
import json, sys
given = json.load(sys.stdin)
value = given["hook"]["configuration"].get("value", 0) + 1
with open(given["hook"]["configuration"]["log"], "a") as log:
    log.write("%s %s\\n" % (given["hook"]["cause"], given["resource"]["name"]))
print(json.dumps({"hook": {"configuration": {"update": {"value": value, "again": value}}}}))
"""


def definition(place: str, number: int) -> Definition:
    """Return the definition for the run of this number."""
    above = directory(place, provides="place")
    wait = command(
        "wait", shell=f"sleep 0.1; touch {place}/wait-{number}", creates=f"{place}/wait-{number}", requires=[above]
    )
    conf = file(f"{place}/conf", content=f"run {number}\n", provides="conf", requires=[wait])
    late = command(
        "late", shell=f"sleep 0.1; touch {place}/late-{number}", creates=f"{place}/late-{number}", requires=[conf]
    )
    restart = command(
        "restart", shell=f"cp {place}/conf {place}/running", restart_on=[conf], requires=[late], effects={}
    )
    graphs = [above, wait, conf, late, restart]
    for name in comers(number):
        graphs.append(file(f"{place}/{name}", content=f"run {number}\n", requires=[above]))
    return rig.define(*graphs)


def comers(number: int) -> list[str]:
    """Return the files of this run; the next run prunes them and creates the others."""
    return [f"guest-{number % 2}-{each}" for each in range(COMERS)]


def hooks(place: str) -> list[dict[str, Any]]:
    """Return a hook that counts the events of `conf` and of the files that come and go."""
    schema = {key: {} for key in ("value", "again", "log")}
    programs = dict.fromkeys(EVENTS, COUNT)
    configuration = {"log": f"{place}.log"}
    select = {"names": ["conf", "file:*"]}
    return [hook("counter", programs, EVENTS, configuration=configuration, schema=schema, select=select)]


def job(host: Any, place: str, number: int) -> fleet.Job:
    return fleet.Job(host, definition(place, number), PLAYBOOK, prune=True)


def options(connect: Any, host: str, place: str, **more: Any) -> fleet.Options:
    around = fleet.RunHooks({host: hooks(place)})
    return fleet.Options(mode="apply", access=fleet.Access(connect), agreed=True, hooks=around, **more)


def apply(host: Host, place: str, number: int, **more: Any) -> dict[str, Any]:
    """Apply without interruption; return the host's part of the report."""
    given = options(rig.settings(host), host.name, place, **more)
    report = fleet.run([job(rig.inventoried(host), place, number)], given, lambda event: None)
    found: dict[str, Any] = report["hosts"][host.name]
    return found


def prepare(host: Host, place: str) -> None:
    """Write the former files, and apply the first definition."""
    for number in range(2):
        for name in comers(number):
            host.write(f"{place}/{name}", f"former {name}\n")
    found = apply(host, place, 0)
    assert found["status"] == "ok", found


@contextlib.contextmanager
def ledger(host: Host) -> Iterator[sqlite3.Connection]:
    """Open a copy of the host's ledger, including the journal of an interrupted commit and the appended runs."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("ledger.db", "ledger.db-journal", APPENDED):
            if host.path(f"/var/lib/statecfg/{name}").exists():
                shutil.copy(host.path(f"/var/lib/statecfg/{name}"), Path(scratch, name))
        opened = Ledger(scratch)  # it adds the appended runs
        database = opened.database
        try:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            yield database
        finally:
            opened.close()


def counted(host: Host) -> int:
    """Return the hook's count, and check that its two values are equal."""
    with ledger(host) as database:
        rows = database.execute("SELECT configuration FROM hook").fetchall()
    if not rows:
        return 0
    found = json.loads(rows[0][0])
    assert found["value"] == found["again"], f"the hook's two values differ: {found}"
    return int(found["value"])


def fired(host: Host, place: str) -> int:
    """Return how many times the hook was started."""
    log = host.path(f"{place}.log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def cut_off(host: Host, place: str, who: str, delay: float, number: int) -> dict[str, Any]:
    """Apply, kill the process `who` `delay` seconds after the first action, check the records, and apply again."""
    before, begun = counted(host), fired(host, place)
    with rig.client(host, "lives", place, str(number)) as client:
        client.await_line("action-started")
        time.sleep(delay)
        crashes.KILLS[who](host, client)
        killed = time.monotonic()
        processes.wait_until(
            lambda: not rig.everything_ours(host), crashes.GONE, "the executor and its children to end"
        )
        seen: dict[str, Any] = {"gone": time.monotonic() - killed}
        said = client.end()
    assert "Traceback" not in said, said
    # The ledger has the results of all hook calls except one that was still running.
    now, ran = counted(host), fired(host, place)
    assert before <= now <= before + ran - begun <= now + 1, (before, now, begun, ran)
    with ledger(host) as database:
        open_runs = [row[0] for row in database.execute("SELECT id FROM run WHERE ended IS NULL")]
        debts = set(database.execute("SELECT node, cause FROM owed"))
    assert len(open_runs) <= 1
    changed = host.read(f"{place}/conf") == f"run {number}\n"
    restarted = host.path(f"{place}/running").exists() and host.read(f"{place}/running") == host.read(f"{place}/conf")
    if changed and not restarted:
        assert ("command:restart", "conf") in debts, "a restart is owed, and the ledger does not say so"
    seen.update(cut=bool(open_runs), owed=changed and not restarted)
    again = apply(host, place, number)
    assert again["status"] == "ok", again
    seen["warned"] = [text for text in again.get("warnings", ()) if "was cut off" in text]
    assert bool(open_runs) <= bool(seen["warned"]), again
    assert all(run in seen["warned"][0] for run in open_runs)
    well(host, place, number)
    return seen


def well(host: Host, place: str, number: int) -> None:
    """Check a complete run: the host matches the definition, nothing is owed, pruned files have their old content."""
    assert host.read(f"{place}/conf") == host.read(f"{place}/running") == f"run {number}\n"
    for name in comers(number):
        assert host.read(f"{place}/{name}") == f"run {number}\n"
    for name in comers(number + 1):
        assert host.read(f"{place}/{name}") == f"former {name}\n"
    with ledger(host) as database:
        assert database.execute("SELECT count(*) FROM run WHERE ended IS NULL").fetchone() == (0,)
        assert database.execute("SELECT * FROM owed").fetchall() == []
        found = dict(database.execute("SELECT name, state FROM resource"))
    guests = {f"file:{place}/{name}" for name in comers(number)}
    assert set(found) == {"place", "conf", "command:wait", "command:late", "command:restart", *guests}
    assert set(found.values()) == {"RESOLVED"}
    assert not list(host.path("/var/lib/statecfg/runs").iterdir())
    former = [hashlib.sha256(f"former {name}\n".encode()).hexdigest() for name in comers(number)]
    assert sorted(path.name for path in host.path("/var/lib/statecfg/before").iterdir()) == sorted(former)
    assert not rig.litter(host, place)
    idle = apply(host, place, number)
    assert idle["status"] == "ok" and set(idle["summary"]) == {"unchanged"}, idle["summary"]


def at_random(host: Host, place: str, who: str, count: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt `count` applies at random moments; return the result of each."""
    prepare(host, place)
    choose = random.Random(seed)
    seen = []
    for number in range(1, count + 1):
        delay = choose.uniform(0, SPAN)
        try:
            seen.append({"delay": round(delay, 3), **cut_off(host, place, who, delay, number)})
        except BaseException as problem:
            problem.add_note(f"case {who}, seed {seed}, point {number}: {delay:.3f} s after the first action")
            raise
    return seen
