"""The ledger file: its formats, what a run records in it, and interrupted, foreign or unwritable ledgers."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.names import Mode, RunStatus
from statecfg.remote.ledger.history import history
from statecfg.remote.ledger.journal import Account, Journal, interrupted_runs
from statecfg.remote.ledger.ledger import KEPT, Ledger
from statecfg.remote.ledger.records import Orphan, Resource, renamed
from statecfg.remote.ledger.schema import SCHEMA
from statecfg.remote.ledger.state import machine_id, prepare
from statecfg.remote.run.dependents import Dependents
from statecfg.resources import directory, file
from tests.host.remote.managed import Machine

# A filled ledger of the first version.
FIRST = """
CREATE TABLE run (id TEXT PRIMARY KEY, started REAL NOT NULL, ended REAL, mode TEXT NOT NULL, who TEXT NOT NULL,
                  playbook TEXT NOT NULL, status TEXT NOT NULL);
CREATE TABLE outcome (run TEXT NOT NULL REFERENCES run(id), node TEXT NOT NULL, outcome TEXT NOT NULL,
                      PRIMARY KEY (run, node));
CREATE TABLE owed (playbook TEXT NOT NULL, node TEXT NOT NULL, cause TEXT NOT NULL, since REAL NOT NULL,
                   run TEXT NOT NULL, PRIMARY KEY (playbook, node, cause));
PRAGMA user_version=1;
INSERT INTO run VALUES ('old', 5.0, 6.0, 'apply', 'ann@desk', 'site', 'failed');
INSERT INTO outcome VALUES ('old', 'conf', 'changed');
INSERT INTO owed VALUES ('site', 'service', 'conf', 5.0, 'old');
"""
RUN = {"id": "r1", "mode": "apply", "who": "ann@desk", "playbook": "site"}


@pytest.fixture
def place(tmp_path: Path) -> str:
    prepare(str(tmp_path / "place"))
    return str(tmp_path / "place")


@pytest.fixture
def machine(server: Machine, tmp_path: Path) -> Machine:
    return Machine(tmp_path, server.server)


# Rows in the form of 0.3.0: a service resource with a debt.
SECOND = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE action (run TEXT NOT NULL REFERENCES run(id), number INTEGER NOT NULL, node TEXT NOT NULL,
                     op TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (run, number));
CREATE TABLE resource (playbook TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, module TEXT NOT NULL,
                       claims TEXT NOT NULL, digest TEXT NOT NULL, state TEXT NOT NULL, memory TEXT NOT NULL,
                       after TEXT NOT NULL, attrs TEXT NOT NULL, requires TEXT NOT NULL, tags TEXT NOT NULL,
                       protect INTEGER NOT NULL, position TEXT NOT NULL, owing TEXT NOT NULL,
                       first_run TEXT NOT NULL, last_run TEXT NOT NULL, since REAL NOT NULL,
                       PRIMARY KEY (playbook, name));
CREATE TABLE hook (name TEXT PRIMARY KEY, base TEXT NOT NULL, configuration TEXT NOT NULL);
PRAGMA user_version=2;
INSERT INTO meta VALUES ('lineage', '0123456789abcdef0123456789abcdef');
INSERT INTO resource VALUES ('site', 'service:ssh', 'service', 'statecfg.resources.service', '["unit:ssh.service"]',
                             'd', 'RESOLVED', '{}', '', '{"name": "ssh"}', '["conf"]', '[]', 0, 'p:1', '[]',
                             'old', 'old', 5.0);
INSERT INTO resource VALUES ('site', 'conf', 'file', 'statecfg.resources.file', '["path:/c"]',
                             'd', 'RESOLVED', '{}', '', '{"path": "/c"}', '[]', '[]', 0, 'p:2', '[]',
                             'old', 'old', 5.0);
"""


def first(place: str) -> Path:
    """Make a ledger of the first format."""
    path = Path(place) / "ledger.db"
    database = sqlite3.connect(path)
    database.executescript(FIRST)
    database.close()
    return path


def tables(path: Path) -> set[str]:
    database = sqlite3.connect(path)
    found = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()
    return found


