"""Helpers of the tests on hosts: definitions, runs with their events, and clients that a test can kill."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from statecfg.engines.engine import Engine
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.playbook.inventory import Host as Inventoried
from statecfg.playbook.inventory import Login
from statecfg.playbook.plays import HostContext
from statecfg.resources import command, directory, file
from statecfg.run import fleet
from statecfg.transport import SshSettings
from statecfg.transport.become import Become
from tests import ROOT
from tests.host.command import start
from tests.host.preloaded import Started
from tests.lab import Host, PlainSshd, processes

PLAYBOOK = "tests"
Json = dict[str, Any]


def define(*graphs: Graph) -> Definition:
    """Compile the graphs into the definition that a host receives."""
    return compile_graph(merge_graphs(*graphs), WireContext(HostContext("host"), ROOT))


def settings(*hosts: Host | PlainSshd) -> SshSettings:
    """Return SSH settings for the hosts that ignore the settings of the user who runs the tests."""
    return SshSettings(
        ssh_config="none", known_hosts=tuple(str(host.known_hosts) for host in hosts), use_agent=False,
        default_keys=False,
    )  # fmt: skip


def inventoried(host: Host | PlainSshd, name: str = "", **more: Any) -> Inventoried:
    """Return a test host as an inventory host."""
    login = {"user": host.user, "identity_files": (str(host.identity),)}
    login.update({field.name: more.pop(field.name) for field in fields(Login) if field.name in more})
    given = {"address": host.address, "port": host.port, "login": Login(**login), **more}
    return Inventoried(name or getattr(host, "name", "plain"), **given)


@dataclass
class Done:
    """A finished run: its report, its duration, and its events with the seconds since the start."""

    report: Json
    events: list[tuple[float, fleet.Event]]
    seconds: float

    def host(self, name: str = "") -> Json:
        """Return the host's part of the report, or the first host's part if no name is given."""
        hosts = self.report["hosts"]
        found: Json = hosts[name or next(iter(hosts))]
        return found

    def event_names(self, host: str = "") -> list[str]:
        """Return the names of events, in order."""
        return [event.name for _, event in self.events if not host or event.host == host]

    def outcomes(self, name: str = "") -> dict[str, str]:
        """Return the outcome of each node, by node name."""
        return {node["name"]: node["outcome"] for layer in self.host(name)["layers"] for node in layer}


def run(
    hosts: Sequence[Host | PlainSshd] | Host | PlainSshd,
    definition: Definition,
    mode: str = "apply",
    *,
    listen: Callable[[fleet.Event], None] | None = None,
    inventory: Mapping[str, Any] | None = None,
    playbook: str = PLAYBOOK,
    connect: SshSettings | None = None,
    become: Become | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Done:
    """Run the definition on hosts; `inventory` has further inventory attributes for each of them."""
    many = list(hosts) if isinstance(hosts, list | tuple) else [hosts]
    jobs = [fleet.Job(inventoried(host, **(inventory or {})), definition, playbook) for host in many]
    events: list[tuple[float, fleet.Event]] = []
    begun = time.monotonic()

    def note(event: fleet.Event) -> None:
        events.append((time.monotonic() - begun, event))
        if listen is not None:
            listen(event)

    through = {"connect": engine.connect} if engine is not None else {}
    access = fleet.Access(connect or settings(*many), become, **through)
    given = fleet.Options(mode=mode, access=access, **options)
    report = fleet.run(jobs, given, note)
    return Done(report, events, time.monotonic() - begun)


@dataclass
class Client:
    """A run in a separate process, which a test can kill or suspend."""

    process: Started | subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)
    reader: threading.Thread | None = None  # adds the lines

    def await_line(self, text: str, seconds: float = 60) -> None:
        """Wait until the process prints a line that contains the text."""
        processes.wait_until(lambda: any(text in line for line in list(self.lines)), seconds, f"{text!r}")

    def end(self) -> str:
        """Wait until the process ends, and return its output."""
        self.process.wait(120)
        if self.reader is not None:
            self.reader.join(30)
        return "".join(self.lines)


@contextmanager
def client(host: Host, script: str, *arguments: str, **environ: str) -> Iterator[Client]:
    """Run a script of `clients.py` for the host in a separate process, which prints the events of the run."""
    argv = [script, host.address, str(host.port), host.user, str(host.identity), str(host.known_hosts), *arguments]
    reading, writing = os.pipe()
    process = start("tests.host.run.clients", argv, ROOT, {**os.environ, "PYTHONPATH": str(ROOT), **environ}, writing)
    os.close(writing)
    found = Client(process)

    def pump() -> None:
        with open(reading, encoding="utf-8") as lines:
            for line in lines:
                found.lines.append(line)

    found.reader = threading.Thread(target=pump, daemon=True)
    found.reader.start()
    try:
        yield found
    finally:
        process.kill()
        process.wait()
        found.reader.join(5)


def executors(host: Host) -> list[int]:
    """Return the ids, on this machine, of the Python processes that run the executor on the host."""
    found = []
    for pid in processes.descendants(host.pid):
        try:
            argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        ours = b"-I" in argv and b"statecfg-bootstrap" in b"".join(argv)
        if ours and b"python" in os.path.basename(argv[0]) and processes.alive(pid):
            found.append(pid)
    return found


def everything_ours(host: Host) -> list[int]:
    """Return the ids of all processes of the host except sshd."""
    found = []
    for pid in processes.descendants(host.pid):
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name != "sshd" and processes.alive(pid):
            found.append(pid)
    return found


def lock_is_free(host: Host) -> bool:
    """Tell whether the lock of root's runs is free on the host."""
    held = host.run(["flock", "--nonblock", "/var/lib/statecfg/lock", "true"], check=False)
    return held.returncode == 0


def litter(host: Host, place: str) -> list[str]:
    """Return the temporary files that are left below a directory of the host."""
    return [str(path) for path in host.path(place).rglob(".statecfg-*")]


def small_files(root: str, count: int, text: str = "new") -> Definition:
    """Define a directory with files; the content of each file has the file's number."""
    folder = directory(root)
    files = [file(f"{root}/f{i}", content=f"{text} {i}\n", mode="0644", requires=[folder]) for i in range(count)]
    return define(folder, *files)


def held(root: str) -> Definition:
    """Define a command that runs until the file `go` exists in its directory, for at most 30 seconds."""
    before = directory(root)
    script = f"for n in $(seq 600); do [ -e {root}/go ] && exit; sleep 0.05; done"
    return define(before, command("wait-0", shell=script, creates=f"{root}/go", requires=[before]))


def chain(root: str, count: int, seconds: float, text: str) -> Definition:
    """Define files and slow commands in turn; each requires the one before, so each is in its own layer.

    Each command leaves a mark with one line for each time that it ran.
    """
    before = directory(root)
    graphs = [before]
    for i in range(count):
        mark = f"{root}/{text}-{i}"
        argv = ["sh", "-c", f"sleep {seconds}; echo ran >> {mark}"]
        wait = command(f"wait-{i}", argv=argv, creates=mark, requires=[before])
        before = file(f"{root}/f{i}", content=f"{text} {i}\n" * 2000, requires=[wait])
        graphs += [wait, before]
    return define(*graphs)
