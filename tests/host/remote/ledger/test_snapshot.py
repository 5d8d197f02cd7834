"""The snapshot of the ledger, and the runs that changed nothing: what they show, and what survives kills and damage."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.remote.ledger import appended
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.state import APPENDED, LEDGER, SNAPSHOT, StateError
from statecfg.resources import directory, file
from tests.host.remote.managed import Machine, Said, fine

Json = dict[str, Any]


@pytest.fixture
def machine(server: Machine, tmp_path: Path) -> Machine:
    """Give a machine with two files that are as defined."""
    machine = Machine(tmp_path, server.server)
    fine(machine.run(*nodes(machine)))
    return machine


def nodes(machine: Machine, text: str = "x") -> list[Graph]:
    place = machine.folder / "d"
    folder = directory(str(place))
    return [folder, *(file(f"{place}/{name}", content=text, requires=[folder]) for name in "ab")]


def runs(machine: Machine) -> list[str]:
    """Return the ids of the runs in the history, oldest first."""
    told: list[Json] = machine.run(mode="history", history={"limit": 1000}).end["history"]
    assert all(run["status"] in ("ok", "cut off") and run["ended"] for run in told), told
    return sorted(run["run"] for run in told)


def content(machine: Machine, name: str) -> bytes | None:
    path = machine.place / name
    return path.read_bytes() if path.exists() else None


def acknowledged(said: Said) -> bool:
    return bool(said.frames) and said.frames[-1]["type"] == "end"


# What runs see


def test_runs_that_change_nothing_leave_the_database_alone(machine: Machine) -> None:
    before, info = content(machine, LEDGER), (machine.place / LEDGER).stat()
    for mode in ("apply", "plan", "verify", "apply"):
        assert set(machine.run(*nodes(machine), mode=mode).end.get("warnings", [])) == set()
    after = (machine.place / LEDGER).stat()
    assert content(machine, LEDGER) == before and after.st_ctime_ns == info.st_ctime_ns
    assert runs(machine) == ["r0001", "r0002", "r0005"]
    assert content(machine, LEDGER) == before


def test_the_next_change_adds_the_appended_runs_to_the_database(machine: Machine) -> None:
    for _ in range(2):
        fine(machine.run(*nodes(machine)))
    fine(machine.run(*nodes(machine)[:2], partial=True))  # not the second file
    assert (machine.place / APPENDED).exists()
    fine(machine.run(*nodes(machine, "y")))
    assert not (machine.place / APPENDED).exists()
    assert runs(machine) == ["r0001", "r0002", "r0003", "r0004", "r0005"]
    who = machine.query("SELECT DISTINCT who, mode, playbook, status FROM run")
    assert who == [("ann@desk", "apply", "site", "ok")]


def test_a_run_is_the_last_one_of_the_resources_that_it_found_as_defined(machine: Machine) -> None:
    fine(machine.run(*nodes(machine)[:2], partial=True))
    ledger = Ledger(str(machine.place), reading=True)
    last = dict(ledger.database.execute("SELECT name, last_run FROM resource").fetchall())
    ledger.close()
    place = machine.folder / "d"
    assert last == {f"directory:{place}": "r0002", f"file:{place}/a": "r0002", f"file:{place}/b": "r0001"}


def test_a_run_with_a_new_resource_opens_the_database(machine: Machine) -> None:
    (machine.folder / "e").write_text("e")
    fine(machine.run(*nodes(machine), file(str(machine.folder / "e"), content="e")))
    assert f"file:{machine.folder}/e" in machine.rows() and not (machine.place / APPENDED).exists()


def test_a_drifted_host_is_changed_with_a_snapshot_as_without(machine: Machine) -> None:
    for keep in (True, False):
        (machine.folder / "d" / "a").write_text("drifted")
        if not keep:
            (machine.place / SNAPSHOT).unlink()
        said = fine(machine.run(*nodes(machine)))
        assert said.outcomes()[f"file:{machine.folder}/d/a"] == "changed"
        plan = fine(machine.run(*nodes(machine)[:1], mode="plan"))
        assert [node["name"] for node in plan.part("left")] == [f"file:{machine.folder}/d/{name}" for name in "ab"]


def test_a_plan_before_any_snapshot_writes_none(machine: Machine) -> None:
    (machine.place / SNAPSHOT).unlink()
    fine(machine.run(*nodes(machine), mode="plan"))
    assert not (machine.place / SNAPSHOT).exists()
    fine(machine.run(*nodes(machine)))
    assert (machine.place / SNAPSHOT).stat().st_mode & 0o777 == 0o600


def test_two_playbooks_see_the_resources_of_each_other(machine: Machine) -> None:
    place = machine.folder / "d"
    other = [file(f"{place}/a", content="x")]
    fine(machine.run(*other, playbook="other"))
    fine(machine.run(*other, playbook="other"))
    assert (machine.place / APPENDED).exists()
    plan = fine(machine.run(mode="destroy", yes=True, playbook="other"))
    assert plan.outcomes() and (place / "a").read_text() == "x"
    assert set(machine.rows()) == {f"directory:{place}", f"file:{place}/a", f"file:{place}/b"}


def test_after_a_number_of_runs_one_adds_them_to_the_database(machine: Machine) -> None:
    line = machine.place / APPENDED
    fine(machine.run(*nodes(machine)))
    (run,), _ = appended.read(str(machine.place))
    for number in range(1, appended.MOST):
        appended.append(str(machine.place), dict(run, id=f"x{number:04}"))
    fine(machine.run(*nodes(machine)))
    assert not line.exists() and len(machine.query("SELECT 1 FROM run")) == appended.MOST + 2
    fine(machine.run(*nodes(machine)))
    assert line.exists()


# Changes by others


def test_a_database_that_another_program_changed_is_read_again(machine: Machine) -> None:
    machine.query("UPDATE resource SET protect = 1, digest = 'other'")
    assert machine.run(*nodes(machine)[:1], mode="plan").end["status"] == "ok"
    refused = machine.run(mode="destroy", yes=True)
    assert refused.end["status"] == "refused" and "protected" in refused.end["refusal"]


def test_a_restored_backup_is_read_again_even_with_its_former_times(machine: Machine) -> None:
    path, backup = machine.place / LEDGER, machine.folder / "backup"
    shutil.copy2(path, backup)
    fine(machine.run(*nodes(machine), file(str(machine.folder / "new"), content="x")))
    for restore in (shutil.copy2, lambda source, target: os.replace(source, target)):
        restore(backup, path)
        plan = fine(machine.run(*nodes(machine), mode="plan"))
        assert plan.part("left") == []


@pytest.mark.parametrize("text", [b"", b"not a database at all" * 400, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_database_is_an_error_as_without_a_snapshot(machine: Machine, text: bytes) -> None:
    said = []
    for keep in (True, False):
        if not keep:
            (machine.place / SNAPSHOT).unlink()
        (machine.place / LEDGER).write_bytes(text)
        ends = [machine.run(*nodes(machine), mode=mode).end for mode in ("plan", "verify", "apply")]
        said.append([(end["status"], end.get("error"), end.get("hint")) for end in ends])
    assert said[0] == said[1]
    assert (said[0][0][0] == "failed") == bool(text)


def test_an_interrupted_commit_makes_the_snapshot_invalid(machine: Machine) -> None:
    (machine.place / f"{LEDGER}-journal").write_bytes(b"")
    fine(machine.run(*nodes(machine)))
    assert not (machine.place / APPENDED).exists() and runs(machine) == ["r0001", "r0002"]


def test_runs_of_a_lost_ledger_do_not_come_into_the_new_one(machine: Machine) -> None:
    fine(machine.run(*nodes(machine)))
    (machine.place / LEDGER).unlink()
    fine(machine.run(*nodes(machine)))
    assert runs(machine) == ["r0003"] and not (machine.place / APPENDED).exists()


# Damage


def test_a_snapshot_damaged_anywhere_is_ignored(machine: Machine) -> None:
    good = content(machine, SNAPSHOT)
    assert good is not None
    for at in range(0, len(good), 97):
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]):
            (machine.place / SNAPSHOT).write_bytes(bad)
            plan = fine(machine.run(*nodes(machine)[:2], mode="plan"))
            assert [node["name"] for node in plan.part("left")] == [f"file:{machine.folder}/d/b"]


def test_an_incomplete_last_line_is_ignored_and_the_others_stay(machine: Machine) -> None:
    fine(machine.run(*nodes(machine)))
    one = content(machine, APPENDED)
    fine(machine.run(*nodes(machine)))
    both = content(machine, APPENDED)
    assert one is not None and both is not None and both.startswith(one)
    database, snapshot = content(machine, LEDGER), content(machine, SNAPSHOT)
    for end in range(len(one), len(both)):
        for rest in (both[:end], both[:end] + b"\0" * (len(both) - end)):
            (machine.place / APPENDED).write_bytes(rest)
            told, more = appended.read(str(machine.place))
            only_the_newline_is_missing = end == len(both) - 1 and rest == both[:end]
            assert [run["id"] for run in told] == ["r0002", "r0003"][: 1 + only_the_newline_is_missing]
            assert more == (rest == one)
    (machine.place / APPENDED).write_bytes(both[:-9])
    fine(machine.run(*nodes(machine)))
    assert runs(machine) == ["r0001", "r0002", "r0004"] and not (machine.place / APPENDED).exists()
    assert database != content(machine, LEDGER) and snapshot != content(machine, SNAPSHOT)


def test_a_damaged_line_before_the_last_one_is_an_error(machine: Machine) -> None:
    for _ in range(2):
        fine(machine.run(*nodes(machine)))
    text = content(machine, APPENDED)
    assert text is not None
    (machine.place / APPENDED).write_bytes(text[:20] + b"?" + text[21:])
    for mode in ("plan", "apply", "history"):
        said = machine.run(*nodes(machine), mode=mode)
        assert said.end["status"] == "failed"
        assert said.end["error"] == f"line 1 of {machine.place / APPENDED} is damaged"
        assert "Move it away" in said.end["hint"]
    assert content(machine, APPENDED) == text[:20] + b"?" + text[21:]


def test_a_run_that_cannot_be_recorded_fails(machine: Machine) -> None:
    """The limit cuts the first line short. The file is then as before."""
    fine(machine.run(*nodes(machine)))
    before = content(machine, APPENDED)
    assert before is not None
    script = f"""