def row(name: str, path: str = "", kind: str = "file", **more: Any) -> dict[str, Any]:
    """Return a resource record in the form in which the journal has it."""
    fields: dict[str, Any] = {
        "type": kind, "module": "m", "claims": [f"path:{path or '/' + name}"], "digest": "", "state": "RESOLVED",
        "memory": {"was": name}, "after": "", "attrs": {}, "requires": [], "tags": [], "protect": 0, "position": "",
        "owing": [],
    }  # fmt: skip
    return dict(fields, name=name, **more)


def account(*records: Any) -> Account:
    """Return the account of a run: the records that it added, and its changes of entities."""
    lines = [{"manage": each} if "type" in each else each for each in records]
    return Account([json.dumps(line) for line in lines])


def fold(place: str, found: Account, run: str = "r1", playbook: str = "site", **more: Any) -> None:
    ledger = Ledger(place)
    ledger.end(dict(RUN, id=run, playbook=playbook), found, "ok", **more)
    ledger.close()


def rows(place: str, playbook: str = "site") -> dict[str, Any]:
    ledger = Ledger(place, reading=True)
    found = {name: each.memory["was"] for name, each in ledger.resources(playbook).items()}
    ledger.close()
    return found


# Formats of the ledger


def test_a_ledger_of_the_first_format_is_migrated_without_loss(place: str) -> None:
    path = first(place)
    ledger = Ledger(place)
    assert [debt["node"] for debt in ledger.owed("site")] == ["service"]
    assert history(ledger, "", "", 5)[0]["summary"] == {"changed": 1}
    assert len(ledger.meta("lineage")) == 32 and ledger.meta("machine") == machine_id()
    assert ledger.resources("site") == {} and not ledger.foreign()
    lineage = ledger.meta("lineage")
    ledger.close()
    assert {"run", "outcome", "owed", "meta", "action", "resource", "hook"} <= tables(path)
    again = Ledger(place)
    assert again.meta("lineage") == lineage
    again.close()


def test_a_ledger_of_0_3_0_is_migrated_without_loss(place: str) -> None:
    """Its records don't say which requirements trigger a service, so all requirements do."""
    path = first(place)
    database = sqlite3.connect(path)
    database.executescript(SECOND)
    database.close()
    ledger = Ledger(place)
    assert ledger.meta("lineage") == "0123456789abcdef0123456789abcdef"
    assert [(debt["node"], debt["how"]) for debt in ledger.owed("site")] == [("service", None)]
    rows = ledger.resources("site")
    assert rows["service:ssh"].definition.triggers is None and rows["service:ssh"].definition.requires == ["conf"]
    running = [[Orphan(rows["conf"], "conf")]]
    (node,) = Dependents(rows.values(), running, (), {}).nodes
    assert (node.provides, node.causes) == ("service:ssh (stays)", ["conf"])
    ledger.close()


def test_reading_an_older_ledger_does_not_migrate_it(place: str) -> None:
    """It has no lineage yet. A reader must not report a new one that the next reader would not find."""
    path = first(place)
    before = path.read_bytes()
    ledger = Ledger(place, reading=True)
    assert ledger.meta("lineage") == "" and ledger.count() == 0
    assert [debt["node"] for debt in ledger.owed("site")] == ["service"]
    ledger.close()
    assert path.read_bytes() == before


MIGRATE = """
import os, sys
from statecfg.remote.ledger import sqlite
from statecfg.remote.ledger.ledger import Ledger
point = int(sys.argv[2])
def watch(statement):
    global point
    point -= 1
    if point == 0:
        os.kill(os.getpid(), 9)
connect = sqlite.connect
def traced(*given, **more):
    found = connect(*given, **more)
    found.set_trace_callback(watch)
    return found
sqlite.connect = traced
Ledger(sys.argv[1]).close()
"""


def test_a_killed_migration_leaves_the_old_or_the_new_format(place: str) -> None:
    seen = set()
    for point in range(1, 40):
        path = Path(place) / "ledger.db"
        path.unlink(missing_ok=True)
        first(place)
        done = subprocess.run([sys.executable, "-c", MIGRATE, place, str(point)], check=False)
        found = tables(path)
        database = sqlite3.connect(path)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        database.close()
        assert (version, "resource" in found, "meta" in found) in ((1, False, False), (SCHEMA, True, True)), point
        seen.add(version)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        Ledger(place).close()
        assert "resource" in tables(path)
    else:
        pytest.fail("it never came to its end")
    assert seen == {1, SCHEMA} and point > 8


# Results of a run


