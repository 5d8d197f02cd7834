"""Managed resources on a host: recorded, pruned, and passed between playbooks, also when a run is interrupted."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import command, directory, file, symlink
from tests.host.remote import managed
from tests.host.remote.managed import Machine, Said, fine, hook
from tests.host.resources.undo import different, snapshot
from tests.lab import processes
from tests.unit.remote.ledger.managed_types import t_lasting, t_several

ROOT = os.geteuid() == 0


# Adding and removing


def test_pruning_and_destroying_restore_the_original_host(machine: Machine, host: Path) -> None:
    (host / "was").write_text("former\n")
    (host / "was").chmod(0o4711)
    before = snapshot(host)
    nodes = [file(str(host / "was"), content="ours\n"), file(str(host / "new"), content="ours\n", mode="0600")]
    fine(machine.run(*nodes))
    assert set(machine.rows().values()) == {"RESOLVED"}
    plan = machine.run(nodes[0], mode="plan", prune=True)
    assert [each["name"] for each in plan.part("removals")] == [f"file:{host}/new"] and plan.part("left") == []
    stays = machine.run(nodes[0], mode="plan")
    assert stays.part("removals") == [] and [each["outcome"] for each in stays.part("left")] == ["changed"]
    left = fine(machine.run(nodes[0]))
    assert [each["outcome"] for each in left.part("left")] == ["skipped"] and (host / "new").exists()
    assert fine(machine.run(nodes[0], prune=True)).outcomes()[f"file:{host}/new"] == "changed"
    assert not (host / "new").exists() and list(machine.rows()) == [f"file:{host}/was"]
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {} and machine.rows() == {} and machine.kept() == []


def test_prune_mode_does_not_correct_drift(machine: Machine, host: Path) -> None:
    fine(machine.run(*[file(str(host / name), content="x") for name in "abc"]))
    (host / "a").write_text("drifted")
    done = fine(machine.run(*[file(str(host / name), content="x") for name in "ab"], mode="prune"))
    assert done.outcomes() == {f"file:{host}/c": "changed"}
    assert (host / "a").read_text() == "drifted"


def test_a_partial_run_prunes_nothing(machine: Machine, host: Path) -> None:
    fine(machine.run(*[file(str(host / name), content="x") for name in "abc"]))
    done = fine(machine.run(file(str(host / "a"), content="x"), partial=True, prune=True))
    assert done.outcomes() == {} and len(machine.rows()) == 3 and done.part("left") == []


def test_a_rename_in_a_partial_run_keeps_the_former_content(machine: Machine, host: Path) -> None:
    (host / "f").write_text("former")
    fine(machine.run(file(str(host / "f"), content="ours"), file(str(host / "g"), content="x")))
    fine(machine.run(file(str(host / "f"), content="ours", provides="new"), partial=True))
    fine(machine.run(file(str(host / "f"), content="ours", provides="new"), file(str(host / "g"), content="x")))
    assert sorted(machine.rows()) == [f"file:{host}/g", "new"]
    fine(machine.run(mode="destroy", yes=True))
    assert (host / "f").read_text() == "former"


def test_a_name_reused_by_another_type_keeps_both_memories(machine: Machine, host: Path) -> None:
    """A link takes the name and path of a file. Destroy brings back the file that was there before both."""
    (host / "x").write_text("former")
    before = snapshot(host)
    fine(machine.run(file(str(host / "x"), content="ours", provides="x")))
    done = fine(machine.run(symlink(str(host / "x"), target="/t", replace=True, provides="x")))
    assert os.readlink(host / "x") == "/t"
    assert {"x", f"x (the file {host}/x)"} == set(done.outcomes())
    assert machine.query("SELECT name, type, state FROM resource") == [("x", "symlink", "RESOLVED")]
    assert machine.run(symlink(str(host / "x"), target="/t", replace=True, provides="x")).end["unchanged"]
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {}


def test_a_name_reused_for_another_path_keeps_both_records(machine: Machine, host: Path) -> None:
    (host / "old").write_text("former")
    before = snapshot(host)
    fine(machine.run(file(str(host / "old"), content="ours", provides="conf")))
    done = fine(machine.run(file(str(host / "new"), content="ours", provides="conf")))
    aside = f"conf (the file {host}/old)"
    assert [each["name"] for each in done.part("left")] == [aside]
    assert set(machine.rows()) == {"conf", aside} and (host / "old").read_text() == "ours"
    fine(machine.run(file(str(host / "new"), content="ours", provides="conf"), prune=True))
    assert (host / "old").read_text() == "former" and set(machine.rows()) == {"conf"}
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {}


def test_a_path_changed_and_changed_back_can_be_undone(machine: Machine, host: Path) -> None:
    (host / "one").write_text("former")
    before = snapshot(host)
    for path in ("one", "two", "one"):
        fine(machine.run(file(str(host / path), content="ours", provides="conf")))
    assert machine.rows() == {"conf": "RESOLVED", f"conf (the file {host}/two)": "RESOLVED"}
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {}


def test_two_files_that_swap_names_can_be_undone(machine: Machine, host: Path) -> None:
    (host / "x").write_text("former")
    before = snapshot(host)
    fine(
        machine.run(file(str(host / "x"), content="1", provides="a"), file(str(host / "y"), content="2", provides="b"))
    )
    swapped = [file(str(host / "x"), content="1", provides="b"), file(str(host / "y"), content="2", provides="a")]
    fine(machine.run(*swapped))
    assert machine.rows() == {"a": "RESOLVED", "b": "RESOLVED"}
    assert machine.run(*swapped, mode="plan").part("left") == []
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {}


def test_two_resources_merged_into_one_leave_one_record(machine: Machine, host: Path) -> None:
    paths = [str(host / name) for name in "ab"]
    fine(machine.run(*[t_several(name, paths=[path]) for name, path in zip("ab", paths, strict=True)]))
    one = t_several("a", paths=paths)
    fine(machine.run(one))
    assert list(machine.rows()) == ["t_several:a"] and all(map(os.path.exists, paths))
    assert machine.run(one).end["unchanged"]


def test_a_resource_without_undo_is_forgotten_and_stays_on_the_host(machine: Machine, host: Path) -> None:
    fine(machine.run(t_lasting(str(host / "f")), file(str(host / "g"), content="x")))
    plan = machine.run(file(str(host / "g"), content="x"), mode="plan", prune=True)
    ((removal),) = plan.part("removals")
    assert (removal["outcome"], removal["reason"]) == ("unchanged", "it stays: its type has no undo")
    fine(machine.run(file(str(host / "g"), content="x"), prune=True))
    assert (host / "f").exists() and list(machine.rows()) == [f"file:{host}/g"]


def test_removing_a_protected_resource_refuses_the_whole_run(machine: Machine, host: Path) -> None:
    nodes = [file(str(host / name), content="x", protect=name == "c") for name in "abc"]
    fine(machine.run(*nodes))
    new = file(str(host / "new"), content="x")
    done = machine.run(*nodes[:2], new, prune=True)
    assert done.end["status"] == "refused" and f"file:{host}/c is protected" in done.end["refusal"]
    assert not (host / "new").exists() and machine.journals() == []
    plan = machine.run(*nodes[:2], mode="plan", prune=True)
    assert plan.end["status"] == "ok" and "an apply would be refused" in plan.warnings[0]
    for mode in ("prune", "destroy"):
        assert machine.run(*nodes[:2], mode=mode, yes=True).end["status"] == "refused"
    fine(machine.run(*nodes[:2], file(str(host / "c"), content="x")))
    fine(machine.run(*nodes[:2], prune=True))
    assert not (host / "c").exists()


def test_pruning_more_than_half_of_the_resources_needs_confirmation(machine: Machine, host: Path) -> None:
    nodes = [file(str(host / name), content="x") for name in "abcd"]
    fine(machine.run(*nodes))
    done = machine.run(nodes[0], prune=True)
    assert done.end["status"] == "refused" and "3 of the 4 resources" in done.end["refusal"]
    assert (host / "d").exists()
    fine(machine.run(*nodes[:2], prune=True))
    fine(machine.run(prune=True, yes=True))
    assert list(host.iterdir()) == []


# Two playbooks


@pytest.mark.parametrize("goes", ["one", "two"])
def test_a_file_shared_by_two_playbooks_stays_until_both_let_go(machine: Machine, host: Path, goes: str) -> None:
    """The file stays when the first playbook is destroyed. The second destroy brings back the former file."""
    (host / "f").write_text("former")
    before = snapshot(host)
    node = file(str(host / "f"), content="ours")
    for playbook in ("one", "two"):
        fine(machine.run(node, playbook=playbook))
    stays = "two" if goes == "one" else "one"
    plan = machine.run(mode="plan", prune=True, playbook=goes)
    assert "it stays: " in plan.part("removals")[0]["reason"]
    fine(machine.run(mode="destroy", playbook=goes, yes=True))
    assert (host / "f").read_text() == "ours" and machine.rows(goes) == {} and len(machine.rows(stays)) == 1
    assert machine.run(node, playbook=stays).end["unchanged"]
    fine(machine.run(mode="destroy", playbook=stays, yes=True))
    assert different(before, snapshot(host)) == {} and machine.kept() == []


def test_playbooks_never_prune_each_other(machine: Machine, host: Path) -> None:
    fine(machine.run(file(str(host / "a"), content="x"), playbook="one"))
    fine(machine.run(file(str(host / "b"), content="x"), playbook="two"))
    done = fine(machine.run(playbook="two", mode="destroy"))
    assert list(done.outcomes()) == [f"file:{host}/b"] and (host / "a").exists()


# Verify and history


def drift(said: Said) -> dict[str, list[str]]:
    parts = [*said.part("layers"), *said.part("left"), *said.part("removals")]
    return {each["name"]: each["drift"] for each in parts if "drift" in each}


def test_verify_tells_host_drift_from_definition_drift(machine: Machine, host: Path) -> None:
    paths = [str(host / name) for name in ("same", "host", "definition", "both", "left")]
    fine(machine.run(*[file(path, content="one", provides=Path(path).name) for path in paths]))
    for name in ("host", "both"):
        (host / name).write_text("drifted")
    nodes = [file(paths[0], content="one", provides="same"), file(paths[1], content="one", provides="host")]
    nodes += [file(path, content="two", provides=Path(path).name) for path in paths[2:4]]
    nodes.append(file(str(host / "new"), content="new", provides="new"))
    before = snapshot(machine.folder)
    said = fine(machine.run(*nodes, mode="verify"))
    assert drift(said) == {
        "host": ["host"],
        "definition": ["definition"],
        "both": ["host", "definition"],
        "left": ["definition"],
        "new": ["definition"],
    }
    assert different(before, snapshot(machine.folder)) == {}
    fine(machine.run(*nodes, prune=True))
    assert drift(machine.run(*nodes, mode="verify")) == {}


def test_verify_shows_unfinished_nodes_as_pending_after_a_failed_apply(machine: Machine, host: Path) -> None:
    """The unfinished nodes were never applied, so they can't drift. The finished file can."""
    path = str(host / "done")
    bad = command("bad", argv=["false"], unless="false")
    nodes = [file(path, content="x"), bad, file(str(host / "later"), content="x", requires=[bad])]
    assert machine.run(*nodes).end["status"] == "failed"
    said = machine.run(*nodes, mode="verify")
    assert drift(said) == {"command:bad": ["pending"], f"file:{host}/later": ["pending"]}
    (host / "done").write_text("drifted")
    assert drift(machine.run(*nodes, mode="verify"))[f"file:{path}"] == ["host"]


