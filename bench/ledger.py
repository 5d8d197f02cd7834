"""Measure the cost of the ledger: compare an apply without changes with a plan on a host without a ledger. Needs root.

    python bench/ledger.py [--quick]

A plan is the strictest baseline, because it needs neither the ledger nor the lock, the facts and the entry of the run.
Each of the two uses one light host over SSH. The time is that from the connection to the report. It does not include
the start of the command, which is the same for both and would make the ratio smaller. They run alternately (A B A B …).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import figures
from statecfg.run import fleet
from tests import lab
from tests.host.run import rig

FILES = 100  # plus their directory
BAR = 1.15


def exchange(host: lab.Host, mode: str) -> float:
    """Run once. Return the duration in seconds."""
    definition = rig.small_files("/srv/bench", FILES)
    options = fleet.Options(mode=mode, access=fleet.Access(rig.settings(host)))
    jobs = [fleet.Job(rig.inventoried(host), definition, "bench")]
    started = time.perf_counter()
    report = fleet.run(jobs, options, lambda event: None)["hosts"][host.name]
    seconds = time.perf_counter() - started
    if report["status"] != "ok":
        raise SystemExit(f"{mode}: {report}")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 15 if parser.parse_args().quick else 60
    pairs = []
    try:
        kept, bare = lab.light_hosts(2, prefix="ledger")
        for host in (kept, bare):
            exchange(host, "apply")
        for number in range(runs + 1):
            bare.run(["rm", "-f", "/var/lib/statecfg/ledger.db"])
            pair = exchange(kept, "apply"), exchange(bare, "plan")
            if number:  # the first pair only fills caches
                pairs.append(pair)
        if bare.path("/var/lib/statecfg/ledger.db").exists():
            raise SystemExit("a plan has made a ledger")
    finally:
        lab.close_all()
    ratio = statistics.median(a / b for a, b in pairs)
    first, second = (statistics.median(values) for values in zip(*pairs, strict=True))
    bars = figures.Bars()
    title = f"{FILES + 1} resources, nothing to change: ledger / none"
    row = f"{title:52} {first:7.3f} s {second:7.3f} s   {ratio:5.2f} x"
    print(f"{row}   ({bars.at_most(ratio, BAR, 'x')})", flush=True)
    sys.exit(bars.status)


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/ledger.py makes hosts of its own, and only root can")
    main()
