"""Programs of exec hooks: what they get. Bad programs have limits for time and memory and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from statecfg.remote.hooks import run as hook_run
from statecfg.remote.hooks.run import Ended
from statecfg.remote.machine import process
from tests import ROOT
from tests.host.remote.machine.test_process import alive
from tests.lab.processes import wait_until

EVENT = "node-booted"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only half a second between TERM and KILL, instead of five seconds."""
    monkeypatch.setattr(process, "GRACE", 0.5)


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """Give a function that returns the living processes whose ids are in `pids`. Kill them at the end of the test."""

    def read() -> list[int]:
        path = tmp_path / "pids"
        return [int(word) for word in path.read_text().split() if alive(int(word))] if path.exists() else []

    yield read
    for pid in read():
        os.kill(pid, signal.SIGKILL)


def write(folder: Path, script: str) -> None:
    program = folder / EVENT
    program.write_text(script)
    program.chmod(0o755)


def call(folder: Path, script: str, deadline: float = 60.0, given: object = None) -> Ended:
    write(folder, script)
    return hook_run.invoke(str(folder), EVENT, {"given": given}, deadline)


def test_a_program_gets_its_input_and_a_clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    folder = tmp_path / "odd name.hook"
    folder.mkdir()
    (folder / "beside").write_text("here")
    done = call(folder, '#!/bin/sh\ncat; echo; echo "$#"; pwd; cat beside; echo; env\n', given="é\n\ud800")
    lines = done.stdout.decode().splitlines()
    assert lines[:4] == ['{"given":"é\\n?"}', "0", str(folder), "here"]
    values = dict(line.split("=", 1) for line in lines[4:])
    assert values["STATECFG_HOOK"] == EVENT
    assert "SECRET" not in values
    assert done.given.decode() == lines[0]


def test_given_directories_come_before_the_path(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "greet").write_text("#!/bin/sh\necho hello\n")
    (tools / "greet").chmod(0o755)
    (tmp_path / EVENT).write_text("#!/bin/sh\ngreet\n")
    (tmp_path / EVENT).chmod(0o755)
    assert hook_run.invoke(str(tmp_path), EVENT, {}, 20, [str(tools)]).stdout == b"hello\n"
    assert hook_run.invoke(str(tmp_path), EVENT, {}, 20).exit_status == 127


def test_a_script_without_an_interpreter_line_runs_in_the_shell(tmp_path: Path) -> None:
    assert call(tmp_path, "echo from the shell\n").stdout == b"from the shell\n"


def test_a_missing_interpreter_is_named(tmp_path: Path) -> None:
    done = call(tmp_path, "#! /something/that/does/not/exist\n")
    assert done.exit_status == 127
    assert done.reason == (
        f"{tmp_path}/{EVENT} can't be started: No such file or directory "
        "(its interpreter /something/that/does/not/exist is missing)"
    )


def test_carriage_returns_in_a_script_are_reported(tmp_path: Path) -> None:
    done = call(tmp_path, "#!/bin/sh\r\necho hello\r\n")
    assert done.exit_status == 127
    assert str(done.reason).endswith("No such file or directory (its lines end in CR LF, and must end in LF)")


def test_a_missing_or_invalid_program_fails_to_start(tmp_path: Path) -> None:
    assert hook_run.invoke(str(tmp_path), EVENT, {}, 20).exit_status == 127
    assert call(tmp_path, "\0\1\2 nothing that runs").exit_status in (126, 127)


def test_a_missing_command_inside_a_script_is_reported_on_stderr(tmp_path: Path) -> None:
    done = call(tmp_path, "#!/bin/bash\nset -e\nsomecommandthatdoesnotexist\n")
    assert done.exit_status == 127
    assert b"somecommandthatdoesnotexist: command not found" in done.stderr


@pytest.mark.parametrize("script", ["exit 0", "exec <&-; sleep 0.3; exit 0", "head -c 10 >/dev/null; exit 0"])
def test_a_program_need_not_read_its_input(tmp_path: Path, script: str) -> None:
    started = time.monotonic()
    done = call(tmp_path, f"#!/bin/sh\n{script}\n", given="x" * 1_000_000)
    assert (done.exit_status, done.reason) == (0, "")
    assert time.monotonic() - started < 20


def test_large_input_and_output_pass_at_the_same_time(tmp_path: Path) -> None:
    done = call(tmp_path, "#!/bin/sh\nexec cat\n", given="x" * 1_000_000)
    assert json.loads(done.stdout) == {"given": "x" * 1_000_000}