def test_history_lists_finished_failed_and_interrupted_runs(machine: Machine, host: Path) -> None:
    node = file(str(host / "f"), content="x", provides="f")
    fine(machine.run(node))
    machine.run(node, command("bad", argv=["false"], unless="false"))
    for kill in range(40, 400, 4):
        machine.run(node, file(str(host / "g"), content="x" * 100), kill=kill)
        if machine.journals():
            break
    cut = machine.journals()[0].partition(".")[0]
    runs = machine.run(mode="history").end["history"]
    assert [(each["run"], each["status"]) for each in runs] == [
        (cut, "cut off"),
        ("r0002", "failed"),
        ("r0001", "ok"),
    ]
    (one,) = machine.run(mode="history", history={"run": "r0002"}).end["history"]
    assert one["outcomes"] == {"command:bad": "failed"} and one["who"] == "ann@desk"
    assert [(each["node"], each["status"]) for each in one["actions"]] == [("command:bad", "error")]
    assert machine.run(mode="history", history={"playbook": "other"}).end["history"] == []
    assert machine.journals() == [f"{cut}.jsonl"]  # reading changes nothing


def test_a_restart_stays_owed_across_a_rename_until_it_is_done(machine: Machine, host: Path) -> None:
    def nodes(text: str, name: str, conf: str = "conf") -> list[Graph]:
        made = file(str(host / "conf"), content=text, provides=conf)
        gate = command("gate", argv=["test", "-e", str(host / "open")], creates=f"{host}/open", requires=[made])
        copy = t_several(name, paths=[str(host / "running")])
        shell = f"cp {host}/conf {host}/running"
        return [made, gate, copy, command("restart", shell=shell, restart_on=[made], requires=[gate], effects={})]

    machine.run(*nodes("one", "s"))
    assert machine.owed() == [("command:restart", "conf")]
    plan = machine.run(*nodes("one", "s"), mode="plan")
    ((restart,),) = [[each for each in plan.part("layers") if each["name"] == "command:restart"]]
    assert restart["triggered_by"] == ["conf"]
    (debt,) = next(frame["owed"] for frame in plan.frames if frame["type"] == "plan")
    assert (debt["run"], debt["cause"]) == ("r0001", "conf") and abs(time.time() - debt["since"]) < 60
    machine.run(*nodes("one", "s", conf="renamed"))
    assert machine.owed() == [("command:restart", "renamed")]
    (host / "open").touch()
    done = fine(machine.run(*nodes("one", "s", conf="renamed")))
    assert done.outcomes()["command:restart"] == "changed" and machine.owed() == []
    assert (host / "running").read_text() == "one"


