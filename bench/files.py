"""Measure 10,000 small files on one host: the first apply, and a second one that finds nothing to do. Needs root.

    python bench/files.py [COUNT]

The host is a light one, over SSH. The CPU time is that of all processes on each side, which other load on the machine
changes less than the time that passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from tests import lab  # noqa: E402  # the benchmark uses test hosts

FOLDER = "/srv/bench"
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
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def host_cpu(host: lab.Host) -> float:
    """Return the CPU seconds of all ended processes of a host."""
    time.sleep(0.3)  # sshd takes a moment to end the processes of a session
    fields = Path(f"/proc/{host.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def measure(place: Path, host: lab.Host, title: str) -> bool:
    """Apply and print a row; return whether it is over a bar."""
    options = ["-i", str(place / "hosts.yml"), "--ssh-config", str(place / "ssh_config"), "--yes"]
    argv = [sys.executable, "-m", "statecfg", "apply", *options, str(place / "files.py")]
    before = host_cpu(host)
    started = time.perf_counter()
    with subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if process.returncode:
        told = re.sub(r".*: changed .*\n", "", errors)
        raise SystemExit(f"{title}: {process.returncode}\n{told}")
    own, there, memory = usage.ru_utime + usage.ru_stime, host_cpu(host) - before, usage.ru_maxrss / 1024
    over = seconds > BARS[title] or memory > MEMORY
    bars = f"(bars {BARS[title]:.0f} s, {MEMORY} MB: {'OVER' if over else 'within'})"
    print(f"{title:20} {seconds:6.1f} s {own:6.1f} s {there:6.1f} s {memory:6.0f} MB   {bars}", flush=True)
    return over


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        try:
            host = lab.light_hosts(1)[0]
            config = f"Host *\n  UserKnownHostsFile {host.known_hosts}\n  IdentitiesOnly yes\n"
            (place / "ssh_config").write_text(config)
            login = f"{{address: {host.address}, user: root, key: {host.identity}}}"
            (place / "hosts.yml").write_text(f"hosts:\n  {host.name}: {login}\n")
            (place / "files.py").write_text(PLAYBOOK.format(folder=FOLDER, count=count))
            columns = ("time", "CPU here", "on host", "memory here")
            print(f"{count:,} files".ljust(20), *columns, sep="  ")
            over = [measure(place, host, title) for title in BARS]
        finally:
            lab.close_all()
    sys.exit(any(over))


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/files.py makes hosts of its own, and only root can")
    main()