STUBBORN = "trap '' TERM; echo $$ >>pids; while :; do sleep 0.1; done"
HANGS = [
    "echo $$ >>pids; exec sleep 1000",
    STUBBORN,
    f"({STUBBORN}) & {STUBBORN}",
    "setsid sh -c 'echo $$ >>pids; exec sleep 1000' & echo $$ >>pids; exec sleep 1000",
    "exec <&- >&- 2>&-; echo $$ >>pids; exec sleep 1000",
]


@pytest.mark.usefixtures("hasty")
def test_hanging_programs_are_ended_at_the_deadline(tmp_path: Path, left: Callable[[], list[int]]) -> None:
    def hang(folder: Path) -> Ended:
        return hook_run.invoke(str(folder), EVENT, {"given": "x" * 1_000_000}, 4)

    folders = [tmp_path / str(number) for number in range(len(HANGS))]
    # Write all programs before starting one: a forked process would keep them open for writing ("text file busy").
    for folder, script in zip(folders, HANGS, strict=True):
        folder.mkdir()
        write(folder, "#!/bin/sh\n" + script.replace(">>pids", ">>../pids") + "\n")
    started = time.monotonic()
    with ThreadPoolExecutor(len(HANGS)) as pool:
        ended = list(pool.map(hang, folders))
    assert [done.reason for done in ended] == ["still running after 4 s, stopped"] * len(HANGS)
    assert time.monotonic() - started < 24
    assert len((tmp_path / "pids").read_text().split()) == 7
    wait_until(lambda: left() == [], 20, "all processes to end")


STAYS = [
    "sh -c 'echo $$ >>pids; exec sleep 1000' &",
    "sh -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 </dev/null &",
    "setsid sh -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 </dev/null &",
    "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >>pids; exec sleep 1000' &) &",
]


@pytest.mark.parametrize("script", STAYS)
def test_background_processes_end_with_the_program(tmp_path: Path, left: Callable[[], list[int]], script: str) -> None:
    started = time.monotonic()
    done = call(tmp_path, f"#!/bin/sh\n{script}\nwhile [ ! -s pids ]; do sleep 0.01; done; echo '{{}}'\n")
    assert (done.exit_status, done.stdout, done.reason) == (0, b"{}\n", "")
    assert time.monotonic() - started < 20
    wait_until(lambda: left() == [], 20, "the process to end")


def test_a_killed_program_has_a_negative_exit_status(tmp_path: Path) -> None:
    done = call(tmp_path, "#!/bin/sh\nkill -9 $$\n")
    assert (done.exit_status, done.reason) == (-9, "")


def test_output_up_to_the_limits_is_kept_whole(tmp_path: Path) -> None:
    done = call(tmp_path, "#!/bin/sh\nhead -c 1048576 /dev/zero & head -c 262144 /dev/zero >&2; wait\n")
    assert (len(done.stdout), len(done.stderr), done.reason) == (1 << 20, 256 << 10, "")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("head -c 1048577 /dev/zero", "output limit: more than 1048576 bytes on stdout, stopped"),
        ("head -c 262145 /dev/zero >&2", "output limit: more than 262144 bytes on stderr, stopped"),
    ],
)
def test_one_byte_above_the_limit_stops_the_program(tmp_path: Path, script: str, reason: str) -> None:
    assert call(tmp_path, f"#!/bin/sh\n{script}\n").reason == reason


FLOODED = """
import resource, sys
from statecfg.remote.hooks import run as hook_run
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
done = hook_run.invoke(sys.argv[1], "node-booted", {}, 60)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, done.reason)
"""


@pytest.mark.parametrize(
    "script",
    [
        "trap '' PIPE; head -c 1G /dev/zero & head -c 1G /dev/zero >&2; wait",
        "head -c 1G /dev/zero >&2",
        "yes '{}'",
    ],
)
def test_a_flood_of_output_is_cut_off_in_little_memory(tmp_path: Path, script: str) -> None:
    program = tmp_path / EVENT
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    started = time.monotonic()
    argv = [sys.executable, "-c", FLOODED, str(tmp_path)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=ROOT, check=True)
    grown, reason = ran.stdout.strip().split(" ", 1)
    assert reason.startswith("output limit: more than ")
    assert int(grown) < 16 << 10  # KiB
    assert time.monotonic() - started < 40


def test_no_file_descriptor_is_leaked(tmp_path: Path) -> None:
    call(tmp_path, "#!/bin/sh\nexit 0\n")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        call(tmp_path, "#!/bin/sh\nsleep 1000 & exit 0\n")
    assert len(os.listdir("/proc/self/fd")) == before