# Former content and secrets


def test_destroy_restores_a_large_file_without_loading_it_into_memory(machine: Machine, host: Path) -> None:
    """The executor is forked from this process, so its memory starts at the size of this process."""
    block = os.urandom(1 << 20)
    with (host / "large").open("wb") as stream:
        for _ in range(50):
            stream.write(block)
    before = (host / "large").stat().st_size
    begins = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 10
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    fine(machine.run(file(str(host / "large"), content="small")))
    (kept,) = machine.kept()
    path = machine.place / "before" / kept
    assert path.stat().st_size == before and path.stat().st_mode & 0o777 == 0o600
    fine(machine.run(mode="destroy", yes=True))
    assert (host / "large").stat().st_size == before and machine.kept() == []
    with (host / "large").open("rb") as stream:
        assert all(stream.read(1 << 20) == block for _ in range(50))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(used, begins + (45 << 10))


@pytest.mark.parametrize("mask", [0, 0o077])
def test_kept_former_content_is_readable_only_by_its_owner(machine: Machine, host: Path, mask: int) -> None:
    """Both the kept copy and the restored file are private, and the content is in no other file."""
    (host / "key").write_text("former s3cret")
    (host / "key").chmod(0o600)
    old = os.umask(mask)
    try:
        fine(machine.run(file(str(host / "key"), content="ours")))
    finally:
        os.umask(old)
    (kept,) = machine.kept()
    assert (machine.place / "before" / kept).stat().st_mode & 0o777 == 0o600
    assert (machine.place / "before").stat().st_mode & 0o777 == 0o700
    assert b"s3cret" not in (machine.place / "ledger.db").read_bytes()
    fine(machine.run(mode="destroy", yes=True))
    assert (host / "key").stat().st_mode & 0o777 == 0o600 and (host / "key").read_text() == "former s3cret"


