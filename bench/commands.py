"""Runs commands for benchmarks, and measures what they cost here and on hosts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.figures import megabytes

if TYPE_CHECKING:
    from tests import lab

ROOT = Path(__file__).parent.parent
# Python keeps bytecode, as in normal installations. The user's settings, such as the store, must not change the work.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("STATECFG_")
}


class Cost(NamedTuple):
    """What a command cost.

    :param wall: seconds until it had ended
    :param cpu: seconds of processor time, including those of its children
    :param memory: peak memory of the largest process, in MB
    """

    wall: float
    cpu: float
    memory: float


def run(
    argv: Sequence[str], environment: Mapping[str, str] = ENVIRONMENT, cwd: Path = ROOT, statuses: Sequence[int] = (0,)
) -> Cost:
    """Run a command, and return what it cost.

    :param statuses: the exit statuses that are expected; with another one, the benchmark ends
    """
    started = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode not in statuses:
        raise SystemExit(f"{' '.join(argv)}: status {process.returncode}\n{output.decode(errors='replace')[-5000:]}")
    return Cost(wall, used.ru_utime + used.ru_stime, megabytes(used.ru_maxrss))


def host_cpu(host: lab.Host) -> float:
    """Return the CPU seconds of all ended processes of a host."""
    time.sleep(0.3)  # sshd takes a moment to end the processes of a session
    fields = Path(f"/proc/{host.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