def test_history_lists_the_outcomes_and_actions_of_a_run(place: str) -> None:
    journal = Journal(place, "r1")
    ledger = Ledger(place)
    ledger.begin(RUN, [("service", "conf", None)])
    for node, status in (("conf", "ok"), ("service", "error")):
        journal.started(node, "write")
        journal.took(node, "write", {"status": status, "reason": "no room" if status == "error" else ""})
    journal.finished("conf", "changed")
    ((_, found),) = interrupted_runs(place)
    ledger.end(RUN, found, "failed")
    (told,) = history(ledger, "site", "r", 5)
    assert told["outcomes"] == {"conf": "changed", "service": "unknown"}
    assert told["actions"] == [
        {"node": "conf", "op": "write", "status": "ok", "reason": ""},
        {"node": "service", "op": "write", "status": "error", "reason": "no room"},
    ]
    assert (told["status"], told["who"], told["mode"]) == ("failed", "ann@desk", "apply")
    assert told["ended"] >= told["started"]
    assert "outcomes" not in history(ledger, "", "", 5)[0]
    assert history(ledger, "other", "", 5) == history(ledger, "", "x", 5) == []
    ledger.close()


def test_history_lists_the_newest_runs_and_forgets_the_oldest(place: str) -> None:
    ledger = Ledger(place)
    with ledger.database as database:
        many = [(f"n{number}", float(number), "apply", "w", "site", "ok") for number in range(KEPT + 5)]
        database.executemany("INSERT INTO run VALUES (?, ?, 1.0, ?, ?, ?, ?)", many)
        database.executemany("INSERT INTO outcome VALUES (?, 'a', 'changed')", [(each[0],) for each in many])
    ledger.end(RUN, account(), "ok")
    told = history(ledger, "", "", KEPT + 50)
    assert len(told) == KEPT and told[0]["run"] == "r1" and told[1]["run"] == f"n{KEPT + 4}"
    assert ledger.database.execute("SELECT count(*) FROM outcome").fetchone() == (KEPT - 1,)
    ledger.close()


def test_a_run_is_not_recorded_twice_after_a_kill(place: str) -> None:
    """A run was killed after its commit and before it deleted its journal. It counts as ended, without a warning."""
    Journal(place, "r1").manage([Resource.from_json(row("a"))])
    ((_, found),) = interrupted_runs(place)
    ledger = Ledger(place)
    ledger.begin(RUN, [])
    defined = {"a": Resource.from_json(row("a", digest="d1", after="x"))}
    ledger.fold(RUN, found, "ok", defined)
    assert ledger.open_runs(interrupted_runs(place)) == []
    for taken in (ledger.recall, ledger.take_over):
        reading = Ledger(place) if taken == ledger.take_over else ledger
        getattr(reading, taken.__name__)(interrupted_runs(place))
        assert reading.resources("site")["a"].digest == "d1"
        assert history(reading, "", "", 5)[0]["status"] == "ok"
        reading.close()
    assert interrupted_runs(place) == []


def test_the_next_run_takes_over_the_records_of_an_interrupted_run(place: str) -> None:
    journal = Journal(place, "r1")
    journal.manage([Resource.from_json(row(name)) for name in "ab"])
    journal.started("a", "write")
    journal.state_changed("b", state="IN_DELETION", owing=[["post-update", "h"]])
    Ledger(place).close()
    looking = Ledger(place, reading=True)
    looking.recall(interrupted_runs(place))
    assert looking.resources("site") == {} and len(looking.resources("")) == 2  # their playbook is not recorded
    looking.close()
    ledger = Ledger(place)
    ledger.begin(RUN, [])
    ledger.take_over(interrupted_runs(place))
    assert {name: each.state for name, each in ledger.resources("site").items()} == {
        "a": "RESOLVED", "b": "IN_DELETION"
    }  # fmt: skip
    assert ledger.resources("site")["b"].owing == [["post-update", "h"]]
    assert history(ledger, "", "r1", 1)[0]["status"] == RunStatus.CUT_OFF
    ledger.close()
    assert interrupted_runs(place) == []


def test_a_new_resource_never_inherits_memory_of_a_removed_one(place: str) -> None:
    """One resource is removed and another one gets its name. The new one has its own memory."""
    fold(place, account(row("x")))
    came = row("x", "/x", "symlink", memory={"was": "new"})
    fold(place, account({"entity": "x", "state": ""}, came, {"entity": "x", "state": "RESOLVED"}), "r2")
    assert rows(place) == {"x": "new"}