def test_the_ledger_and_the_journal_contain_no_secrets(machine: Machine, host: Path) -> None:
    """Attributes, identities and program output are masked, also when the run is interrupted."""
    canary = "c4n4ry-of-a-secret"
    nodes = [
        command("tell", shell=f"echo {canary} >&2; exit 3", unless="false"),
        t_lasting(str(host / canary), provides="lasting"),
    ]
    for kill in (0, 60):
        machine.run(*nodes, secrets={"token": canary}, keep_going=True, kill=kill)
        for folder, _, names in os.walk(machine.place):
            for name in names:
                assert canary.encode() not in Path(folder, name).read_bytes(), (kill, name)
    assert any("<secret token>" in str(row) for row in machine.query("SELECT claims FROM resource"))
    assert any("exit status 3" in reason for (reason,) in machine.query("SELECT reason FROM action"))


def test_a_very_long_undo_command_is_kept_and_run(machine: Machine, host: Path) -> None:
    padding = "# " + "x" * 5000
    undo = f"rm {host}/made\n{padding}"
    fine(machine.run(command("make", shell=f"touch {host}/made", creates=f"{host}/made", undo=undo)))
    fine(machine.run(mode="destroy", yes=True))
    assert not (host / "made").exists()


# Interrupted runs


def test_a_plan_and_the_next_run_both_report_an_interrupted_run(machine: Machine, host: Path) -> None:
    (host / "f").write_text("former")
    nodes = [
        file(str(host / "f"), content="ours"),
        file(str(host / "g"), content="x" * 500, requires=[f"file:{host}/f"]),
    ]
    (host / "f").write_text("former")
    for kill in range(1, 600, 13):
        cut = machine.run(*nodes, kill=kill)
        if cut.status == 0:
            break
        plan = machine.run(*nodes, mode="plan")
        assert plan.end["status"] == "ok"
        done = fine(machine.run(*nodes))
        if plan.warnings:
            assert plan.warnings == done.warnings and "was cut off" in done.warnings[0]
        assert (host / "f").read_text() == "ours" and set(machine.rows()) == {f"file:{host}/{name}" for name in "fg"}
        assert machine.journals() == []
        runs = machine.query("SELECT id, status FROM run WHERE ended IS NULL")
        assert runs == []
        fine(machine.run(mode="destroy", yes=True))
        assert (host / "f").read_text() == "former" and not (host / "g").exists() and machine.rows() == {}
        assert {*os.listdir(machine.place)} - {"before"} == {"ledger.db", "ledger.snapshot", "lock", "runs"}
    assert kill > 60


