"""Runs the executor on directories of this machine, and reads its frames, its ledger and its journals.

A small server forks a process for each run. So a run takes milliseconds, and a test can kill it at any system call.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.plays import HostContext
from statecfg.remote.wire.frames import Decoder
from statecfg.resources.index.modules import module_of
from tests import ROOT

Json = dict[str, Any]
CALLS = ("write", "fsync", "rename", "unlink", "mkdir", "open", "close", "chmod", "fchmod", "replace", "rmdir")
PLACED = ("file", "directory", "symlink", "line_in_file", "block_in_file", "replace", "command")
SERVER = f"""
import json, os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from importlib import import_module
from statecfg.remote.wire import channel
from statecfg.remote.run import content, drift, execution
from statecfg.remote.hooks import calling, firing, lifecycle
from statecfg.remote.machine import guard, redact
from statecfg.remote.ledger import history, opening, orphans, state
from statecfg.remote import session
from statecfg.remote.hooks import result as hook_result, run as hook_run
from statecfg.remote.machine import facts
from statecfg.remote.wire import frames as wire
import random, shutil, socket, sqlite3, threading, time, traceback, uuid, tests.unit.remote.ledger.managed_types
for name in {[module_of(name) for name in PLACED]!r}:
    import_module(name)

def counted(function, left):
    def call(*given, **more):
        left[0] -= 1
        if left[0] == 0:
            with guard.allowed():
                os.kill(os.getpid(), signal.SIGKILL)
        return function(*given, **more)
    return call

def heartbeats(pipe, write=os.write):
    # A controller sends these. Without them the executor gives up after 15 seconds, which a busy machine may need.
    beat = wire.encode({{"type": "beat"}})
    while True:
        time.sleep(1)
        write(pipe, beat)

def run(order):
    state.directory = lambda: order["place"]
    source, kept = os.pipe()
    threading.Thread(target=heartbeats, args=(kept,), daemon=True).start()
    sink = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.umask(0o022)
    if order["kill"]:
        left = [order["kill"]]
        for name in {CALLS!r}:
            setattr(os, name, counted(getattr(os, name), left))
    session.main(source, sink, {{"modules": {{}}}}, [(frame, b"") for frame in order["frames"]])

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        try:
            run(json.loads(line))
        except BaseException:
            traceback.print_exc()
            os._exit(99)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@dataclass
class Said:
    """The output of a run: its frames, and the exit status of its process."""

    frames: list[Json]
    status: int

    @property
    def end(self) -> Json:
        """The end frame, or an empty dictionary if the run sent none."""
        return self.frames[-1] if self.frames and self.frames[-1]["type"] == "end" else {}

    @property
    def warnings(self) -> list[str]:
        return list(self.end.get("warnings", ()))

    def part(self, part: str, kind: str = "planned") -> list[Json]:
        """Return the nodes of a part of the plan ("planned") or of the results ("layer")."""
        return [
            node for frame in self.frames if frame["type"] == kind and frame["part"] == part for node in frame["nodes"]
        ]

    def outcomes(self) -> dict[str, str]:
        """Return the outcome of each executed node, by node name."""
        return {node["name"]: node["outcome"] for part in ("removals", "layers") for node in self.part(part, "layer")}

    @property
    def fired(self) -> list[tuple[str, str, str, str]]:
        """The hook calls: event, node, hook, status."""
        fired = [each for each in self.frames if each["type"] == "fired"]
        return [(each["event"], each["name"], each["hook"], each["status"]) for each in fired]


