"""Compare statecfg with two baselines: paramiko alone, and `tar | ssh tar`. Needs root.

    python bench/hosts.py [--quick]

The two commands of a pair run alternately (A B A B …), so a slow machine affects both. Each pair gives one ratio.
"""

from __future__ import annotations

import argparse
import os
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
from tests import lab  # noqa: E402  # the benchmark uses test hosts

FOLDER = "/srv/bench"
PLAYBOOK = f'''
from statecfg import play
from statecfg.resources import directory, file

@play(hosts="all")
def bench(host):
    folder = directory("{FOLDER}")
    return [file(f"{FOLDER}/f{{n}}", content=f"hello {{n}}\\n", mode="0644", requires=[folder]) for n in range(100)]
'''
Command = Callable[[], None]


# Python keeps bytecode, as in normal installations.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def quiet(argv: list[str]) -> None:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise SystemExit(f"{argv}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def seconds(command: Command) -> float:
    started = time.perf_counter()
    command()
    return time.perf_counter() - started


def compare(title: str, bar: float, ours: Command, theirs: Command, runs: int, before: Command | None = None) -> None:
    """Measure two commands alternately. Print their medians and their ratio."""
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
    verdict = "within" if ratio <= bar else "OVER"
    print(f"{title:52} {first:7.3f} s {second:7.3f} s   {ratio:5.2f} x   (bar {bar:.1f} x: {verdict})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer runs, 5 hosts instead of 20")
    quick = parser.parse_args().quick
    runs, many = (3, 5) if quick else (9, 20)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        started = lab.light_hosts(many)
        try:
            measure(place, started, runs)
        finally:
            lab.close_all()
    help_cpu()


def measure(place: Path, started: list[lab.Host], runs: int) -> None:
    known, key = place / "known_hosts", str(started[0].identity)
    lab.write_known_hosts(known, started)
    (place / "bench.py").write_text(PLAYBOOK)
    (place / "ssh_config").write_text(f"Host *\n  UserKnownHostsFile {known}\n  IdentitiesOnly yes\n")
    for name, chosen in (("one", started[:1]), ("many", started)):
        lines = "".join(f"  {h.name}: {{address: {h.address}, user: root, key: {key}}}\n" for h in chosen)
        (place / f"{name}.yml").write_text("hosts:\n" + lines)
    python = sys.executable

    def ours(which: str) -> Command:
        options = ["-i", str(place / f"{which}.yml"), "--ssh-config", str(place / "ssh_config")]
        options += ["--forks", "32", "--yes"]
        return lambda: quiet([python, "-m", "statecfg", "apply", *options, str(place / "bench.py")])

    def bare(chosen: list[lab.Host]) -> Command:
        script = [python, "bench/bare_paramiko.py", str(known), key, FOLDER]
        return lambda: quiet([*script, *(host.address for host in chosen)])

    tree = place / "tree"
    tree.mkdir()
    for number in range(100):
        (tree / f"f{number}").write_text(f"hello {number}\n")

    def tar() -> None:
        host = started[0]
        ssh = ["ssh", "-o", f"UserKnownHostsFile={known}", "-i", key, "-F", "none", f"root@{host.address}"]
        pack = subprocess.Popen(["tar", "-C", str(tree), "-cf", "-", "."], stdout=subprocess.PIPE)
        subprocess.run([*ssh, f"mkdir -p {FOLDER} && tar -C {FOLDER} -xf -"], stdin=pack.stdout, check=True)
        pack.wait()

    def without_files() -> None:
        started[0].run(["rm", "-rf", FOLDER])

    def bare_host() -> None:
        started[0].run(["rm", "-rf", FOLDER, "/var/lib/statecfg"])

    print(f"{'':52} {'statecfg':>9} {'yardstick':>9}   ratio")
    compare("first apply, executor to be sent, / tar | ssh tar", 3.0, ours("one"), tar, runs, bare_host)
    compare("first apply, executor there, / tar | ssh tar", 2.0, ours("one"), tar, runs, without_files)
    ours("many")()
    compare("101 resources, 1 host, nothing to change / paramiko", 2.0, ours("one"), bare(started[:1]), runs)
    title = f"101 resources, {len(started)} hosts, nothing to change / paramiko"
    compare(title, 2.5, ours("many"), bare(started), runs)


def help_cpu() -> None:
    """Print the CPU time of `statecfg --help`."""
    values = []
    for _ in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        argv = [sys.executable, "-m", "statecfg", "--help"]
        subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, check=True, env=ENVIRONMENT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        values.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    cpu = statistics.median(values)
    print(f"{'statecfg --help':52} {cpu:7.3f} s of CPU{'':18}(bar 0.06 s: {'within' if cpu <= 0.06 else 'OVER'})")


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/hosts.py makes hosts of its own, and only root can")
    main()
