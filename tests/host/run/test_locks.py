"""One run at a time on a host: a second run learns who holds the lock, and a crash leaves nothing that blocks a run."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

from statecfg.resources import command, file
from statecfg.run.options import Limits
from tests.host.run import rig
from tests.lab import Host, processes

LOCK = "/var/lib/statecfg/lock"


def test_a_second_run_is_refused_at_once_and_told_the_holder(target: Host, place: str) -> None:
    with rig.client(target, "held", place) as client:
        client.await_line("action-started command:wait-0")
        for mode in ("apply", "plan"):
            begun = time.monotonic()
            done = rig.run(target, rig.small_files(place, 2), mode)
            print(f"{mode}: refused after {time.monotonic() - begun:.2f} s: {done.host()['holder']}")
            assert done.host()["status"] == "locked"
            assert time.monotonic() - begun < 15
            holder = done.host()["holder"]
            assert re.fullmatch(r"[^@]+@.+", holder["who"])
            assert abs(time.time() - holder["since"]) < 60
            assert holder["run"]
            assert holder["pid"]
            error = done.host()["error"]
            assert error["summary"] == "another run has locked this host"
            assert error["detail"].startswith(f"{holder['who']}, since 20")
            assert "--lock-timeout" in error["hint"]
        target.path(f"{place}/go").touch()
        said = json.loads(client.end().splitlines()[-1])
        assert said["status"] == "ok"


def test_a_run_with_a_lock_timeout_waits_for_the_lock(target: Host, place: str) -> None:
    with rig.client(target, "held", place) as client:
        client.await_line("action-started command:wait-0")
        letting_go = threading.Timer(1.5, target.path(f"{place}/go").touch)
        letting_go.start()
        done = rig.run(target, rig.small_files(f"{place}-2", 2), limits=Limits(lock_timeout=60.0))
        letting_go.join()
        assert done.host()["status"] == "ok"
        assert done.seconds > 1


def test_eight_parallel_runs_never_overlap_on_one_host(target: Host, place: str) -> None:
    target.run(["mkdir", "-p", place])
    found: list[rig.Done] = []

    def work(number: int) -> None:
        script = f"echo begin {number} >> {place}/log; sleep 0.05; echo end {number} >> {place}/log"
        definition = rig.define(command(f"critical-{number}", shell=script))
        for _ in range(5):
            found.append(rig.run(target, definition, playbook=f"p{number}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = target.read(f"{place}/log").splitlines()
    won = [done for done in found if done.host()["status"] == "ok"]
    lost = [done for done in found if done.host()["status"] == "locked"]
    print(f"40 applies, 8 at once: {len(won)} ran, {len(lost)} refused")
    assert len(won) + len(lost) == 40
    assert len(lines) == 2 * len(won) > 0
    for begin, end in zip(lines[::2], lines[1::2], strict=True):
        assert (begin.split()[0], end.split()[0]) == ("begin", "end")
        assert begin.split()[1] == end.split()[1]
    assert all("@" in done.host()["holder"]["who"] for done in lost)


def test_a_killed_lock_holder_does_not_block_the_next_run(target: Host, place: str) -> None:
    with rig.client(target, "chain", place, "1", "4", "word") as client:
        client.await_line("action-started command:wait-0")
        for pid in rig.executors(target):
            os.kill(pid, signal.SIGKILL)
        begun = time.monotonic()
        done = rig.run(target, rig.small_files(place, 2))
        assert done.host()["status"] == "ok"
        assert any("was cut off; unfinished: command:wait-0" in text for text in done.host()["warnings"])
        print(f"{time.monotonic() - begun:.2f} s from the kill of the holder to the end of the next run")
        client.end()
    processes.wait_until(lambda: not rig.everything_ours(target), 25, "the processes of the killed run to end")


def test_stale_or_invalid_lock_text_does_not_block_a_run(target: Host, place: str) -> None:
    target.write(LOCK, json.dumps({"run": "old", "who": "nobody@nowhere", "since": 0, "pid": 1}), 0o600)
    assert rig.run(target, rig.small_files(place, 2)).host()["status"] == "ok"
    target.write(LOCK, "\0no text at all", 0o600)
    assert rig.run(target, rig.small_files(place, 2)).host()["status"] == "ok"


def test_a_daemon_started_by_a_run_does_not_keep_the_lock(target: Host, place: str) -> None:
    script = f"setsid sleep 60 & echo $! > {place}.pid"
    done = rig.run(target, rig.define(command("daemon", shell=script, creates=f"{place}.pid")))
    pid = int(target.read(f"{place}.pid"))
    try:
        assert done.host()["status"] == "ok"
        assert done.seconds < 20, "the second run waited for the lock"
        processes.wait_until(lambda: rig.lock_is_free(target), 20, "the lock to be free")
        open_files = target.run(["sh", "-c", f"readlink /proc/{pid}/fd/*"]).stdout
        assert "statecfg" not in open_files
    finally:
        target.run(["kill", str(pid)])


def test_a_lock_file_that_is_a_symlink_is_refused(target: Host, place: str) -> None:
    lock = target.path(LOCK)
    lock.unlink()
    lock.symlink_to("/srv/elsewhere")
    try:
        report = rig.run(target, rig.define(file(f"{place}.txt", content="x"))).host()
        assert report["status"] == "failed"
        assert LOCK in report["error"]["summary"]
        assert not Path(f"{target.root}/srv/elsewhere").exists()
    finally:
        lock.unlink()