@dataclass
class Machine:
    """A host: a directory with its state, and a server that runs the executor on it."""

    folder: Path
    server: subprocess.Popen[str]
    number: int = 0
    lineage: str = ""
    orders: Json = field(default_factory=dict)

    @property
    def place(self) -> Path:
        return self.folder / "state"

    def run(self, *graphs: Graph, mode: str = "apply", kill: int = 0, playbook: str = "site", **more: Any) -> Said:
        """Run with a definition.

        :param kill: number of the file system call at which the run is killed; 0: the run is not killed
        :param more: further keys of the controller's run frame
        """
        self.number += 1
        definition = compile_graph(merge_graphs(*graphs), WireContext(HostContext("host"), self.folder))
        order = {"type": "run", "mode": mode, "run": f"r{self.number:04}", "who": "ann@desk", "playbook": playbook}
        order["types"] = {name: self.module(name) for name in definition.types}
        order.update({"secrets": dict(definition.secrets), **self.orders, **more})
        layers = [{"type": "nodes", "layer": n, "nodes": nodes} for n, nodes in enumerate(definition.layers)]
        return self.ask([order, *layers, {"type": "begin"}, {"type": "go"}], kill)

    def ask(self, frames: Sequence[Mapping[str, Any]], kill: int = 0) -> Said:
        """Send these frames to an executor, and return its output."""
        said = self.folder / "said"
        order = {"place": str(self.place), "said": str(said), "frames": list(frames), "kill": kill}
        assert self.server.stdin is not None and self.server.stdout is not None
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        status = int(self.server.stdout.readline())
        found = [header for header, _ in Decoder().feed(said.read_bytes())] if said.exists() else []
        said.unlink(missing_ok=True)
        assert status in (0, -9), f"the executor ended with {status}"
        assert "trace" not in (found[-1] if found else {}), found[-1]["trace"]
        return Said(found, status)

    def module(self, kind: str) -> str:
        return module_of(kind) if kind in PLACED else "tests.unit.remote.ledger.managed_types"

    # Reading the state

    def query(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """Run an SQL statement on the ledger without the executor."""
        database = sqlite3.connect(self.place / "ledger.db")
        try:
            with database:
                return database.execute(query, given).fetchall()
        finally:
            database.close()

    def rows(self, playbook: str = "site") -> dict[str, str]:
        """Return the state of each managed resource, by name."""
        return dict(self.query("SELECT name, state FROM resource WHERE playbook = ? ORDER BY name", playbook))

    def memory(self, name: str, playbook: str = "site") -> Any:
        """Return a resource's memory from the ledger."""
        ((found,),) = self.query("SELECT memory FROM resource WHERE playbook = ? AND name = ?", playbook, name)
        return json.loads(found)

    def owed(self) -> list[tuple[Any, ...]]:
        return self.query("SELECT node, cause FROM owed ORDER BY node, cause")

    def kept(self) -> list[str]:
        """Return the digests of all former contents that the host keeps."""
        folder = self.place / "before"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def journals(self) -> list[str]:
        folder = self.place / "runs"
        return sorted(os.listdir(folder)) if folder.is_dir() else []


def started(folder: Path) -> Machine:
    """Start a machine with its own server; the caller has to stop it."""
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-c", SERVER]
    return Machine(folder, subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def stop(machine: Machine) -> None:
    machine.server.kill()
    machine.server.communicate()


def hook(name: str, programs: Mapping[str, str], events: Sequence[str], **more: Any) -> Json:
    """Return a hook for the host in the form in which the controller sends it.

    :param programs: file name → text of an executable file
    """
    files = {path: [0o755, blob(text)] for path, text in programs.items()}
    digest = hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()
    plain = {"order": 100, "select": {}, "on_failure": "abort", "deadline": 10.0, "configuration": {}, "schema": {}}
    fixed = {"name": name, "type": name, "events": list(events), "where": "host", "digest": digest, "files": files}
    return {**plain, **fixed, **more}


def blob(text: str) -> Json:
    """Return content in the form in which a frame contains it."""
    data = text.encode()
    found: Json = {"$blob": [hashlib.sha256(data).hexdigest(), len(data)]}
    found["base64"] = base64.b64encode(data).decode()
    return found


def fine(said: Said) -> Said:
    """Check that the run succeeded, and return its output."""
    assert said.end["status"] == "ok", (said.end, said.part("layers", "layer"))
    return said


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Give a machine whose server process all machines of the module share."""
    machine = started(tmp_path_factory.mktemp("server"))
    yield machine
    stop(machine)


@pytest.fixture
def machine(server: Machine, tmp_path: Path) -> Machine:
    """Give a machine with its own ledger."""
    (tmp_path / "host").mkdir()
    return Machine(tmp_path, server.server)


@pytest.fixture
def host(machine: Machine) -> Path:
    """Give the directory that serves as the machine's file system."""
    return machine.folder / "host"
