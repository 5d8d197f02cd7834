"""Compare the executor's CPU with that of the remote part of `bench/bare_paramiko.py`, on the host. Needs root.

    python bench/executor.py [--quick]

The apply changes nothing, and the two run alternately (A B A B …). CPU is that of the whole Python process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import bare_paramiko, figures
from tests import lab
from tests.host.run import rig

FOLDER, FILES = "/srv/bench", 100
BAR = 2.5
TIMED = '#!/bin/bash\nTIMEFORMAT="%U %S"\n{ time python3 "$@" 2>&3; } 3>&2 2>/srv/times\n'


def cpu(host: lab.Host, command: Callable[[], object]) -> float:
    """Return the seconds of CPU that the Python of `TIMED` uses on the host."""
    host.write("/srv/times", "")
    command()
    while not host.read("/srv/times").endswith("\n"):  # it is written a moment after the run has ended
        time.sleep(0.01)
    return sum(map(float, host.read("/srv/times").split()))


def measure(host: lab.Host, runs: int) -> int:
    """Print the medians. Return 1 if the median of the ratios is over its bar."""
    host.write("/srv/timed", TIMED, 0o755)
    definition = rig.small_files(FOLDER, FILES)
    for _ in range(3):
        rig.run(host, definition)
    bare = ["/srv/timed", "-I", "-S", "-c", bare_paramiko.PROGRAM, FOLDER]
    pairs = []
    for _ in range(runs):
        ours = cpu(host, lambda: rig.run(host, definition, inventory={"python": "/srv/timed"}))
        pairs.append((ours, cpu(host, lambda: host.run(bare))))
    ratio = statistics.median(a / b for a, b in pairs)
    first, second = (1000 * statistics.median(values) for values in zip(*pairs, strict=True))
    bars = figures.Bars()
    title = f"{FILES + 1} resources, nothing to change: executor / bare"
    row = f"{title:52} {first:5.0f} ms  {second:5.0f} ms CPU  {ratio:4.2f} x"
    print(f"{row}   ({bars.at_most(ratio, BAR, 'x')})", flush=True)
    return bars.status


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 9 if parser.parse_args().quick else 25
    try:
        (host,) = lab.light_hosts(1, prefix="executor")
        status = measure(host, runs)
    finally:
        lab.close_all()
    sys.exit(status)


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/executor.py makes hosts of its own, and only root can")
    main()
