"""Child processes: every wait ends, no process is left over, and large output does no harm."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from statecfg.remote.machine import process
from statecfg.remote.machine.process import CHILDREN, KEPT, run
from tests.lab.processes import wait_until

ROOT = os.geteuid() == 0
PYTHON = sys.executable


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """Give a function that returns the process ids in the file $PIDS; the fixture kills these processes at the end."""
    path = tmp_path / "pids"

    def read() -> list[int]:
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    yield read
    for pid in read():
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time between TERM and KILL to half a second."""
    monkeypatch.setattr(process, "GRACE", 0.5)


def shell(script: str, tmp_path: Path, timeout: float = 30.0) -> process.ProcessResult:
    return run(["/bin/sh", "-c", script], timeout, env={"PIDS": str(tmp_path / "pids")})


def test_run_returns_output_and_exit_status() -> None:
    outcome = run(["/bin/sh", "-c", "echo one; echo two >&2; exit 3"], 10)
    assert (outcome.status, outcome.output, outcome.reason) == (3, b"one\ntwo\n", "")
    outcome = run(["/bin/sh", "-c", "echo one; echo two >&2"], 10, apart=True)
    assert (outcome.status, outcome.output, outcome.errors) == (0, b"one\n", b"two\n")


def test_run_returns_a_negative_status_for_a_signal() -> None:
    assert run(["/bin/sh", "-c", "kill -9 $$"], 10).status == -9


@pytest.mark.parametrize("argv", [["/no/such/program"], ["no-such-program"], ["/etc/passwd"], ["/tmp"], ["a\0b"]])
def test_run_reports_a_program_that_cannot_be_started(argv: list[str]) -> None:
    outcome = run(argv, 10)
    assert outcome.status in (126, 127)
    assert "can't be started" in outcome.reason


def test_run_reports_a_missing_working_directory() -> None:
    outcome = run(["true"], 10, cwd="/no/such/place")
    assert outcome.reason == "true can't be started in /no/such/place: No such file or directory"


def test_a_child_process_does_not_inherit_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/tmp")
    said = run(["/usr/bin/env"], 10, env={"GIVEN": "yes"}).output.decode()
    names = {line.split("=")[0] for line in said.splitlines()}
    assert names == {"PATH", "LANG", "HOME", "GIVEN", process.MARK}
    assert f"HOME={Path('~').expanduser()}" in said or "HOME=/" in said


def test_a_child_process_inherits_no_file_descriptors(tmp_path: Path) -> None:
    with open(tmp_path / "held", "w") as held:
        os.set_inheritable(held.fileno(), True)
        said = run(["/bin/ls", "/proc/self/fd"], 10).output.split()
    assert sorted(map(int, said)) == [0, 1, 2, 3]  # 3 is the directory that ls reads


def test_a_child_process_reads_the_given_input_or_nothing() -> None:
    assert run(["cat"], 10).output == b""
    assert run(["cat"], 10, input=b"a" * 300_000).output == b"a" * 300_000


def test_run_ignores_a_program_that_closes_its_input() -> None:
    outcome = run(["/bin/sh", "-c", "exec <&-; sleep 0.2; exit 4"], 10, input=b"x" * 1_000_000)
    assert (outcome.status, outcome.reason) == (4, "")
    assert run(["true"], 10, input=b"x" * 1_000_000).status == 0


def test_run_times_out_when_a_program_never_reads_its_input(hasty: None) -> None:
    assert "still running after 0.5 s" in run(["sleep", "30"], 0.5, input=b"x" * 1_000_000).reason


def test_run_stops_a_program_after_its_timeout() -> None:
    before = time.monotonic()
    outcome = run(["sleep", "30"], 0.3)
    assert (outcome.status, outcome.reason) == (-15, "still running after 0.3 s, stopped")
    assert time.monotonic() - before < 20