def test_the_next_destroy_finishes_an_interrupted_one(machine: Machine, host: Path) -> None:
    (host / "d").mkdir()
    (host / "d" / "f").write_text("former")
    before = snapshot(host)
    nodes = [directory(str(host / "d" / "new"), mode="0700"), file(str(host / "d" / "f"), content="ours")]
    nodes.append(file(str(host / "d" / "new" / "g"), content="x", requires=[nodes[0]]))
    for kill in range(1, 600, 13):
        fine(machine.run(*nodes))
        cut = machine.run(mode="destroy", yes=True, kill=kill)
        if cut.status == 0:
            break
        fine(machine.run(mode="destroy", yes=True))
        assert different(before, snapshot(host)) == {} and machine.rows() == {} and machine.kept() == []
    assert kill > 60


# State directories that can't be written


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Give a function that mounts a file system of the given size in KiB as the state directory."""
    if not ROOT:
        pytest.skip("not run on this machine: only root may mount")
    place = tmp_path / "state"

    def make(size: int) -> Path:
        place.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k,mode=0700", "tmpfs", str(place)], check=True)
        return place

    yield make
    while subprocess.run(["umount", str(place)], check=False, capture_output=True).returncode == 0:
        pass


def whole(machine: Machine) -> None:
    assert machine.query("PRAGMA integrity_check") == [("ok",)]
    assert machine.query("PRAGMA foreign_key_check") == []


def test_a_full_disk_fails_one_run_and_the_next_succeeds(
    machine: Machine, host: Path, small: Callable[[int], Path]
) -> None:
    """With a few KiB left, an apply succeeds or reports that the disk is full, and the next apply succeeds."""
    (host / "f").write_text("former" * 3000)
    nodes = [file(str(host / "f"), content="ours"), *[file(str(host / f"n{n}"), content="x") for n in range(20)]]
    before = snapshot(host)
    place = small(2048)
    fine(machine.run(file(str(host / "other"), content="x"), playbook="other"))
    seen: set[str] = set()
    for room in (0, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128):
        info = os.statvfs(place)
        free = info.f_bavail * info.f_frsize
        (place / "ballast").write_bytes(b"\0" * max(0, free - room * 1024))
        done = machine.run(*nodes)
        assert done.end["status"] in ("ok", "failed"), (room, done.end)
        error = done.end.get("error", "") or done.end.get("halted", "") or str(done.outcomes())
        if done.end["status"] == "failed":
            said = json.dumps([done.end, done.part("layers", "layer")])
            assert any(word in said for word in ("No space left", "is full")), (room, error)
        seen.add(done.end["status"])
        (place / "ballast").unlink()
        whole(machine)
        assert fine(machine.run(*nodes)).end
        assert (host / "f").read_text() == "ours" and len(machine.rows()) == 21
        fine(machine.run(mode="destroy", yes=True))
        after = snapshot(host)
        del after[str(host / "other")]
        assert different(before, after) == {}, room
        assert machine.kept() == [] and machine.journals() == []
    assert seen == {"ok", "failed"}


def test_a_run_does_not_begin_when_a_hook_cannot_be_stored(
    machine: Machine, host: Path, small: Callable[[int], Path]
) -> None:
    """A hook's files are stored completely or not at all, and the run reports why it did not begin."""
    place = small(1024)
    files = {"pre-reconcile": COUNT, "data": "x" * 200_000}
    counter = hook("counter", files, ["pre-reconcile"], schema={"value": {}, "again": {}})
    fine(machine.run())
    (place / "ballast").write_bytes(b"\0" * (1024 - 450) * 1024)
    (place / "more").write_bytes(b"\0" * 300_000)
    done = machine.run(file(str(host / "f"), content="x"), hooks=[counter])
    assert done.end["status"] == "failed" and "of the hook counter can't be stored" in done.end["error"], done.end
    assert "No space left" in done.end["error"] and not (host / "f").exists()
    (place / "more").unlink()
    fine(machine.run(file(str(host / "f"), content="x"), hooks=[counter]))
    assert os.listdir(place / "hooks") == [counter["digest"]] and counts(machine) == [{"value": 1, "again": 1}]


