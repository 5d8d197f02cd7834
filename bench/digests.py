"""Measure an apply without changes, with recorded digests of the files and with `--verify-content`. Needs root.

    python bench/digests.py [--quick]

The files are on ext4, because recorded digests count only on some file systems. They are also in memory, as the image
of the file system is: reading them from a disk takes longer. The two applies run alternately (A B A B …). The CPU of
the host is that of the executor. statecfg records the digest of a file 90 seconds after its last change, so this waits
once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import executor
from bench.figures import MB
from bench.project import FOLDER, Project
from statecfg.remote.ledger.state import DIGESTS
from statecfg.remote.machine import digests
from tests import lab
from tests.lab import image

PLAYBOOK = """
from statecfg import play
from statecfg.resources import directory, file

@play(hosts="all")
def bench(host):
    folder = directory("{folder}")
    return [file(f"{folder}/f{{n}}", {content}, mode="0644", requires=[folder]) for n in range({count})]
"""
SMALL, LARGE, SIZE = 100, 20, 20 * MB  # numbers of small and of large files, and the bytes of a large one
PYTHON = "/srv/timed"


def projects(directory: Path, host: lab.Host) -> dict[str, tuple[Project, int]]:
    """Return the title of each row, its project, and its number of files."""
    source = directory / "source"
    source.write_bytes(os.urandom(SIZE))
    rows = {
        f"{SMALL} small files": ("small", 'content=f"hello {n}\\n"', SMALL),
        f"{LARGE} files of {SIZE // MB} MB": ("large", f'source="{source}"', LARGE),
    }
    made = {}
    for title, (name, content, count) in rows.items():
        playbook = PLAYBOOK.format(folder=f"{FOLDER}/{name}", content=content, count=count)
        made[title] = Project.of(directory / name, [host], playbook, f"{name}.py", f", python: {PYTHON}"), count
    return made


def wait(host: lab.Host, records: digests.Digests) -> None:
    """Wait until statecfg records the digests of all files."""
    newest = max(file.stat().st_ctime for file in host.path(FOLDER).glob("*/*"))
    time.sleep(max(0.0, newest + records.margin / digests.SECOND + 1 - time.time()))


def recorded(host: lab.Host, project: Project) -> digests.Digests:
    """Return what the host has recorded about the files of a project."""
    return digests.Digests(str(host.path(f"/var/lib/statecfg/{DIGESTS}")), f"bench/{project.playbook.name}")


def measure(host: lab.Host, project: Project, *options: str) -> tuple[float, float]:
    """Apply. Return the seconds that it took, and the seconds of CPU of the executor."""
    took: list[float] = []
    spent = executor.cpu(host, lambda: took.append(project.apply(*options).wall))
    return took[0], spent


def compare(host: lab.Host, title: str, project: Project, runs: int) -> None:
    """Print the medians of both kinds of apply, and the medians of their ratios."""
    pairs = [(measure(host, project), measure(host, project, "--verify-content")) for _ in range(runs)]
    sides = [[statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True)]
    cells = [f"{wall:6.2f} s, {1000 * spent:5.0f} ms CPU" for wall, spent in sides]
    ratios = [statistics.median(reading[at] / trusting[at] for trusting, reading in pairs) for at in (0, 1)]
    print(f"{title:20} {cells[0]}   {cells[1]}   {ratios[0]:5.2f} x, {ratios[1]:5.2f} x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 3 if parser.parse_args().quick else 9
    with tempfile.TemporaryDirectory() as scratch:
        try:
            (host,) = lab.light_hosts(1, prefix="digests")
            host.write(PYTHON, executor.TIMED, 0o755)
            with image.ext4(host, FOLDER, 2 * LARGE * SIZE):
                made = projects(Path(scratch), host)
                for project, _ in made.values():
                    project.apply()
                wait(host, recorded(host, project))
                print(f"{'':20} {'digests':>20} {'--verify-content':>22}   ratio of times and of CPU", flush=True)
                for title, (project, count) in made.items():
                    project.apply()
                    found = len(recorded(host, project).recorded)
                    if found != count:
                        raise SystemExit(f"{title}: the host has recorded {found} digests")
                    compare(host, title, project, runs)
        finally:
            lab.close_all()


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/digests.py makes hosts of its own, and only root can")
    main()