def test_run_kills_a_program_that_ignores_term(hasty: None) -> None:
    before = time.monotonic()
    outcome = run(["/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], 0.3)
    assert outcome.status == -9
    assert time.monotonic() - before < 20


DAEMON = f"""
{PYTHON} - <<'END'
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(os.environ["PIDS"], "a").write("%d " % os.getpid())
        for n in range(3):
            os.close(n)
        time.sleep(60)
    os._exit(0)
END
"""


LEAVING = ["sleep 60 & echo $! >> $PIDS", "setsid sleep 60 & echo $! >> $PIDS", DAEMON]


def test_run_stops_all_descendants_after_the_timeout(
    tmp_path: Path, pids: Callable[[], list[int]], hasty: None
) -> None:
    with ThreadPoolExecutor(len(LEAVING)) as pool:
        outcomes = list(pool.map(lambda leaving: shell(leaving + "\nsleep 30", tmp_path, 4), LEAVING))
    assert ["still running" in outcome.reason for outcome in outcomes] == [True] * len(LEAVING)
    assert len(pids()) == len(LEAVING)
    wait_until(lambda: not any(map(alive, pids())), 20, "the child processes to end")


@pytest.mark.parametrize("way", ["", "setsid "])
def test_run_does_not_wait_for_a_background_process(tmp_path: Path, pids: Callable[[], list[int]], way: str) -> None:
    """The child keeps the pipe open. The result comes at once, and the child keeps running, as a daemon must."""
    before = time.monotonic()
    outcome = shell(f"echo said; {way}sleep 60 & echo $! > $PIDS", tmp_path)
    assert time.monotonic() - before < 20
    assert (outcome.status, outcome.output) == (0, b"said\n")
    assert alive(pids()[0])


def test_run_does_not_wait_for_endless_background_output(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    before = time.monotonic()
    assert shell("yes & echo $! > $PIDS", tmp_path).status == 0
    assert time.monotonic() - before < 20


def test_run_keeps_only_the_end_of_very_large_output() -> None:
    """Both streams write at once. The run ends, keeps little output and reports how much it cut."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = "head -c 50000000 /dev/zero >&2 & head -c 50000000 /dev/zero; wait; echo the end"
    outcome = run(["/bin/sh", "-c", script], 60)
    assert outcome.status == 0
    assert len(outcome.output) <= KEPT + 65536 + 100
    assert outcome.output.startswith(b"[%d bytes cut]\n" % outcome.cut)
    assert outcome.output.endswith(b"the end\n")
    assert outcome.cut + len(outcome.output.split(b"]\n", 1)[1]) == 100_000_008
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_slow_listener_receives_all_output() -> None:
    """The last output is still read, even if the listener needs a long time for each piece."""
    heard: list[bytes] = []

    def listen(piece: bytes) -> None:
        heard.append(piece)
        time.sleep(0.3)

    outcome = run(["/bin/sh", "-c", "head -c 120000 /dev/zero; sleep 0.1; echo end"], 20, listen=listen)
    assert len(outcome.output) == 120_004
    assert b"".join(heard) == outcome.output


def test_run_waits_for_a_program_that_closed_its_output() -> None:
    before = time.monotonic()
    assert run(["/bin/sh", "-c", "exec >&- 2>&-; sleep 0.4; exit 5"], 60).status == 5
    assert time.monotonic() - before < 20


@pytest.fixture
def stopping() -> Iterator[threading.Timer]:
    timer = threading.Timer(0.3, CHILDREN.stop)
    timer.start()
    yield timer
    timer.cancel()
    timer.join()
    CHILDREN.stopping = False


def test_stopping_the_run_stops_its_child_process(stopping: threading.Timer) -> None:
    before = time.monotonic()
    assert run(["sleep", "30"], 60).reason == "stopped: the run was cut off"
    assert time.monotonic() - before < 20


def test_stopping_the_run_spares_an_uninterruptible_child(stopping: threading.Timer, tmp_path: Path) -> None:
    go = tmp_path / "go"

    def let_go() -> None:
        wait_until(lambda: CHILDREN.stopping and CHILDREN.protected == 1, 30, "the protected command to run")
        go.touch()

    watching = threading.Thread(target=let_go)
    watching.start()
    script = f"while [ ! -e {go} ]; do sleep 0.02; done; sleep 0.3"
    assert run(["/bin/sh", "-c", script], 60, interruptible=False).status == 0
    watching.join()
    assert CHILDREN.protected == 0


def test_a_listener_that_fails_leaves_no_child(tmp_path: Path, pids: Callable[[], list[int]]) -> None:
    def listen(piece: bytes) -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        run(
            ["/bin/sh", "-c", "echo $$ > $PIDS; echo x; sleep 60"],
            60,
            env={"PIDS": str(tmp_path / "pids")},
            listen=listen,
        )
    assert not alive(pids()[0])


@pytest.mark.skipif(not ROOT, reason="only root may run programs as others")
def test_run_starts_a_program_as_another_user() -> None:
    said = run(["/bin/sh", "-c", "id -un; id -gn; id -Gn; echo $HOME; pwd; kill -0 1 && echo power"], 10, user="daemon")
    assert said.output.decode().splitlines()[:5] == ["daemon", "daemon", "daemon", "/usr/sbin", "/"]
    assert b"power" not in said.output


def test_run_reports_an_unknown_user() -> None:
    assert run(["true"], 10, user="nobody-we-know").reason == "no user nobody-we-know on this host"


def test_run_leaves_no_descriptors_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run(["/bin/sh", "-c", "echo x"], 10, input=b"y")
        run(["/no/such/program"], 10, input=b"y")
    assert len(os.listdir("/proc/self/fd")) == before
