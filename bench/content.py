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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from statecfg.transport import Target, connect  # noqa: E402  # from this checkout
from tests import lab  # noqa: E402  # the benchmark uses test hosts
from tests.host.run import rig  # noqa: E402  # as above

SIZE = 500_000_000
PIECE = 256 << 10
TARGET = "/srv/large.bin"
BAR = 2.5
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
Measured = tuple[float, float]  # seconds of wall time, and of CPU time


def lines() -> bytes:
    """Return log lines, which shrink to about a quarter."""
    chosen = random.Random(1)
    text = "2026-11-23 12:%02d:%02d app[%d]: request %d took %d ms\n"
    ranges = (60, 60, 9999, 1_000_000, 900)
    return b"".join((text % tuple(map(chosen.randrange, ranges))).encode() for _ in range(20_000))


def host_cpu(host: lab.Host) -> float:
    """Return the CPU seconds of all ended processes of a host."""
    time.sleep(0.3)  # sshd takes a moment to end the processes of a session
    fields = Path(f"/proc/{host.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def cpu() -> float:
    """Return the CPU seconds of this process and its ended children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def measure(host: lab.Host, command: Callable[[], None]) -> Measured:
    host.path(TARGET).unlink(missing_ok=True)
    before = host_cpu(host) + cpu()
    started = time.perf_counter()
    command()
    seconds = time.perf_counter() - started
    return seconds, host_cpu(host) + cpu() - before


def quiet(argv: list[str]) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise SystemExit(f"{argv}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


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
        place = Path(scratch)
        try:
            over = compare(place, lab.light_hosts(1)[0], runs)
        finally:
            lab.close_all()
    sys.exit(over)


def compare(place: Path, host: lab.Host, runs: int) -> bool:
    """Print a table; return whether a ratio is over the bar."""
    (place / "ssh_config").write_text(f"Host *\n  UserKnownHostsFile {host.known_hosts}\n  IdentitiesOnly yes\n")
    known = f"hosts:\n  {host.name}: {{address: {host.address}, user: root, key: {host.identity}}}\n"
    (place / "hosts.yml").write_text(known)
    options = ["-i", str(place / "hosts.yml"), "--ssh-config", str(place / "ssh_config"), "--yes"]
    content, text, over = place / "content", lines(), False
    print(f"{'':24} {'statecfg':>18} {'scp':>18}   ratio of times and of CPU times")
    for name in ("random bytes", "log lines"):
        with content.open("wb") as stream:
            for start in range(0, SIZE, 1 << 20):
                piece = os.urandom(1 << 20) if name == "random bytes" else (text * 2)[start % len(text) :][: 1 << 20]
                stream.write(piece[: SIZE - start])
        playbook = place / "large.yml"
        playbook.write_text(f"hosts: all\nresources:\n  - file: {TARGET}\n    source: {content}\n")
        ours = [sys.executable, "-m", "statecfg", "apply", *options, str(playbook)]
        theirs = ["scp", "-q", "-F", "none", "-o", f"UserKnownHostsFile={host.known_hosts}", "-i", str(host.identity)]
        theirs += [str(content), f"root@{host.address}:{TARGET}"]
        pairs = []
        for number in range(runs + 1):
            pair = measure(host, lambda argv=ours: quiet(argv)), measure(host, lambda argv=theirs: quiet(argv))
            if number:  # the first pair only fills caches
                pairs.append(pair)
        first, second = (
            [statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True)
        )
        ratio, cpu_ratio = (statistics.median(a[at] / b[at] for a, b in pairs) for at in (0, 1))
        over = over or ratio > BAR
        cells = [f"{wall:5.2f} s, {spent:5.2f} CPU" for wall, spent in (first, second)]
        verdict = "within" if ratio <= BAR else "OVER"
        print(
            f"{name:24} {cells[0]} {cells[1]}   {ratio:.2f} x (bar {BAR} x: {verdict}), {cpu_ratio:.2f} x", flush=True
        )
    wall, spent = measure(host, lambda: alone(host))
    print(f"{'paramiko alone':24} {wall:5.2f} s, {spent:5.2f} CPU")
    return over


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/content.py makes hosts of its own, and only root can")
    main()
