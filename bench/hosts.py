"""Compare statecfg with two baselines: paramiko alone, and `tar | ssh tar`. Needs root.

    python bench/hosts.py [--hosts 1,20,200] [--quick]

The two commands of a pair run alternately (A B A B …), so a slow machine affects both. Each pair gives one ratio. Each
number of hosts has its own hosts, playbook and store.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import commands, figures
from bench.project import FOLDER, Project
from tests import lab

BARS = {1: 1.5, 20: 1.8, 200: 2.0}  # hosts → how many times as long as paramiko an apply without changes may take
SENT, THERE = 3.0, 2.0  # the same for a first apply and tar, with the executor to be sent and without
HELP = 0.06  # seconds of CPU
Command = Callable[[], object]


def seconds(command: Command) -> float:
    started = time.perf_counter()
    command()
    return time.perf_counter() - started


class Pairs:
    """Measures pairs of commands, prints a row for each, and judges it.

    :param bars: judges the ratios
    """

    def __init__(self, bars: figures.Bars) -> None:
        self.bars = bars
        print(f"{'':54} {'statecfg':>9} {'baseline':>9}   ratio", flush=True)

    def compare(
        self, title: str, bar: float, ours: Command, theirs: Command, runs: int, before: Command | None = None
    ) -> None:
        """Measure two commands alternately. Print their medians and their ratio.

        :param before: runs before each of the commands, and is not measured
        """
        pairs = []
        for number in range(runs + 1):
            if before is not None:
                before()
            a = seconds(ours)
            if before is not None:
                before()
            b = seconds(theirs)
            if number:  # the first pair only fills caches
                pairs.append((a, b))
        ratio = statistics.median(a / b for a, b in pairs)
        first, second = (statistics.median(values) for values in zip(*pairs, strict=True))
        verdict = self.bars.at_most(ratio, bar, "x")
        print(f"{title:54} {first:7.3f} s {second:7.3f} s   {ratio:5.2f} x   ({verdict})", flush=True)

    def first_applies(self, project: Project, host: lab.Host, tree: Path, runs: int) -> None:
        """Compare the first apply to a host with `tar | ssh tar`.

        :param tree: a new directory for the files that tar sends
        """
        tree.mkdir()
        for number in range(100):
            (tree / f"f{number}").write_text(f"hello {number}\n")
        options = ["-o", f"UserKnownHostsFile={project.known_hosts}", "-i", str(host.identity), "-F", "none"]
        unpack = f"mkdir -p {FOLDER} && tar -C {FOLDER} -xf -"

        def tar() -> None:
            pack = subprocess.Popen(["tar", "-C", str(tree), "-cf", "-", "."], stdout=subprocess.PIPE)
            subprocess.run(["ssh", *options, f"root@{host.address}", unpack], stdin=pack.stdout, check=True)
            pack.wait()

        def without(*paths: str) -> Command:
            return lambda: host.run(["rm", "-rf", *paths])

        everything = without(FOLDER, "/var/lib/statecfg")
        self.compare("first apply, executor to be sent / tar | ssh tar", SENT, project.apply, tar, runs, everything)
        self.compare("first apply, executor cached / tar | ssh tar", THERE, project.apply, tar, runs, without(FOLDER))

    def unchanged(self, project: Project, hosts: list[lab.Host], runs: int) -> None:
        """Compare an apply that changes nothing with a script that reads the same files with paramiko."""
        script = [sys.executable, "bench/bare_paramiko.py", str(project.known_hosts), str(hosts[0].identity), FOLDER]
        bare = [*script, *(host.address for host in hosts)]
        title = f"101 resources, {len(hosts)} host{'s'[: len(hosts) > 1]}, nothing to change / paramiko"
        bar = next((bar for most, bar in BARS.items() if len(hosts) <= most), BARS[200])
        project.apply()  # the first comparison may have ended with files of tar
        self.compare(title, bar, project.apply, lambda: commands.run(bare), runs)


def help_cpu(bars: figures.Bars) -> None:
    """Print the CPU time of `statecfg --help`."""
    fixed = figures.fixed()
    cpu = statistics.median(commands.run([sys.executable, "-m", "statecfg", "--help"]).cpu for _ in range(9))
    row = f"{'statecfg --help':54} {cpu:7.3f} s of CPU, {figures.loops(cpu, fixed):.1f} loops"
    print(f"{row}   ({bars.at_most(cpu, HELP, 's')})", flush=True)


def main() -> int:
    """Measure all numbers of hosts. Return 1 if a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", help="numbers of hosts; default: 1,20,200, and 1,5 with --quick")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    options = parser.parse_args()
    sizes = options.hosts or ("1,5" if options.quick else "1,20,200")
    bars = figures.Bars()
    pairs = Pairs(bars)
    for size in map(int, sizes.split(",")):
        runs = 3 if options.quick or size > 20 else 9
        with tempfile.TemporaryDirectory() as scratch:
            hosts = lab.light_hosts(size)
            try:
                project = Project.of(Path(scratch) / "bench", hosts)
                if size == 1:
                    pairs.first_applies(project, hosts[0], Path(scratch) / "tree", runs)
                pairs.unchanged(project, hosts, runs)
            finally:
                lab.close_all()
    help_cpu(bars)
    return bars.status


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/hosts.py makes hosts of its own, and only root can")
    sys.exit(main())
