"""Compare the transfer of one large file with scp. Needs root.

    python bench/content.py [--quick]

It sends 500 MB of random bytes, and 500 MB of log lines, to a light host. The two commands of a pair run alternately
(A B A B …), so a slow machine affects both. Each pair gives one ratio. The CPU time is that of all processes on both
sides. The table also shows how long paramiko alone takes to send the bytes to `cat`.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import commands, figures
from bench.commands import host_cpu
from bench.project import Project
from statecfg.transport import Target, connect
from tests import lab
from tests.host.run import rig

SIZE = 500_000_000
PIECE = 256 << 10
TARGET = "/srv/large.bin"
BAR = 2.5
Measured = tuple[float, float]  # seconds of wall time, and of CPU time


def lines() -> bytes:
    """Return log lines, which shrink to about a quarter."""
    chosen = random.Random(1)
    text = "2026-11-23 12:%02d:%02d app[%d]: request %d took %d ms\n"
    ranges = (60, 60, 9999, 1_000_000, 900)
    return b"".join((text % tuple(map(chosen.randrange, ranges))).encode() for _ in range(20_000))


def cpu() -> float:
    """Return the CPU seconds of this process and its ended children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measure(host: lab.Host, command: Callable[[], object]) -> Measured:
    host.path(TARGET).unlink(missing_ok=True)
    before = host_cpu(host) + cpu()
    started = time.perf_counter()
    command()
    seconds = time.perf_counter() - started
    return seconds, host_cpu(host) + cpu() - before


def alone(host: lab.Host) -> None:
    """Send random bytes with paramiko only."""
    target = Target(host.name, host.address, host.port, host.user, (str(host.identity),))
    connection = connect(target, rig.settings(host))
    stream = connection.open(["sh", "-c", f"head -c {SIZE} > /dev/null; echo done"])
    piece = os.urandom(PIECE)
    for start in range(0, SIZE, PIECE):
        stream.write(piece[: SIZE - start])
    while stream.read(60.0) != b"done\n":
        pass
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 2 if parser.parse_args().quick else 7
    with tempfile.TemporaryDirectory(dir="/dev/shm") as scratch:
        directory = Path(scratch)
        try:
            status = compare(directory, lab.light_hosts(1)[0], runs)
        finally:
            lab.close_all()
    sys.exit(status)


def compare(directory: Path, host: lab.Host, runs: int) -> int:
    """Print a table. Return 1 if a ratio is over the bar."""
    content, text, bars = directory / "content", lines(), figures.Bars()
    playbook = f"hosts: all\nresources:\n  - file: {TARGET}\n    source: {content}\n"
    project = Project.of(directory / "bench", [host], playbook, "large.yml")
    theirs = ["scp", "-q", "-F", "none", "-o", f"UserKnownHostsFile={host.known_hosts}", "-i", str(host.identity)]
    theirs += [str(content), f"root@{host.address}:{TARGET}"]
    print(f"{'':24} {'statecfg':>18} {'scp':>18}   ratio of times and of CPU times", flush=True)
    for name in ("random bytes", "log lines"):
        with content.open("wb") as stream:
            for start in range(0, SIZE, 1 << 20):
                piece = os.urandom(1 << 20) if name == "random bytes" else (text * 2)[start % len(text) :][: 1 << 20]
                stream.write(piece[: SIZE - start])
        pairs = []
        for number in range(runs + 1):
            pair = measure(host, project.apply), measure(host, lambda: commands.run(theirs))
            if number:  # the first pair only fills caches
                pairs.append(pair)
        first, second = (
            [statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True)
        )
        ratio, cpu_ratio = (statistics.median(a[at] / b[at] for a, b in pairs) for at in (0, 1))
        cells = [f"{wall:5.2f} s, {spent:5.2f} CPU" for wall, spent in (first, second)]
        verdict = bars.at_most(ratio, BAR, "x")
        print(f"{name:24} {cells[0]} {cells[1]}   {ratio:.2f} x ({verdict}), {cpu_ratio:.2f} x", flush=True)
    wall, spent = measure(host, lambda: alone(host))
    print(f"{'paramiko alone':24} {wall:5.2f} s, {spent:5.2f} CPU", flush=True)
    return bars.status


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/content.py makes hosts of its own, and only root can")
    main()
