"""Measure runs on up to 2,000 hosts: time, and processor time and memory of the controller. Needs root.

    python bench/scale.py [--hosts 10,100,500,1000,2000] [--failing 2000] [--engine threads,processes]

A few sshd processes serve one address of 127.0.0.0/8 for each host. The state directory depends on the address, so each
host has its own ledger, lock and cache of executors. The files are shared: they are as defined when the measurement
begins, and all hosts have cached the executor. Everything runs in its own network and mount namespaces, so nothing of
this machine changes.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from bench.hosts import ENVIRONMENT, FOLDER, PLAYBOOK  # noqa: E402  # the same work as with fewer hosts
from tests.lab import login, processes  # noqa: E402  # real sshds, as in tests

MOST_BARE = 200  # hosts: the largest run that is compared with paramiko alone
SERVERS = 4  # sshd processes; each serves a quarter of the addresses
INSIDE = "--inside"
# The state directory of a host has its address as its name. A file `fault` in it breaks the host.
WRAPPER = """\
#!/bin/sh
set -- $SSH_CONNECTION
export STATECFG_STATE_DIR="{states}/$3"
case "$(cat "{states}/$3.fault" 2>/dev/null)" in
slow) sleep 5 ;;
lying) printf 'statecfg is fine\\n\\377\\377\\377\\377all is well'; sleep 1; exit 0 ;;
dying) exec timeout -s KILL 0.2 /bin/sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
"""
# Fault → the statuses that the report may have for such a host.
FAULTS = {
    "unreachable": {"unreachable"},
    "silent": {"unreachable"},
    "locked": {"locked"},
    "slow": {"ok"},
    "lying": {"unreachable", "unknown"},
    "dying": {"unreachable", "unknown", "ok"},
}


class Cost(NamedTuple):
    """What a command cost: seconds, seconds of processor time, and the most memory in MiB."""

    wall: float
    cpu: float
    memory: float


def address(number: int) -> str:
    """Return the address of a host. The second byte decides which sshd serves it."""
    return f"127.{10 + number % SERVERS}.{number // 1000}.{number // SERVERS % 250 + 1}"


@contextmanager
def servers(place: Path) -> Iterator[None]:
    """Run the sshds while entered."""
    login.make_key(place / "host_key")
    login.make_key(place / "key")
    wrapper = place / "wrapper"
    wrapper.write_text(WRAPPER.format(states=place / "states"))
    wrapper.chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (place / "states").mkdir()
    started = []
    try:
        for number in range(SERVERS):
            config = place / f"sshd_config-{number}"
            options = {
                "ListenAddress": f"0.0.0.0:{2200 + number}",
                "HostKey": place / "host_key",
                "AuthorizedKeysFile": place / "key.pub",
                "PidFile": "none",
                "StrictModes": "no",
                "UsePAM": "no",
                "UseDNS": "no",
                "PermitRootLogin": "prohibit-password",
                "MaxStartups": "1000",  # it serves hundreds of hosts, each of which would have its own limit
                "ForceCommand": wrapper,
            }
            config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
            log = (place / f"log-{number}").open("ab")
            argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for number in range(SERVERS):
            port = 2200 + number
            processes.wait_until(lambda port=port: processes.ssh_answers("127.0.0.1", port), 30, "sshd")
        yield
    finally:
        for process in started:
            processes.end(process)


def write_project(place: Path, numbers: range) -> None:
    """Write the playbook, and the inventory of some hosts."""
    key = (place / "host_key.pub").read_text().split()
    ports = {number: 2200 + number % SERVERS for number in numbers}
    known = "".join(f"[{address(n)}]:{ports[n]} {key[0]} {key[1]}\n" for n in numbers)
    (place / "known_hosts").write_text(known)
    (place / "ssh_config").write_text(f"Host *\n  UserKnownHostsFile {place}/known_hosts\n  IdentitiesOnly yes\n")
    (place / "bench.py").write_text(PLAYBOOK)
    lines = [
        f"  host{n:04}: {{address: {address(n)}, port: {ports[n]}, user: root, key: {place}/key}}\n" for n in numbers
    ]
    (place / "inventory.yml").write_text("hosts:\n" + "".join(lines))


def run(argv: Sequence[str], place: Path, codes: Sequence[int] = (0,)) -> Cost:
    """Run a command; return what it cost.

    :param codes: the exit codes that are expected
    """
    environment = {**ENVIRONMENT, "XDG_STATE_HOME": str(place / "controller"), "XDG_CACHE_HOME": str(place / "cache")}
    started = time.perf_counter()
    with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=err, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode not in codes:
        raise SystemExit(f"{argv}: {process.returncode}\n{(place / 'err').read_text()[-3000:]}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def apply(place: Path, codes: Sequence[int] = (0,), more: Sequence[str] = ()) -> Cost:
    """Apply the playbook to the hosts of the inventory."""
    options = ["-i", str(place / "inventory.yml"), "--ssh-config", str(place / "ssh_config"), "--forks", "32", "--yes"]
    argv = [sys.executable, "-m", "statecfg", "apply", *options, *more, str(place / "bench.py")]
    return run(argv, place, codes)


def bare(place: Path, hosts: int) -> Cost:
    """Read and check the files on the hosts with paramiko alone."""
    targets = [f"{address(number)}:{2200 + number % SERVERS}" for number in range(hosts)]
    script = [sys.executable, "bench/bare_paramiko.py", str(place / "known_hosts"), str(place / "key"), FOLDER]
    return run([*script, *targets], place)


def prepare(place: Path, hosts: int) -> None:
    """Make the files as defined, and copy the executor that one host has cached to the others."""
    write_project(place, range(1))
    apply(place)
    cached = place / "states" / address(0) / "cache"
    for number in range(1, hosts):
        state = place / "states" / address(number)
        state.mkdir(mode=0o700)
        shutil.copytree(cached, state / "cache")


def curve(place: Path, sizes: Sequence[int], engine: str) -> None:
    """Measure runs that change nothing. The first run on each host creates its ledger.

    The processor time includes that of worker processes. The memory is that of the largest process.
    """
    titles = f"{'hosts':>6} {'apply':>8} {'CPU':>8} {'memory':>9} {'/paramiko':>9}  CPU/host  MB/host"
    print(f"{titles}  engine {engine}", flush=True)
    first: tuple[int, Cost] | None = None
    for hosts in sizes:
        write_project(place, range(hosts))
        cost = apply(place, more=["--engine", engine])
        ratio = f"{cost.wall / bare(place, hosts).wall:9.2f}" if hosts <= MOST_BARE else f"{'':9}"
        per_host = ""
        if first is not None:
            more = hosts - first[0]
            cpu, memory = (cost.cpu - first[1].cpu) / more * 1000, (cost.memory - first[1].memory) / more
            per_host = f"{cpu:6.1f} ms {memory:8.2f}"
        first = first or (hosts, cost)
        print(
            f"{hosts:6} {cost.wall:6.2f} s {cost.cpu:6.2f} s {cost.memory:6.0f} MB {ratio} {per_host}",
            flush=True,
        )


def failing(place: Path, hosts: int, engine: str) -> None:
    """Measure a run in which 1 % of the hosts fail in different ways, and check the report of each."""
    write_project(place, range(hosts))
    names = {f"host{number:04}": number for number in range(0, hosts, max(1, hosts // max(len(FAULTS), hosts // 100)))}
    faults = {name: list(FAULTS)[place % len(FAULTS)] for place, name in enumerate(names)}
    with ExitStack() as stack:
        inventory = (place / "inventory.yml").read_text()
        for name, fault in faults.items():
            _break(place, stack, names[name], fault)
            port = {"unreachable": 1, "silent": 2299}.get(fault)
            if port is not None:
                before = f"{name}: {{address: {address(names[name])}, port: {2200 + names[name] % SERVERS}"
                inventory = inventory.replace(before, before.rpartition(" ")[0] + f" {port}")
        (place / "inventory.yml").write_text(inventory)
        more = ["--engine", engine, "--json-into", str(place / "report.json")]
        cost = apply(place, codes=(3, 4), more=more)
    report = json.loads((place / "report.json").read_text())
    wrong = []
    for name, host in report["hosts"].items():
        if host["status"] not in (FAULTS[faults[name]] if name in faults else {"ok"}):
            wrong.append(f"{name} ({faults.get(name, 'sound')}): {host['status']}: {host.get('error')}")
    counts = Counter(host["status"] for host in report["hosts"].values())
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    costs = f"{cost.wall:.2f} s, {cost.cpu:.2f} s CPU, {cost.memory:.0f} MB"
    print(f"{len(faults)} of {hosts} hosts fail: {costs}; {statuses}")
    if wrong:
        raise SystemExit("\n".join(wrong))


def _break(place: Path, stack: ExitStack, number: int, fault: str) -> None:
    """Break a host until the end of the stack."""
    if fault == "locked":
        lock = stack.enter_context((place / "states" / address(number) / "lock").open("a"))
        fcntl.flock(lock, fcntl.LOCK_EX)
    elif fault == "silent":
        server = stack.enter_context(socket.socket())
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address(number), 2299))
        server.listen()
    elif fault != "unreachable":
        mark = place / "states" / f"{address(number)}.fault"
        mark.write_text(fault)
        stack.callback(mark.unlink)


def _without_startup_files(stack: ExitStack) -> None:
    """Hide the shell's start-up files of root, which all these hosts share: pyenv's lets them wait for one lock."""
    for name in (".bashrc", ".zshenv"):
        file = Path.home() / name
        if file.exists():
            subprocess.run(["mount", "--bind", "/dev/null", str(file)], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", str(file)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", default="10,100,500,1000,2000", help="numbers of hosts")
    parser.add_argument("--failing", type=int, default=2000, help="number of hosts of the run in which 1 %% fail")
    parser.add_argument("--engine", default="threads", help="engines to compare, separated by commas")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(text) for text in options.hosts.split(",")]
    if not options.inside:
        argv = ["unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, __file__, INSIDE]
        given = ["--hosts", options.hosts, "--failing", str(options.failing), "--engine", options.engine]
        os.execvp(argv[0], [*argv, *given])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(20_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path(FOLDER).parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        with ExitStack() as stack:
            _without_startup_files(stack)
            for directory in (str(Path(FOLDER).parent), scratch):
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs", directory], check=True)
                stack.callback(subprocess.run, ["umount", "--lazy", directory], check=True)
            stack.enter_context(servers(place))
            prepare(place, max(*sizes, options.failing))
            for engine in options.engine.split(","):
                curve(place, sizes, engine)
                failing(place, options.failing, engine)


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/scale.py makes hosts of its own, and only root can")
    main()
