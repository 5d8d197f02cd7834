"""A connection that is cut at any byte is never taken for a result and never causes a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from statecfg.playbook.compile import Definition
from statecfg.resources import file
from statecfg.run import bundle
from tests.host.run import rig
from tests.host.run.relay import Relay
from tests.lab import Host, processes

TRUE_ENDS = ("unreachable", "unknown")
POINTS = 24


def cut_at(target: Host, definition: Definition, known_hosts: Path, k: int, way: str, reset: bool = False) -> rig.Done:
    """Apply through a relay that closes after k bytes "from" or "to" the host, and check the report."""
    cut = {"cut_after": k} if way == "from" else {"cut_sent": k}
    with Relay(target, reset=reset, **cut) as relay:
        seen = relay.seen(known_hosts)
        done = rig.run(seen, definition)
    report = done.host()
    assert report["status"] in TRUE_ENDS, (k, report)
    assert report["error"]["summary"], k
    assert report["error"]["hint"], (k, report)
    assert "Traceback" not in str(report), (k, report)
    return done


def total(target: Host, definition: Definition, known_hosts: Path) -> tuple[int, int]:
    """Return how many bytes an apply without changes sends to the host and receives from it."""
    with Relay(target) as relay:
        assert rig.run(relay.seen(known_hosts), definition).host()["status"] == "ok"
        return relay.sent(), relay.received()


def points(size: int, count: int, seed: int) -> list[int]:
    """Return the first offsets and some random offsets, all before the end of the conversation."""
    return sorted({200, 1500, *random.Random(seed).sample(range(200, size - 200), count - 2)})


@pytest.mark.parametrize("way", ["from", "to"])
def test_a_connection_cut_at_any_byte_is_never_taken_for_success(
    target: Host, place: str, tmp_path: Path, way: str
) -> None:
    definition = rig.small_files(place, 30)
    assert rig.run(target, definition).host()["status"] == "ok"
    sent, received = total(target, definition, tmp_path / "known_hosts")
    # The last packets only close a conversation that is already over.
    size = received - 600 if way == "from" else sent - 600
    seen: dict[str, int] = {}
    for k in points(size, POINTS, 7):
        with Relay(target, **({"cut_after": k} if way == "from" else {"cut_sent": k})) as relay:
            report = rig.run(relay.seen(tmp_path / "known_hosts"), definition).host()
        assert report["status"] in (*TRUE_ENDS, "ok"), (k, report)
        assert report["status"] != "ok" or set(report["summary"]) == {"unchanged"}
        if report["status"] != "ok":
            assert report["error"]["summary"], k
            assert report["error"]["hint"], (k, report)
            assert "Traceback" not in str(report), (k, report)
        seen[report["status"]] = seen.get(report["status"], 0) + 1
    print(f"cut after k bytes {way} the host, {POINTS} k below {size}: {seen}")
    assert seen.get("ok", 0) <= 3
    processes.wait_until(lambda: rig.lock_is_free(target), 20, "the lock to be free")


def test_an_interrupted_executor_upload_leaves_no_partial_cache_file(target: Host, place: str, tmp_path: Path) -> None:
    definition = rig.small_files(place, 2)
    assert rig.run(target, definition).host()["status"] == "ok"
    kept = target.path("/var/lib/statecfg/cache") / bundle.build(definition.types).sha256
    size = kept.stat().st_size
    for k in points(size, 8, 11):
        for file_name in kept.parent.glob(f"{kept.name}*"):  # the compiled form, too
            file_name.unlink()
        cut_at(target, definition, tmp_path / "known_hosts", 3000 + k, "to")
        assert not kept.exists() or kept.stat().st_size == size
    assert rig.run(target, definition).host()["status"] == "ok"
    assert kept.stat().st_size == size


def test_an_interrupted_content_upload_leaves_no_partial_file(target: Host, place: str, tmp_path: Path) -> None:
    content = bytes(random.Random(1).randbytes(300_000))
    source = tmp_path / "source"
    source.write_bytes(content)
    definition = rig.define(file(f"{place}.bin", source=str(source)))
    for k in (20_000, 100_000, 250_000):
        done = cut_at(target, definition, tmp_path / "known_hosts", k, "to")
        assert done.host()["status"] == "unreachable"
        assert not target.path(f"{place}.bin").exists()
    assert rig.run(target, definition).host()["status"] == "ok"
    left = [path.name for path in target.path("/var/lib/statecfg").iterdir() if path.name.startswith("spool")]
    assert not left


def test_a_connection_reset_is_reported_quickly(target: Host, place: str, tmp_path: Path) -> None:
    definition = rig.small_files(place, 400)
    assert rig.run(target, definition, "plan").host()["status"] == "ok"
    done = cut_at(target, definition, tmp_path / "known_hosts", 6000, "from", reset=True)
    assert re.search(r"connection|reset|closed", done.host()["error"]["summary"])
    assert done.seconds < 14  # before the deadline for a silent host
    assert rig.run(target, definition).host()["status"] == "ok"


def test_a_connection_with_one_second_of_delay_succeeds(target: Host, place: str, tmp_path: Path) -> None:
    with Relay(target, delay=0.5) as relay:
        done = rig.run(relay.seen(tmp_path / "known_hosts"), rig.small_files(place, 3))
    assert done.host()["status"] == "ok"
    print(f"with 1 s of round trip: {done.seconds:.1f} s for a first apply")