import resource, signal, sys
from statecfg.remote.ledger import appended
from statecfg.remote.ledger.state import StateError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 40}, resource.RLIM_INFINITY))
try:
    appended.append({str(machine.place)!r}, {{"id": "r9", "text": "x" * 100}})
except StateError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"the ledger in {machine.place} can't be written: File too large\n"
    assert content(machine, APPENDED) == before


def test_a_link_in_place_of_the_file_is_not_followed(machine: Machine) -> None:
    target = machine.folder / "target"
    target.write_text("")
    (machine.place / APPENDED).symlink_to(target)
    with pytest.raises(StateError, match="cannot read"):
        appended.read(str(machine.place))
    with pytest.raises(StateError, match="can't be written"):
        appended.append(str(machine.place), {"id": "r9"})
    assert target.read_text() == ""


# Kills


def test_a_killed_run_without_changes_is_recorded_if_it_was_acknowledged(machine: Machine) -> None:
    known, cut = ["r0001"], []
    for kill in range(1, 400):
        said = machine.run(*nodes(machine), kill=kill)
        name = f"r{machine.number:04}"
        (known if acknowledged(said) else cut).append(name)
        told = runs(machine)
        assert set(known) <= set(told) <= {*known, *cut}, kill
        if said.status == 0:
            break
    assert len(cut) > 10
    fine(machine.run(*nodes(machine, "y")))
    in_database = {name for (name,) in machine.query("SELECT id FROM run")}
    assert in_database == {*told, f"r{machine.number:04}"}