def test_a_renamed_resource_keeps_its_memory_and_debts(place: str) -> None:
    ledger = Ledger(place)
    ledger.begin(RUN, [("old", "cause", None), ("other", "old", None)])
    lines = [{"manage": row("old")}, *({"node": name, "op": "write"} for name in ("cause", "old"))]
    ledger.end(RUN, Account([json.dumps(line) for line in lines]), "failed")
    ledger.close()
    moved = row("new", "/old", memory={"was": "old"}, replaces={"name": "old", "claims": ["path:/old"]})
    fold(place, account(moved), "r2")
    assert rows(place) == {"new": "old"}
    ledger = Ledger(place)
    assert [(debt["node"], debt["cause"]) for debt in ledger.owed("site")] == [("new", "cause"), ("other", "new")]
    ledger.close()


def test_a_destroy_drops_what_is_owed_to_nodes_that_never_ran(place: str) -> None:
    ledger = Ledger(place)
    ledger.begin(RUN, [("notify", "conf", None), ("web", "conf", {"type": "service"})])
    lines = [{"manage": row("conf")}, {"node": "conf", "op": "write"}]
    ledger.end(RUN, Account([json.dumps(line) for line in lines]), "failed")
    assert [debt["node"] for debt in ledger.owed("site")] == ["notify", "web"]
    ledger.fold({"id": "r2", "playbook": "site", "mode": Mode.DESTROY}, account({"entity": "conf", "state": ""}), "ok")
    assert [debt["node"] for debt in ledger.owed("site")] == ["web"], "the host still can restart what is not defined"
    ledger.close()


def test_two_resources_that_swap_names_keep_their_own_memory(place: str) -> None:
    fold(place, account(row("a", "/x"), row("b", "/y")))
    to = [("b", "/x", "a"), ("a", "/y", "b")]
    swapped = [row(n, p, memory={"was": o}, replaces={"name": o, "claims": [f"path:{p}"]}) for n, p, o in to]
    fold(place, account(*swapped), "r2")
    assert rows(place) == {"a": "b", "b": "a"}


def test_a_resource_whose_name_is_reused_keeps_its_record(place: str) -> None:
    fold(place, account(row("conf", "/old")))
    fold(place, account(row("conf", "/new", memory={"was": "new"})), "r2")
    aside = renamed(Resource.from_json(row("conf", "/old")))
    assert rows(place) == {"conf": "new", aside: "conf"} and aside == "conf (the file /old)"


# Inherited memory


@pytest.mark.parametrize(
    ("since", "kind", "expected"),
    [(2.0, "file", "first"), (0.5, "file", "second"), (2.0, "symlink", "second")],
    ids=["heir is newer", "heir is older", "heir has another type"],
)
def test_an_heir_inherits_memory_from_an_older_resource_of_its_type(
    place: str, since: float, kind: str, expected: str
) -> None:
    fold(place, account(row("a", "/x", memory={"was": "first"}, since=1.0)))
    fold(place, account(row("b", "/x", kind, memory={"was": "second"}, since=since)), "r2", "other")
    fold(place, account({"entity": "a", "state": "", "heir": ["other", "b"]}), "r3")
    assert rows(place) == {} and rows(place, "other") == {"b": expected}


# Former content


def test_former_content_is_deleted_with_the_last_record_that_uses_it(place: str) -> None:
    folder = Path(place) / "before"
    folder.mkdir()
    for name in ("aaa", "bbb", "ccc.123"):
        (folder / name).write_text(name)
    fold(place, account(row("a", memory={"content": {"$blob": ["aaa", 3]}}), row("b", memory={"$blob": ["bbb", 3]})))
    assert sorted(os.listdir(folder)) == ["aaa", "bbb"]  # the half-written file of a killed run is deleted, too
    fold(place, account({"entity": "a", "state": ""}), "r2")
    assert os.listdir(folder) == ["bbb"]


def test_former_content_of_all_interrupted_runs_is_kept(place: str) -> None:
    folder = Path(place) / "before"
    folder.mkdir()
    for run in ("r1", "r2"):
        (folder / run).write_text(run)
        journal = Journal(place, run)
        journal.manage([Resource.from_json(row(run, memory={"$blob": [run, 2]}))])
        journal.state_changed(run, state="RESOLVED")
    ledger = Ledger(place)
    ledger.take_over(interrupted_runs(place))
    ledger.close()
    assert sorted(os.listdir(folder)) == ["r1", "r2"]


