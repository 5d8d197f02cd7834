"""Measure runs on up to 2,000 hosts: time, and processor time and memory of the controller. Needs root.

    python bench/scale.py [--hosts 10,100,500,1000,2000] [--failing 2000] [--engine threads,processes]

A few sshd processes serve one address of 127.0.0.0/8 for each host. The state directory depends on the address, so each
host has its own ledger, lock and cache of executors. The files are shared: they are as defined when the measurement
begins, and all hosts have cached the executor and have a ledger. Each run has its own store. Everything runs in its own
network and mount namespaces, so nothing of this machine changes but the user's cache.
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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import commands, figures
from bench.commands import Cost
from bench.project import FOLDER, Project
from tests.lab import login, processes

CPU, MEMORY = 20.0, 0.5  # the bars for an additional host: ms of CPU, and MB
PEAK, PEAK_HOSTS = 300.0, 2000  # the bar for the memory of a run, in MB, and the hosts that it is for
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
PORTS = {"unreachable": 1, "silent": 2299}  # the ports of hosts with these faults
NO_PORTS: Mapping[int, int] = MappingProxyType({})


def address(number: int) -> str:
    """Return the address of a host. The second byte decides which sshd serves it."""
    return f"127.{10 + number % SERVERS}.{number // 1000}.{number // SERVERS % 250 + 1}"


def port(number: int) -> int:
    """Return the port of the sshd that serves a host."""
    return 2200 + number % SERVERS


@contextmanager
def servers(directory: Path) -> Iterator[None]:
    """Run the sshds while entered."""
    login.make_key(directory / "host_key")
    login.make_key(directory / "key")
    wrapper = directory / "wrapper"
    wrapper.write_text(WRAPPER.format(states=directory / "states"))
    wrapper.chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (directory / "states").mkdir()
    started = []
    try:
        for number in range(SERVERS):
            config = directory / f"sshd_config-{number}"
            options = {
                "ListenAddress": f"0.0.0.0:{port(number)}",
                "HostKey": directory / "host_key",
                "AuthorizedKeysFile": directory / "key.pub",
                "PidFile": "none",
                "StrictModes": "no",
                "UsePAM": "no",
                "UseDNS": "no",
                "PermitRootLogin": "prohibit-password",
                "MaxStartups": "1000",  # it serves hundreds of hosts, each of which would have its own limit
                "ForceCommand": wrapper,
            }
            config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
            log = (directory / f"log-{number}").open("ab")
            argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
            started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        for number in range(SERVERS):
            served = partial(processes.ssh_answers, "127.0.0.1", port(number))
            processes.wait_until(served, 30, "sshd")
        yield
    finally:
        for process in started:
            processes.end(process)


class Scene:
    """The hosts, and the runs on them.

    :param directory: a scratch directory, where `servers` run
    """

    def __init__(self, directory: Path) -> None:
        self.directory, self.projects = directory, 0

    def project(self, numbers: range, ports: Mapping[int, int] = NO_PORTS) -> Project:
        """Return a new project with some of the hosts.

        :param ports: host → port, for hosts that have another one
        """
        key, public_key = self.directory / "key", " ".join((self.directory / "host_key.pub").read_text().split()[:2])
        self.projects += 1
        lines = [
            f"host{n:04}: {{address: {address(n)}, port: {ports.get(n, port(n))}, user: root, key: {key}}}"
            for n in numbers
        ]
        known = "".join(f"[{address(n)}]:{port(n)} {public_key}\n" for n in numbers)
        return Project(self.directory / f"project{self.projects}", lines, known)

    def prepare(self, hosts: int) -> None:
        """Make the files as defined, copy the executor that one host has cached to the others, and create ledgers."""
        self.project(range(1)).apply()
        cached = self.directory / "states" / address(0) / "cache"
        for number in range(1, hosts):
            state = self.directory / "states" / address(number)
            state.mkdir(mode=0o700)
            shutil.copytree(cached, state / "cache")
        self.project(range(hosts)).apply()

    def bare(self, project: Project, hosts: int) -> Cost:
        """Read and check the files on the hosts with paramiko alone."""
        targets = [f"{address(number)}:{port(number)}" for number in range(hosts)]
        script = [
            sys.executable,
            "bench/bare_paramiko.py",
            str(project.known_hosts),
            str(self.directory / "key"),
            FOLDER,
        ]
        return commands.run([*script, *targets])

    def curve(self, sizes: Sequence[int], engine: str, bars: figures.Bars) -> None:
        """Measure runs that change nothing.

        The processor time includes that of worker processes, so the bars are for the engine that has none. The memory
        is that of the largest process.
        """
        titles = f"{'hosts':>6} {'apply':>8} {'CPU':>8} {'memory':>9} {'/paramiko':>9}  CPU/host, loops, MB/host"
        print(f"{titles}  engine {engine}", flush=True)
        first: tuple[int, Cost] | None = None
        for hosts in sizes:
            project, fixed = self.project(range(hosts)), figures.fixed()
            cost = project.apply("--engine", engine)
            row = f"{hosts:6} {cost.wall:6.2f} s {cost.cpu:6.2f} s {cost.memory:6.0f} MB"
            row += f" {cost.wall / self.bare(project, hosts).wall:9.2f}" if hosts <= MOST_BARE else f" {'':9}"
            verdicts = []
            if first is not None and hosts != first[0]:
                more = hosts - first[0]
                cpu, memory = (cost.cpu - first[1].cpu) / more, (cost.memory - first[1].memory) / more
                row += f" {1000 * cpu:6.1f} ms {figures.loops(cpu, fixed):6.2f} {memory:6.2f} MB"
                verdicts += [bars.at_most(1000 * cpu, CPU, "ms")] if engine == "threads" else []
                verdicts += [bars.at_most(memory, MEMORY, "MB")]
            first = first or (hosts, cost)
            verdicts += [bars.at_most(cost.memory, PEAK, "MB")] if hosts <= PEAK_HOSTS else []
            print(f"{row}   ({', '.join(verdicts)})", flush=True)

    def failing(self, hosts: int, engine: str, bars: figures.Bars) -> None:
        """Measure a run in which 1 % of the hosts fail in different ways, and check the report of each."""
        numbers = range(0, hosts, max(1, hosts // max(len(FAULTS), hosts // 100)))
        faults = {number: list(FAULTS)[at % len(FAULTS)] for at, number in enumerate(numbers)}
        ports = {number: PORTS[fault] for number, fault in faults.items() if fault in PORTS}
        project = self.project(range(hosts), ports)
        into = project.root / "report.json"
        with ExitStack() as stack:
            for number, fault in faults.items():
                self._break(stack, number, fault)
            cost = project.apply("--engine", engine, "--json-into", str(into), statuses=(3, 4))
        report = json.loads(into.read_text())
        wrong = []
        for name, host in report["hosts"].items():
            fault = faults.get(int(name.removeprefix("host")))
            if host["status"] not in (FAULTS[fault] if fault else {"ok"}):
                wrong.append(f"{name} ({fault or 'sound'}): {host['status']}: {host.get('error')}")
        counts = Counter(host["status"] for host in report["hosts"].values())
        statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
        verdict = f"   ({bars.at_most(cost.memory, PEAK, 'MB')})" if hosts <= PEAK_HOSTS else ""
        costs = f"{cost.wall:.2f} s, {cost.cpu:.2f} s CPU, {cost.memory:.0f} MB"
        print(f"{len(faults)} of {hosts} hosts fail: {costs}; {statuses}{verdict}", flush=True)
        if wrong:
            raise SystemExit("\n".join(wrong))

    def _break(self, stack: ExitStack, number: int, fault: str) -> None:
        """Break a host until the end of the stack."""
        if fault == "locked":
            lock = stack.enter_context((self.directory / "states" / address(number) / "lock").open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        elif fault == "silent":
            server = stack.enter_context(socket.socket())
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((address(number), PORTS[fault]))
            server.listen()
        elif fault != "unreachable":
            mark = self.directory / "states" / f"{address(number)}.fault"
            mark.write_text(fault)
            stack.callback(mark.unlink)


def _without_startup_files(stack: ExitStack) -> None:
    """Hide the shell's start-up files of root, which all these hosts share: pyenv's lets them wait for one lock."""
    for name in (".bashrc", ".zshenv"):
        file = Path.home() / name
        if file.exists():
            subprocess.run(["mount", "--bind", "/dev/null", str(file)], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", str(file)], check=True)


def main() -> int:
    """Measure the curve, and the run with failing hosts, with each engine. Return 1 if a bar is missed."""
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
        directory = Path(scratch)
        with ExitStack() as stack:
            _without_startup_files(stack)
            for mount_point in (str(Path(FOLDER).parent), scratch):
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs", mount_point], check=True)
                stack.callback(subprocess.run, ["umount", "--lazy", mount_point], check=True)
            stack.enter_context(servers(directory))
            scene, bars = Scene(directory), figures.Bars()
            scene.prepare(max(*sizes, options.failing))
            for engine in options.engine.split(","):
                scene.curve(sizes, engine, bars)
                scene.failing(options.failing, engine, bars)
    return bars.status


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/scale.py makes hosts of its own, and only root can")
    sys.exit(main())