def test_a_read_only_state_directory_fails_apply_but_allows_plan(
    machine: Machine, host: Path, small: Callable[[int], Path]
) -> None:
    place = small(1024)
    node = file(str(host / "f"), content="x")
    for first in (True, False):
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        done = machine.run(node)
        assert done.end["status"] == "failed" and "ead-only" in done.end["error"], done.end
        assert not (host / "f").exists()
        assert machine.run(node, mode="plan").end["status"] == "ok"
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        if first:
            fine(machine.run())
    fine(machine.run(node))


def test_a_disk_that_fills_up_during_a_run_stops_it(machine: Machine, host: Path, small: Callable[[int], Path]) -> None:
    """The run begins no more actions, and the next run knows what was under way."""
    place = small(1024)
    fill = f"dd if=/dev/zero of={place}/ballast bs=1024 2>/dev/null; touch {host}/mark"
    cut = command("cut", shell=fill, creates=f"{host}/mark")
    after = [file(str(host / f"after{number}"), content="x", requires=[cut]) for number in range(30)]
    done = machine.run(cut, *after)
    (place / "ballast").unlink()
    assert done.end["status"] == "failed" and "full" in done.end["error"], done.end
    assert os.listdir(host) == ["mark"]
    again = fine(machine.run(cut, *after))
    assert any("was cut off" in text for text in again.warnings)
    assert len(machine.rows()) == 31


