"""The cost of a host's hook: one process for each call, and nothing more."""

from __future__ import annotations

import re
from typing import Any

import pytest

from statecfg.run import fleet
from tests.host.remote.managed import hook
from tests.host.run import points, rig
from tests.lab import Host

FILES = 12


def traced(host: Host, place: str, number: int, hooks: list[Any]) -> tuple[int, int]:
    """Apply under strace; return how many processes started and how many programs were executed."""
    log = f"{place}/trace-{number}"
    host.run(["mkdir", "-p", place])
    options = f"-o {log} -e trace=execve,fork,vfork,clone,clone3"
    target = rig.inventoried(host, **points.python(host, options))
    definition = rig.small_files(f"{place}/{number}", FILES)
    access, around = fleet.Access(rig.settings(host)), fleet.RunHooks({host.name: hooks})
    given = fleet.Options(mode="apply", access=access, hooks=around)
    report = fleet.run([fleet.Job(target, definition, f"cost-{number}")], given, lambda event: None)["hosts"][host.name]
    assert report["status"] == "ok", report
    lines = host.read(log).splitlines()
    begun = [line for line in lines if re.search(r"(fork|clone3?)[ (].* = \d+$", line) and "CLONE_THREAD" not in line]
    return len(begun), sum('execve("' in line and "= -1" not in line for line in lines)


def test_each_hook_call_starts_exactly_one_process(target: Host, place: str) -> None:
    if target.run(["sh", "-c", "command -v strace"], check=False).returncode:
        pytest.skip("not run on this machine: there is no strace (Debian: strace)")
    program = dict.fromkeys(("pre-reconcile", "post-create"), "#!/bin/sh\nexit 0\n")
    files = {"types": ["file"]}
    plain = traced(target, place, 0, [])
    one = traced(target, place, 1, [hook("one", program, ["post-create"], select=files)])
    both = traced(target, place, 2, [hook("both", program, ["pre-reconcile", "post-create"], select=files)])
    none = traced(target, place, 3, [hook("none", program, ["post-create"], select={"types": ["user"]})])
    print(f"processes, programs: {plain}; with a hook of {FILES} files {one}, of two events of each {both}")
    assert (one[0] - plain[0], one[1] - plain[1]) == (FILES, FILES)
    assert (both[0] - plain[0], both[1] - plain[1]) == (2 * FILES, 2 * FILES)
    assert none == plain
