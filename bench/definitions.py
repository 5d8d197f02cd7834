"""Measure CPU time and memory of commands on large definitions, and of short commands: `python bench/definitions.py`.

Each figure is the best of several runs. `bench/figures.py` has the loop.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import commands, figures
from bench.commands import ENVIRONMENT

LAYERS = """
from statecfg import play
from statecfg.resources import file

@play(hosts="@local")
def layers(host):
    made, above = [], []
    for layer in range(20):
        row = []
        for index in range({width}):
            # Half of the requirements are graphs, half are names. Playbooks use both.
            requires = [above[index], f"file:/srv/0/{{index * 7 % {width}}}"] if layer else ()
            row.append(file(f"/srv/{{layer}}/{{index}}", content=f"{{index}}\\n", mode="0644", requires=requires))
        made, above = made + row, row
    return made
"""
LADDER = """
from statecfg import play
from statecfg.resources import file

@play(hosts="@local")
def ladder(host):
    made = []
    for row in range({rows}):
        above = [f"file:/srv/{{row - 1}}.{{side}}" for side in range({sides})[:2] if row]
        made += [file(f"/srv/{{row}}.{{side}}", content="", requires=above) for side in range({sides})]
    return made
"""
LOOP = """
hosts: "@local"
vars: {{numbers: [{numbers}]}}
resources:
  - file: /srv/{{{{ item }}}}
    content: "{{{{ item }}}}"
    for_each: numbers
"""
ONE = """
hosts: "@local"
resources:
  - directory: /srv/bench
"""
# As root, the ledger and executor of the real machine stay out of it.
ALONE = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /var/lib && exec "$@"', "sh")


class Case(NamedTuple):
    """One row of the table.

    :param arguments: those of `statecfg`
    :param seconds: the limit of the CPU time
    :param megabytes: the limit of the memory; 0 for none
    :param status: the expected exit status
    """

    what: str
    arguments: Sequence[str]
    seconds: float
    megabytes: int = 0
    status: int = 0
    runs: int = 2


CASES = (
    Case("100,000 nodes in 20 layers", ("validate", "layers.py"), 8, 350),
    Case("a chain of 10,000 nodes", ("validate", "chain.py"), 2),
    Case("a ladder of 10,000 layers, 100,000 nodes", ("validate", "ladder.py"), 8, 350),
    Case("a chain of 100,000 nodes (refused)", ("validate", "long_chain.py"), 2, status=5),
    Case("a loop in YAML, 100,000 nodes", ("validate", "loop.yml"), 11, 350),
    Case("statecfg --help", ("--help",), 0.06, runs=10),
    Case("plan of one node on this machine", ("plan", "one.yml"), 0.5, runs=10),
)


def project(folder: Path) -> None:
    """Write the playbooks."""
    (folder / "layers.py").write_text(LAYERS.format(width=5_000))
    (folder / "chain.py").write_text(LADDER.format(rows=10_000, sides=1))
    (folder / "ladder.py").write_text(LADDER.format(rows=10_000, sides=10))
    (folder / "long_chain.py").write_text(LADDER.format(rows=100_000, sides=1))
    (folder / "loop.yml").write_text(LOOP.format(numbers=", ".join(map(str, range(100_000)))))
    (folder / "one.yml").write_text(ONE)


def measure(case: Case, folder: Path) -> tuple[float, float]:
    """Run a command once. Return its CPU time in seconds, and its peak memory in MB."""
    around = ALONE if case.arguments[0] == "plan" and os.geteuid() == 0 else ()
    own = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")}
    command = [*around, sys.executable, "-m", "statecfg", *case.arguments]
    cost = commands.run(command, {**ENVIRONMENT, **own}, folder, [case.status])
    return cost.cpu, cost.memory


def main() -> int:
    """Print a table. Return 1 if a figure exceeds its limit."""
    print(f"{'':<42} {'CPU':>8} {'loops':>7} {'peak':>8}", flush=True)
    bars = figures.Bars()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project(folder)
        for case in CASES:
            measure(CASES[-1], folder)  # compiles the modules, and fills the caches
            fixed = figures.fixed()
            rows = [measure(case, folder) for _ in range(case.runs)]
            seconds, peak = min(row[0] for row in rows), min(row[1] for row in rows)
            ratio = figures.loops(seconds, fixed)
            verdicts = [bars.at_most(seconds, case.seconds, "s")]
            verdicts += [bars.at_most(peak, case.megabytes, "MB")] if case.megabytes else []
            row = f"{case.what:<42} {seconds:>6.2f} s {ratio:>6.1f}× {peak:>5.0f} MB"
            print(f"{row}   ({', '.join(verdicts)})", flush=True)
    return bars.status


if __name__ == "__main__":
    sys.exit(main())