# Parallel runs


def test_a_second_run_at_the_same_time_is_refused(machine: Machine, host: Path) -> None:
    """The second run learns that the host is locked, does nothing, and is not in the ledger."""
    script = (
        f"touch {host}/begun; for n in $(seq 600); do [ -e {host}/go ] && break; sleep 0.05; done; touch {host}/mark"
    )
    slow = command("slow", shell=script, creates=f"{host}/mark")
    other = managed.started(machine.folder / "second")
    try:
        import threading

        found: list[Said] = []
        thread = threading.Thread(target=lambda: found.append(machine.run(slow)))
        thread.start()
        processes.wait_until((host / "begun").exists, 60, "the command to begin")
        second = Machine(machine.folder / "second", other.server, number=500)
        second.folder = machine.folder / "second"
        (second.folder / "state").symlink_to(machine.place)
        place = str(machine.place)
        order = {"type": "run", "mode": "apply", "run": "x1", "who": "bob@desk", "playbook": "site", "types": {}}
        said = second.folder / "said"
        request = {"place": place, "said": str(said), "frames": [order, {"type": "begin"}, {"type": "go"}], "kill": 0}
        assert other.server.stdin is not None and other.server.stdout is not None
        other.server.stdin.write(json.dumps(request) + "\n")
        other.server.stdin.flush()
        assert other.server.stdout.readline() == "0\n"
        assert b'"locked"' in said.read_bytes() or b"locked" in said.read_bytes()
        (host / "go").touch()
        thread.join()
        assert found[0].end["status"] == "ok"
        assert [run for (run,) in machine.query("SELECT id FROM run")] == ["r0001"]
    finally:
        managed.stop(other)


# Hooks that run on the host


COUNT = """#!/bin/sh
exec python3 -c '
import json, sys
given = json.load(sys.stdin)
value = given["hook"]["configuration"].get("value", 0)
print(json.dumps({"hook": {"configuration": {"update": {"value": value + 1, "again": value + 1}}}}))
'
"""


def counts(machine: Machine) -> Any:
    return [json.loads(each) for (each,) in machine.query("SELECT configuration FROM hook")]


def test_a_hooks_configuration_stays_consistent_when_the_run_is_killed(machine: Machine, host: Path) -> None:
    """The hook updates two values together. They never differ, and at most the update of the killed run is lost."""
    counter = hook("counter", {"pre-reconcile": COUNT}, ["pre-reconcile"], schema={"value": {}, "again": {}})
    node = file(str(host / "f"), content="x")
    fine(machine.run(node, hooks=[counter]))
    done = 1
    for kill in range(5, 300, 25):
        cut = machine.run(node, hooks=[counter], kill=kill)
        ((found),) = counts(machine)
        assert found["value"] == found["again"] and found["value"] in (done, done + 1)
        assert cut.status == -9 or found["value"] == done + 1
        done = found["value"]
        if cut.status == 0:
            break
    fine(machine.run(node, hooks=[dict(counter, configuration={"value": 100})]))
    assert counts(machine) == [{"value": 101, "again": 101}]  # the controller's own configuration has changed


def test_a_killed_run_never_stores_only_some_hook_files(machine: Machine, host: Path) -> None:
    files = {"pre-reconcile": COUNT, "lib/data": "x" * 1000}
    counter = hook("counter", files, ["pre-reconcile"], schema={"value": {}, "again": {}})
    node = file(str(host / "f"), content="x")
    for kill in range(1, 200, 4):
        cut = machine.run(node, hooks=[counter], kill=kill)
        folder = machine.place / "hooks" / counter["digest"] / "counter.hook"
        if folder.exists():
            there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
            assert there == set(files)
        if cut.status == 0:
            break
    fine(machine.run(node, hooks=[counter]))
    assert os.listdir(machine.place / "hooks") == [counter["digest"]]  # no incomplete directory is left
