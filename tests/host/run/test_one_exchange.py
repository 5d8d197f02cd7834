"""One exchange per host: its round trips, its connection, and what is sent again in a second run."""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
import time
from pathlib import Path

import pytest

from statecfg.resources import directory, file
from statecfg.run import bundle
from tests.host.run.relay import Relay
from tests.host.run.rig import define, executors, run, settings, small_files
from tests.lab import Host

DELAY = 1.0  # delay of a round trip in seconds, long enough to be measured on a busy machine


def round_trips(target: Host, definition: object, known_hosts: Path) -> float:
    """Return the round trips of an apply without changes, from authentication to the end: time divided by delay."""
    with Relay(target, delay=DELAY / 2) as slow:
        seen = slow.seen(known_hosts)
        done = run(seen, definition, connect=settings(seen))
        assert done.host()["status"] == "ok"
        assert set(done.host()["summary"]) == {"unchanged"}
        connected = next(when for when, event in done.events if event.name == "connected")
        finished = next(when for when, event in done.events if event.name == "finished")
    with Relay(target) as fast:
        seen = fast.seen(known_hosts)
        quick = run(seen, definition, connect=settings(seen))
        base = next(w for w, e in quick.events if e.name == "finished") - next(
            w for w, e in quick.events if e.name == "connected"
        )
    return (finished - connected - base) / DELAY


@pytest.mark.parametrize("count", [1, 1000])
def test_a_converged_host_takes_three_round_trips_for_any_size(
    target: Host, place: str, count: int, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    definition = small_files(place, count)
    assert run(target, definition).host()["status"] == "ok"
    trips = round_trips(target, definition, tmp_path / "known_hosts")
    for _ in range(2):  # a busy machine may delay some of the measurements
        if trips > 3.2:
            trips = min(trips, round_trips(target, definition, tmp_path / "known_hosts"))
    record_property("round_trips", round(trips, 2))
    print(f"round trips with {count} files: {trips:.2f}")
    assert trips <= 3.2


def test_a_run_uses_one_connection_with_one_channel_and_no_sftp(make_light_hosts: object, tmp_path: Path) -> None:
    (host,) = make_light_hosts(1)
    text = host.read("/etc/ssh/sshd_config")
    host.write("/etc/ssh/sshd_config", "LogLevel DEBUG1\nMaxSessions 1\n" + text)
    os.kill(host.pid, signal.SIGHUP)
    time.sleep(0.5)
    assert run(host, small_files("/srv/one", 20)).host()["status"] == "ok"
    before = len(host.log.read_text(errors="replace"))
    assert run(host, small_files("/srv/one", 20)).host()["status"] == "ok"
    log = host.log.read_text(errors="replace")[before:]
    assert len(re.findall(r"Accepted publickey", log)) == 1
    assert len(re.findall(r"session_new: session 0|server_input_channel_req: .* request exec", log)) >= 1
    assert len(re.findall(r"request exec", log)) == 1, log
    assert "subsystem" not in log


def test_content_is_sent_only_when_the_host_lacks_it(target: Host, place: str, tmp_path: Path) -> None:
    definition = define(file(f"{place}.txt", content="0123456789abcdef" * 4096))
    with Relay(target) as relay:
        seen = relay.seen(tmp_path / "known_hosts")
        first = run(seen, definition)
        assert (first.host()["status"], first.outcomes()) == ("ok", {f"file:{place}.txt": "changed"})
        sent = [event.data["bytes"] for _, event in first.events if event.name == "uploading"]
        assert 65536 in sent
        begun = time.monotonic()
        second = run(seen, definition)
        assert second.outcomes() == {f"file:{place}.txt": "unchanged"}
        assert "uploading" not in second.event_names()
        assert relay.sent(begun) < 20_000


def test_only_differing_files_of_a_tree_are_sent(target: Host, place: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    for number in range(1000):
        (tree / f"sub/{number}").write_bytes(os.urandom(500))
    (tree / "large").write_bytes(os.urandom(100_000))
    (tree / "skipped.log").write_bytes(os.urandom(5000))

    def synced() -> tuple[str, list[int], int]:
        """Apply the tree; return its outcome, the sizes of the sent files, and the number of all sent bytes."""
        definition = define(directory(place, source=str(tree), purge=True, exclude=["*.log"]))
        with Relay(target) as relay:
            begun = time.monotonic()
            done = run(relay.seen(tmp_path / "known_hosts"), definition)
            assert done.host()["status"] == "ok", done.host()
            uploads = [event.data["bytes"] for _, event in done.events if event.name == "uploading"]
            return done.outcomes()[f"directory:{place}"], uploads, relay.sent(begun)

    synced()  # the host may not have the executor yet
    (tree / "sub/7").write_bytes(os.urandom(400))
    (tree / "new").write_bytes(os.urandom(300))
    target.write(f"{place}/sub/8", "by hand")
    target.write(f"{place}/sub/stray", "by hand")
    target.write(f"{place}/host.log", "kept")
    outcome, uploads, sent = synced()
    assert (outcome, sorted(uploads)) == ("changed", [300, 400, 500])
    assert sent < 150_000  # names and digests of 1,000 files, and three contents
    assert synced()[:2] == ("unchanged", [])
    assert not target.path(f"{place}/sub/stray").exists()
    assert not target.path(f"{place}/skipped.log").exists()
    assert target.read(f"{place}/host.log") == "kept"


def test_content_shared_by_many_files_is_sent_once(target: Host, place: str) -> None:
    files = [file(f"{place}-{i}", content="same " * 4096) for i in range(5)]
    done = run(target, define(*files))
    assert done.host()["status"] == "ok"
    assert [e.data["bytes"] for _, e in done.events if e.name == "uploading"].count(5 * 4096) == 1


def peak(pid: int) -> int:
    """Return the peak resident memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) << 10 if found else 0


def test_sending_a_large_file_needs_little_memory(
    target: Host, place: str, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    size = 50 << 20
    source = tmp_path / "large"
    with source.open("wb") as stream:
        for number in range(size >> 20):
            stream.write(bytes([number]) * (1 << 20))
    highest = 0
    over = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not over.wait(0.05):
            for pid in executors(target):
                try:
                    highest = max(highest, peak(pid))
                except FileNotFoundError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    try:
        done = run(target, define(file(f"{place}.bin", source=str(source))))
    finally:
        over.set()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    assert done.host()["status"] == "ok", done.host()
    assert target.path(f"{place}.bin").read_bytes() == source.read_bytes()
    print(f"50 MiB in {done.seconds:.2f} s; executor {highest >> 20} MiB at most, client {after - before >> 20} more")
    assert 0 < highest < 48 << 20
    assert after - before < 24 << 20


def test_content_that_changes_while_it_is_sent_is_refused(target: Host, place: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"a" * 100_000)
    definition = define(file(f"{place}.txt", source=str(source)))
    source.write_bytes(b"b" * 100_000)
    report = run(target, definition).host()
    assert report["status"] == "unreachable"
    assert "changed after statecfg read it" in report["error"]["summary"]
    assert report["error"]["detail"] == "Nothing was changed."
    assert not target.path(f"{place}.txt").exists()
    source.write_bytes(b"short")
    assert "changed after" in run(target, definition).host()["error"]["summary"]


def test_two_builds_of_the_bundle_are_the_same() -> None:
    first = bundle.build({"file", "directory"})
    bundle._build.cache_clear()
    assert bundle.build({"directory", "file"}) == first
