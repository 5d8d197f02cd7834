"""Kills the executor at each of its file system calls, and checks the host and the next run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from statecfg.resources import file
from tests.host.run import rig
from tests.lab import Host

CALLS = "openat,write,fchmod,fchown,fsync,rename,renameat,renameat2,unlink,unlinkat,ftruncate,mkdir,mkdirat,close"
TRACED = "/srv/traced-python"
FILES = 6  # in a batch
OLD, NEW = "old\n" * 3000, "new\n" * 4000


def python(host: Host, options: str) -> dict[str, str]:
    """Return inventory attributes that make the host run Python under strace with these options."""
    host.write(TRACED, f'#!/bin/sh\nexec strace -f -qq {options} python3 "$@"\n', 0o755)
    return {"python": TRACED}


def definition(place: str) -> rig.Definition:
    """Return a definition that replaces a file and sets its mode, owner and backup."""
    return rig.define(file(f"{place}/file", content=NEW, mode="0640", owner="root", backup="~"))


def reset(host: Host, place: str) -> None:
    """Restore the file's old content and remove its backup."""
    host.write(f"{place}/file", OLD)
    host.path(f"{place}/file~").unlink(missing_ok=True)


def batch(place: str) -> rig.Definition:
    """Return a definition of files that are written together: the first half is replaced, the others are new."""
    return rig.define(*(file(f"{place}/{number}", content=NEW, mode="0640") for number in range(FILES)))


def reset_batch(host: Host, place: str) -> None:
    """Restore the old content of the first half of the batch, and remove the others."""
    for number in range(FILES):
        if number < FILES // 2:
            host.write(f"{place}/{number}", OLD)
        else:
            host.path(f"{place}/{number}").unlink(missing_ok=True)


def found(
    host: Host,
    place: str,
    define: Callable[[str], rig.Definition] = definition,
    reset: Callable[[Host, str], None] = reset,
) -> list[tuple[str, int]]:
    """Return each call from the opening of the journal on, with its number among the calls of the same name."""
    reset(host, place)
    log = f"{place}/trace"
    done = rig.run(host, define(place), inventory=python(host, f"-o {log} -e trace={CALLS}"))
    assert done.host()["status"] == "ok", done.host()
    counts: dict[str, int] = {}
    points: list[tuple[str, int]] = []
    begun = False
    for line in host.read(log).splitlines():
        match = re.match(r"\d+ +(?:<\.\.\. )?(\w+)", line)
        if match is None or "resumed" in line:
            continue
        call = match[1]
        counts[call] = counts.get(call, 0) + 1
        begun = begun or "runs/" in line
        if begun and not (call == "write" and '"type' in line):
            points.append((call, counts[call]))
    return points


def kill_at(host: Host, place: str, call: str, number: int) -> str:
    """Apply, kill the executor at one call, and check the file and the next run. Return the reported status."""
    reset(host, place)
    inject = f"-o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={number}"
    cut = rig.run(host, definition(place), inventory=python(host, inject))
    now = host.read(f"{place}/file")
    case = f"killed at {call} number {number}"
    assert now in (OLD, NEW), f"{case}: the file is incomplete: {len(now)} bytes"
    backup = host.path(f"{place}/file~")
    assert not backup.exists() or backup.read_text() == OLD, f"{case}: the backup is incomplete"
    report = cut.host()
    outcome = cut.outcomes().get(f"file:{place}/file")
    if report["status"] != "ok":
        assert report["status"] in ("unknown", "unreachable"), (case, report)
        assert outcome != "changed" or now == NEW, case
        assert outcome != "skipped" or now == OLD, (case, report)
    again = rig.run(host, definition(place))
    assert again.host()["status"] == "ok", (case, again.host())
    assert host.read(f"{place}/file") == NEW, case
    assert not rig.litter(host, place), case
    return str(report["status"])


def kill_batch_at(host: Host, place: str, call: str, number: int) -> str:
    """Apply a batch, kill the executor at one call, check each file and the next run. Return the reported status."""
    reset_batch(host, place)
    inject = f"-o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={number}"
    cut = rig.run(host, batch(place), inventory=python(host, inject))
    report, outcomes = cut.host(), cut.outcomes()
    case = f"killed at {call} number {number}"
    for index in range(FILES):
        path = host.path(f"{place}/{index}")
        before = OLD if index < FILES // 2 else None
        now = path.read_text() if path.exists() else None
        assert now in (before, NEW), f"{case}: file {index} is incomplete"
        assert now is None or now == OLD or path.stat().st_mode & 0o777 == 0o640, case
        outcome = outcomes[f"file:{place}/{index}"]
        if report["status"] != "ok":
            assert outcome in ("changed", "unknown", "skipped"), (case, outcome)
            assert outcome != "changed" or now == NEW, case
            assert outcome != "skipped" or now == before, (case, report)
    again = rig.run(host, batch(place))
    assert again.host()["status"] == "ok", (case, again.host())
    assert {host.read(f"{place}/{index}") for index in range(FILES)} == {NEW}, case
    assert not rig.litter(host, place), case
    return str(report["status"])


def all_points(host: Host, place: str, every: int = 1) -> Iterator[tuple[str, int, str]]:
    """Kill the executor at every n-th call; yield each call with the reported status."""
    for call, number in found(host, place)[::every]:
        yield call, number, kill_at(host, place, call, number)