def test_a_kill_while_runs_are_added_to_the_database_loses_none(machine: Machine) -> None:
    """Each call of the run that adds them can be the point of the kill, those of SQLite excepted."""
    for kill in range(1, 2000, 9):
        text = f"text {kill}"
        for _ in range(2):
            fine(machine.run(*nodes(machine, "x")))
        wanted = runs(machine)
        assert (machine.place / APPENDED).exists()
        said = machine.run(*nodes(machine, text), kill=kill)
        assert set(wanted) <= set(runs(machine)), kill
        if said.status == 0:
            break
    assert 60 < kill < 1990
    fine(machine.run(*nodes(machine, "y")))
    found = machine.query("SELECT id FROM run ORDER BY id")
    assert {name for (name,) in found} >= set(wanted) and not (machine.place / APPENDED).exists()


def test_runs_are_added_once_when_the_file_outlives_its_transaction(machine: Machine) -> None:
    fine(machine.run(*nodes(machine)))
    text = content(machine, APPENDED)
    assert text is not None
    fine(machine.run(*nodes(machine, "y")))
    last = machine.query("SELECT name, last_run FROM resource ORDER BY name")
    (machine.place / APPENDED).write_bytes(text)
    assert runs(machine) == ["r0001", "r0002", "r0003"]
    (machine.place / SNAPSHOT).unlink()
    Ledger(str(machine.place)).close()
    assert machine.query("SELECT name, last_run FROM resource ORDER BY name") == last
    assert not (machine.place / APPENDED).exists()
    database = sqlite3.connect(machine.place / LEDGER)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("SELECT count(*) FROM run").fetchall() == [(3,)]
    database.close()