# Ledgers of other machines


def foreign(machine: Machine) -> None:
    """Make the ledger look as if it was copied from another machine."""
    machine.query("UPDATE meta SET value = 'f00dfacecafe1234' WHERE key = 'machine'")


@pytest.mark.skipif(not machine_id(), reason="not run on this machine: it has no /etc/machine-id")
def test_a_ledger_of_another_machine_is_set_aside_with_its_files(machine: Machine) -> None:
    path = machine.folder / "f"
    path.write_text("former")
    nodes = [file(str(path), content="ours"), directory(str(machine.folder / "d"))]
    machine.run(*nodes)
    content = machine.kept()
    foreign(machine)
    Journal(str(machine.place), "cut").manage([Resource.from_json(row("elsewhere"))])
    plan = machine.run(mode="plan", prune=True)
    assert "statecfg prunes nothing" in plan.warnings[0] and plan.part("removals") == []
    done = machine.run(nodes[1], prune=True)
    assert done.outcomes() == {}
    aside = machine.place / "of-f00dfacecafe"
    assert any(str(aside) in text for text in done.warnings)
    assert sorted(os.listdir(aside)) == ["before", "ledger.db", "runs"]
    assert os.listdir(aside / "before") == content and os.listdir(aside / "runs") == ["cut.jsonl"]
    assert path.read_text() == "ours" and list(machine.rows()) == [f"directory:{machine.folder}/d"]
    foreign(machine)
    machine.run(nodes[1])
    assert {"of-f00dfacecafe", "of-f00dfacecafe-1"} <= set(os.listdir(machine.place))


def test_a_replaced_ledger_prunes_nothing_without_confirmation(machine: Machine) -> None:
    path = machine.folder / "f"
    machine.run(file(str(path), content="x"))
    done = machine.run(prune=True, ledger="0" * 32)
    assert any("was lost or replaced" in text for text in done.warnings)
    assert path.exists() and list(machine.rows()) == [f"file:{path}"]
    machine.run(prune=True, yes=True)
    assert not path.exists()


def test_a_ledger_without_a_machine_id_is_not_foreign(place: str) -> None:
    ledger = Ledger(place)
    with ledger.database as database:
        database.execute("UPDATE meta SET value = '' WHERE key = 'machine'")
    assert ledger.foreign() == ""
    ledger.close()


# Directories that can't be written


def test_a_run_fails_cleanly_when_the_ledger_stays_locked(machine: Machine) -> None:
    """It waits ten seconds. Then it fails, has done nothing, and leaves no record of a run."""
    path = machine.folder / "f"
    machine.run()
    other = sqlite3.connect(machine.place / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    done = machine.run(file(str(path), content="x"))
    other.close()
    assert done.end["status"] == "failed" and "locked" in done.end["error"]
    assert not path.exists() and machine.journals() == []
    again = machine.run(file(str(path), content="x"))
    assert again.end["status"] == "ok" and again.warnings == []
    assert len(machine.query("SELECT id FROM run")) == 2


def test_every_mode_refuses_a_ledger_of_a_newer_format(machine: Machine) -> None:
    machine.run()
    machine.query(f"PRAGMA user_version={SCHEMA + 1}")
    for mode in ("plan", "apply", "history"):
        done = machine.run(file(str(machine.folder / "f"), content="x"), mode=mode)
        assert done.end["status"] == "failed" and f"format {SCHEMA + 1}" in done.end["error"]
    assert not (machine.folder / "f").exists()


OVERLAY = """
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir -p image/runs image/before upper work state
touch image/runs/first image/before/kept image/ledger.db
mount -t overlay overlay -o lowerdir=image,upperdir=upper,workdir=work state
"$2" -c 'import sys; from statecfg.remote.ledger.state import set_aside; set_aside(sys.argv[1], "f00")' "$1/state"
cd state
find . -mindepth 1 | sort
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="not run on this machine: only root can mount")
def test_a_ledger_in_an_overlay_image_can_be_set_aside(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-ec", OVERLAY, "sh", str(tmp_path), sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == [
        *("./of-f00", "./of-f00/before", "./of-f00/before/kept", "./of-f00/ledger.db"),
        *("./of-f00/runs", "./of-f00/runs/first"),
    ]
