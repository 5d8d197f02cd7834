"""Measure 10,000 small files on one host: the first apply, and a second one that finds nothing to do. Needs root.

    python bench/files.py [COUNT]

The host is a light one, over SSH. The CPU time is that of all processes on each side, which other load on the machine
changes less than the time that passes. `loops` is the ratio of the time to that of the loop in `bench/figures.py`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import figures
from bench.commands import host_cpu
from bench.project import FOLDER, Project
from tests import lab

PLAYBOOK = """
from statecfg import play
from statecfg.resources import directory, file

@play(hosts="all")
def bench(host):
    folder = directory("{folder}")
    return [file(f"{folder}/f{{n}}", content=f"hello {{n}}\\n", mode="0644", requires=[folder]) for n in range({count})]
"""
BARS = {"first apply": 30.0, "nothing to change": 6.0}  # seconds
MEMORY = 120  # MB of the controller


def measure(project: Project, host: lab.Host, title: str, bars: figures.Bars) -> None:
    """Apply, and print a row."""
    before, fixed = host_cpu(host), figures.fixed()
    cost = project.apply()
    there, loops = host_cpu(host) - before, figures.loops(cost.wall, fixed)
    verdicts = f"{bars.at_most(cost.wall, BARS[title], 's')}, {bars.at_most(cost.memory, MEMORY, 'MB')}"
    times = f"{title:20} {cost.wall:6.1f} s {loops:7.0f} {cost.cpu:6.1f} s {there:6.1f} s"
    print(f"{times} {cost.memory:6.0f} MB   ({verdicts})", flush=True)


def main() -> int:
    """Measure both applies. Return 1 if a bar is missed."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    bars = figures.Bars()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            hosts = lab.light_hosts(1)
            project = Project.of(Path(scratch) / "bench", hosts, PLAYBOOK.format(folder=FOLDER, count=count))
            columns = ("time", "loops", "CPU here", "on host", "memory here")
            print(f"{count:,} files".ljust(20), *columns, sep="  ", flush=True)
            for title in BARS:
                measure(project, hosts[0], title, bars)
        finally:
            lab.close_all()
    return bars.status


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/files.py makes hosts of its own, and only root can")
    sys.exit(main())
