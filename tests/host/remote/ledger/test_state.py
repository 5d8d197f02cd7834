"""The host's records of runs: the lock, the journal, and the debts of interrupted runs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.ledger import state
from statecfg.remote.ledger.journal import Account, Journal, interrupted_runs
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.lock import Lock
from statecfg.remote.ledger.schema import SCHEMA
from statecfg.remote.ledger.state import StateError, prepare

ROOT = os.geteuid() == 0
HOLDER = {"run": "r1", "who": "ann@desk", "since": 1.0, "pid": 1}


@pytest.fixture
def place(tmp_path: Path) -> str:
    prepare(str(tmp_path / "state"))
    return str(tmp_path / "state")


def test_prepare_makes_the_state_directory_private(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "open", 0o777)
    os.chmod(tmp_path / "open", 0o777)
    prepare(str(tmp_path / "open"))
    assert os.stat(tmp_path / "open").st_mode & 0o777 == 0o700


@pytest.mark.parametrize("plant", [lambda p: p.symlink_to("/tmp"), lambda p: p.write_text("x")])
def test_prepare_refuses_a_path_that_is_not_a_directory(tmp_path: Path, plant: Any) -> None:
    plant(tmp_path / "state")
    with pytest.raises(StateError):
        prepare(str(tmp_path / "state"))


@pytest.mark.skipif(not ROOT, reason="only root may give a directory away")
def test_prepare_refuses_a_directory_of_another_user(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "state")
    os.chown(tmp_path / "state", 1, 1)
    with pytest.raises(StateError, match="not a directory that this user owns"):
        prepare(str(tmp_path / "state"))


# The lock

HOLD = """
import sys, time
from statecfg.remote.ledger.lock import Lock
lock = Lock(sys.argv[1])
print(lock.take({"run": "r1", "who": "ann@desk"}, 0), flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(place: str) -> Any:
    child = subprocess.Popen([sys.executable, "-c", HOLD, place], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "None\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_taking_a_held_lock_returns_its_holder(place: str, holder: Any) -> None:
    before = time.monotonic()
    assert Lock(place).take(HOLDER, 0) == {"run": "r1", "who": "ann@desk"}
    assert time.monotonic() - before < 20
    assert Lock(place).current_holder(0) == {"run": "r1", "who": "ann@desk"}


def test_killing_the_holder_frees_the_lock_at_once(place: str, holder: Any) -> None:
    holder.kill()
    holder.wait()
    lock = Lock(place)
    assert lock.take(HOLDER, 0) is None
    lock.drop()


def test_taking_a_held_lock_waits_for_the_given_time(place: str, holder: Any) -> None:
    started = time.monotonic()
    assert Lock(place).take(HOLDER, 0.6) is not None
    assert 0.5 < time.monotonic() - started < 20


@pytest.mark.parametrize("text", ['{"run": "old", "pid": 1}', "", "no json", "[1]", "\xff"])
def test_stale_text_in_a_lock_file_does_not_block_anyone(place: str, text: str) -> None:
    """The text of a dead run does not block others, even if it contains the id of a living process."""
    (Path(place) / "lock").write_text(text)
    assert Lock(place).current_holder(0) is None
    lock = Lock(place)
    assert lock.take(HOLDER, 0) is None
    lock.drop()


@pytest.mark.parametrize("text", ["", "no json", "[1]"])
def test_a_held_lock_with_unreadable_text_names_no_holder(place: str, holder: Any, text: str) -> None:
    (Path(place) / "lock").write_text(text)
    assert Lock(place).take(HOLDER, 0) == {}


def test_a_child_process_does_not_keep_the_lock(place: str) -> None:
    lock = Lock(place)
    assert lock.take(HOLDER, 0) is None
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock.drop()
        other = Lock(place)
        assert other.take(HOLDER, 0) is None
        other.drop()
    finally:
        child.kill()
        child.wait()


def test_to_look_takes_and_makes_nothing(place: str) -> None:
    assert Lock(place).current_holder(0) is None
    assert os.listdir(place) == []


def test_only_one_of_several_processes_gets_the_lock(place: str) -> None:
    program = HOLD.replace("time.sleep(60)", "sys.stdin.read()")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    try:
        said = [child.stdout.readline() for child in children if child.stdout is not None]
        assert sorted(line == "None\n" for line in said) == [False, False, False, True]
    finally:
        for child in children:
            child.communicate()


# The journal


def test_a_journal_lists_the_nodes_that_were_under_way(place: str) -> None:
    journal = Journal(place, "r1")
    journal.intend(["a", "b", "c"])
    journal.started("a", "write")
    journal.finished("a", "changed")
    journal.started("b", "write")
    ((run, account),) = interrupted_runs(place)
    assert run == "r1"
    assert (account.started, account.outcomes, account.under_way) == ({"a", "b"}, {"a": "changed"}, ["b"])


def test_a_journal_truncated_anywhere_is_still_readable(place: str) -> None:
    """Wherever a crash truncates the text, all complete lines count."""
    lines = [{"intend": ["a"]}, {"node": "a", "op": "write"}, {"node": "a", "outcome": "changed"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for end in range(len(text) + 1):
        account = Account(text[:end].split("\n"))
        whole = [line for line in lines if json.dumps(line) in text[:end]]
        assert account.started == ({"a"} if lines[1] in whole else set())
        assert account.outcomes == ({"a": "changed"} if lines[2] in whole else {})


@pytest.mark.parametrize(
    "line", ["5", "[]", "null", '"x"', "{}", '{"outcome": "changed"}', '{"op": 1, "node": []}', "\0"]
)
def test_invalid_journal_lines_are_ignored(line: str) -> None:
    account = Account([line, '{"node": "a", "op": "x"}'])
    assert account.started == {"a"} and account.outcomes == {}


def test_a_journal_reports_that_the_disk_is_full(place: str) -> None:
    journal = Journal(place, "r1")
    os.close(journal.descriptor)
    journal.descriptor = os.open("/dev/full", os.O_WRONLY)
    journal.started("a", "write")
    assert "No space left" in journal.broken


def test_a_partly_written_journal_line_reports_why_it_failed(place: str) -> None:
    """The first write is short because of the file size limit. The second write gives the reason."""
    script = f"""
import resource, sys
sys.path.insert(0, {str(Path(state.__file__).parents[3])!r})
from statecfg.remote.ledger.journal import Journal, interrupted_runs
journal = Journal({place!r}, "r")
journal.add(node="a", op="write")
resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.RLIM_INFINITY))
journal.add(node="b", op="write")
print(journal.broken)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.add(node="c", op="write")
print(interrupted_runs({place!r})[0][1].actions)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[0] == f"the journal {place}/runs/r.jsonl can't be written: File too large"
    assert "('a', " in said[1] and "('c', " in said[1] and "('b', " not in said[1]


def test_a_journal_that_cannot_be_created_raises_an_error(place: str) -> None:
    (Path(place) / "runs").write_text("in the way")
    with pytest.raises(StateError, match="cannot create the journal"):
        Journal(place, "r1")


# The ledger


def run(name: str, playbook: str = "web") -> dict[str, Any]:
    return {"id": name, "mode": "apply", "who": "ann@desk", "playbook": playbook}


def account(*lines: tuple[str, ...]) -> Account:
    found = [{"node": line[0], "op" if line[1] == "started" else "outcome": line[1]} for line in lines]
    return Account([json.dumps(line) for line in found])


def ended(place: str, name: str, found: Account, owed: Any = (), playbook: str = "web") -> list[tuple[str, str]]:
    """Begin a run with its debts, end it, and return what is owed afterwards."""
    Journal(place, name)
    ledger = Ledger(place)
    ledger.begin(run(name, playbook), [(node, cause, None) for node, cause in owed])
    ledger.end(run(name, playbook), found, "ok")
    left = [(debt["node"], debt["cause"]) for debt in ledger.owed("web")]
    ledger.close()
    assert interrupted_runs(place) == []
    return left


DEBT = [("service", "conf")]


def test_a_debt_is_removed_once_it_is_paid(place: str) -> None:
    done = account(("conf", "started"), ("conf", "changed"), ("service", "started"), ("service", "changed"))
    assert ended(place, "r1", done, DEBT) == []


def test_a_debt_stays_until_its_service_is_restarted(place: str) -> None:
    """The file was changed and the service was not restarted. The debt stays until a run restarts it."""
    assert ended(place, "r1", account(("conf", "started"), ("conf", "changed"), ("service", "skipped")), DEBT) == DEBT
    assert ended(place, "r2", account()) == DEBT
    assert ended(place, "r3", account(("service", "started"), ("service", "failed"))) == DEBT
    assert ended(place, "r4", account(("service", "changed")), playbook="other") == DEBT
    assert ended(place, "r5", account(("service", "started"), ("service", "changed"))) == []


def test_a_change_that_began_creates_a_debt(place: str) -> None:
    assert ended(place, "r1", account(("conf", "started")), DEBT) == DEBT


def test_a_change_that_never_began_creates_no_debt(place: str) -> None:
    assert ended(place, "r1", account(), DEBT) == []


def test_an_interrupted_run_owes_only_for_changes_it_began(place: str) -> None:
    """The journal contains the information, although the run never closed the ledger."""
    ledger = Ledger(place)
    ledger.begin(run("r1"), [("service", "conf", None), ("other", "late", None)])
    Journal(place, "r1").started("conf", "write")
    reading = Ledger(place, reading=True)
    assert reading.who("r1") == "ann@desk"
    reading.recall(interrupted_runs(place))
    assert [debt["node"] for debt in reading.owed("web")] == ["service"]
    reading.close()
    ledger.close()


def test_a_ledger_of_a_newer_format_is_refused(place: str) -> None:
    Ledger(place).close()
    database = sqlite3.connect(Path(place) / "ledger.db")
    database.execute(f"PRAGMA user_version={SCHEMA + 1}")
    database.close()
    for reading in (False, True):
        with pytest.raises(StateError, match=rf"format {SCHEMA + 1}; this statecfg supports {SCHEMA}"):
            Ledger(place, reading)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be looked at" * 40, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_broken_ledger_is_refused_and_kept(place: str, content: bytes) -> None:
    path = Path(place) / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(StateError, match="can't be used"):
        Ledger(place)
    assert path.read_bytes() == content


def test_a_ledger_works_in_a_path_with_special_characters(tmp_path: Path) -> None:
    place = str(tmp_path / "a?b#c%41 d")
    prepare(place)
    Ledger(place).close()
    assert os.listdir(place) == ["ledger.db"]
    assert os.stat(place + "/ledger.db").st_mode & 0o777 == 0o600


def test_an_empty_ledger_file_can_be_read_and_stays_empty(place: str) -> None:
    (Path(place) / "ledger.db").touch()
    ledger = Ledger(place, reading=True)
    assert ledger.owed("web") == []
    ledger.close()
    assert (Path(place) / "ledger.db").read_bytes() == b""


CRASH = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size=1")
database.execute("PRAGMA cache_spill=1")
database.execute("BEGIN")
for number in range(2000):
    database.execute("INSERT INTO owed VALUES ('web', ?, 'x', 0, 'r1', 'null')", ("n%d" % number + "x" * 200,))
os.kill(os.getpid(), 9)
"""


def test_a_reader_rolls_back_an_interrupted_commit(place: str) -> None:
    """A kill left half of a transaction in the file. Even a reader first repairs the file."""
    Ledger(place).close()
    subprocess.run([sys.executable, "-c", CRASH, place + "/ledger.db"], check=False)
    assert os.path.exists(place + "/ledger.db-journal")
    ledger = Ledger(place, reading=True)
    assert ledger.owed("web") == []
    ledger.close()


def test_a_ledger_locked_by_another_program_raises_an_error(place: str) -> None:
    ledger = Ledger(place)
    ledger.database.execute("PRAGMA busy_timeout=100")
    other = sqlite3.connect(place + "/ledger.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StateError, match="locked"):
        ledger.begin(run("r1"), [])
    other.close()
    ledger.begin(run("r1"), [])
    ledger.close()


def test_sweep_deletes_old_hook_files(place: str) -> None:
    for name, age in (("old", state.OLD + 60), ("new", 60)):
        folder = Path(place) / "hooks" / name / "x.hook"
        folder.mkdir(parents=True)
        os.utime(folder.parent, (time.time() - age, time.time() - age))
    state.sweep(place)
    assert os.listdir(Path(place) / "hooks") == ["new"]
