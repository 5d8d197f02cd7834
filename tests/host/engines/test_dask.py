"""`--engine tls://` and `dask://`: a real scheduler and real workers of Dask, also while workers die."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import pytest

from statecfg import __version__ as statecfg_version
from statecfg.engines.dask import DaskWorkers
from statecfg.engines.engine import opened
from statecfg.problems import InvalidInput
from statecfg.transport import SshSettings, Target
from tests import ROOT
from tests.each import each
from tests.host.command import statecfg
from tests.host.engines import cluster
from tests.host.engines.cluster import Cluster
from tests.host.engines.recorder import Recorder
from tests.host.engines.test_processes import Project, steady
from tests.host.engines.test_whole_commands import check_services
from tests.host.run.hooked import NOTE
from tests.lab import Host, processes
from tests.lab.fixtures import light_hosts

SITE = """\
hosts: all
resources:
  - file: /srv/dask
    content: "{{ host.name }}\\n"
  - command: slow
    argv: [sh, -c, 'echo run >> /srv/log; until [ -e /srv/go ]; do sleep 0.2; done; touch /srv/done']
    creates: /srv/done
    requires: [file:/srv/dask]
"""


@pytest.fixture(scope="module")
def sixty() -> Iterator[list[Host]]:
    yield from light_hosts(60, "dask")


@pytest.fixture(scope="module")
def workers(sixty: list[Host], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster with TLS. Only the home of its workers has the key and the known_hosts for the hosts."""
    directory = tmp_path_factory.mktemp("dask")
    keys = directory / "home/.ssh"
    keys.mkdir(parents=True)
    shutil.copy(sixty[0].identity, keys / "id_ed25519")
    (keys / "known_hosts").write_text("".join(host.known_hosts.read_text() for host in sixty))
    (keys / "config").write_text(f"IdentityFile {keys}/id_ed25519\nUserKnownHostsFile {keys}/known_hosts\n")
    with cluster.running(directory / "cluster", 3, tls=True, HOME=str(directory / "home")) as running:
        yield running


@dataclass
class Site:
    """A project whose inventory names no keys, and a user without any."""

    root: Path
    running: Cluster

    def write(self, hosts: Sequence[Host], playbook: str) -> None:
        (self.root / "home").mkdir(exist_ok=True)
        lines = "".join(f"  {host.name}: {{address: {host.address}, port: {host.port}}}\n" for host in hosts)
        (self.root / "inventory.yml").write_text(f"hosts:\n{lines}")
        (self.root / "site.yml").write_text(playbook)
        (self.root / "statecfg.toml").write_text('name = "dask"\n')

    @property
    def environment(self) -> dict[str, str]:
        home = str(self.root / "home")
        return {**self.running.environment, "HOME": home, "XDG_STATE_HOME": home, "STATECFG_ENGINE": self.running.url}

    def __call__(self, verb: str, *arguments: str, code: int | None = 0) -> Any:
        return statecfg(verb, *arguments, cwd=self.root, code=code, **self.environment)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **self.environment}
        argv = [sys.executable, "-m", "statecfg", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=self.root, env=environment, stdout=pipe, stderr=pipe, text=True)


def _fresh(hosts: Sequence[Host]) -> None:
    """Let the hosts forget all runs."""
    for host in hosts:
        for name in ("/srv/dask", "/srv/log", "/srv/done"):
            host.path(name).unlink(missing_ok=True)
        shutil.rmtree(host.path("/var/lib/statecfg"))


def _lines(host: Host) -> int:
    """Return how often the command was started on the host."""
    return host.read("/srv/log").count("run") if host.path("/srv/log").exists() else 0


def test_sixty_hosts_and_a_worker_that_dies(sixty: list[Host], workers: Cluster, tmp_path: Path) -> None:
    """The report is that of threads, except for the hosts that were under way."""
    site = Site(tmp_path, workers)
    site.write(sixty, SITE)
    command = site.begin("apply", "site.yml", "--yes", "--forks", "60", "--json-into", "report.json")
    processes.wait_until(lambda: sum(map(_lines, sixty)) >= 45, 120, "hosts under way")
    processes.end(workers.workers.pop())
    for host in sixty:
        host.write("/srv/go", "")
    command.communicate(timeout=200)
    report = json.loads((tmp_path / "report.json").read_text())["hosts"]
    lost = [host for host in sixty if report[host.name]["status"] != "ok"]
    good = [host for host in sixty if host not in lost]
    assert 5 <= len(lost) <= 20, Counter(host["status"] for host in report.values())
    assert command.returncode == 3
    for host in lost:
        assert report[host.name]["status"] == "unknown"
        assert "was lost" in report[host.name]["error"]["summary"]
    assert {_lines(host) for host in lost} == {1}
    assert {_lines(host) for host in good} == {1}
    # The next run completes what was under way, with the other workers.
    site.write(lost[:4], SITE)
    again = site("apply", "site.yml", "--yes", "--forks", "60", "--json").json()["hosts"]
    assert {host["status"] for host in again.values()} == {"ok"}
    # Threads give the same report.
    _fresh(good)
    site.write(good, SITE)
    keys = ["--engine", "threads", "--ssh-config", str(workers.directory.parent / "home/.ssh/config")]
    threads = site("apply", "site.yml", "--yes", "--forks", "60", *keys, "--json").json()["hosts"]
    for host in good:  # those to which the worker was still connecting have a warning that another one did it
        for text in report[host.name].pop("warnings", []):
            assert text.endswith(("is repeated", "another worker connected to this host"))
    assert steady(threads) == {host.name: steady(report[host.name]) for host in good}


def test_hooks_saved_plans_and_facts_are_those_of_threads(
    sixty: list[Host], workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in workers.environment.items():
        monkeypatch.setenv(name, value)
    seen: dict[str, Any] = {}
    for engine in ("threads", workers.url):
        project = Project(tmp_path / engine.partition(":")[0], sixty[:2])
        hook = project.root / "hooks/note.hook"
        hook.mkdir(parents=True)
        (hook / "finalize").write_text(NOTE)
        (hook / "finalize").chmod(0o755)
        spec = {"exec": {"type": "note"}, "events": ["finalize"]}
        (project.root / "hooks/note.yml").write_text(json.dumps({"metadata": {"name": "note"}, "spec": spec}) + "\n")
        reports = [
            project(*words, "--json", "--engine", engine).json()
            for words in (
                ("plan", "site.yml", "--out", "saved.plan"),
                ("apply", "saved.plan"),
                ("facts", "all"),
                ("destroy", "site.yml", "--yes"),
            )
        ]
        seen[engine] = (steady(reports), (hook / "seen").read_text().count("finalize"))
    assert seen["threads"] == seen[workers.url]
    assert seen["threads"][1] > 0


def test_services_and_relations_work(sixty: list[Host], workers: Cluster, tmp_path: Path) -> None:
    options = ["--engine", workers.url, "--ssh-config", str(tmp_path / "fabric/ssh_config")]  # a file of the worker
    check_services(tmp_path, sixty[:2], *options, **workers.environment)


def test_hosts_report_the_truth_if_the_scheduler_dies(sixty: list[Host], workers: Cluster, tmp_path: Path) -> None:
    """Workers of Dask end with their scheduler."""
    hosts, home = sixty[:3], workers.directory.parent / "home"
    with cluster.running(tmp_path / "cluster", 1, tls=False, HOME=str(home)) as running:
        site = Site(tmp_path, running)
        site.write(hosts, SITE.replace("/srv/", "/srv/alone-"))
        command = site.begin("apply", "site.yml", "--yes", "--forks", "2", "--json-into", "report.json")
        logs = [host.path("/srv/alone-log") for host in hosts]
        processes.wait_until(lambda: sum(log.exists() for log in logs) == 2, 120, "two hosts under way")
        running.scheduler.kill()
        processes.wait_until(lambda: running.workers[0].poll() is not None, 120, "the end of the worker")
        for host in hosts:
            host.write("/srv/alone-go", "")
        _, err = command.communicate(timeout=200)
    report = json.loads((tmp_path / "report.json").read_text())["hosts"]
    assert Counter(host["status"] for host in report.values()) == {"unknown": 2, "unreachable": 1}, err
    assert command.returncode == 3, err
    assert "Traceback" not in err, err
    keys = ["--engine", "threads", "--ssh-config", str(home / ".ssh/config")]
    again = site("apply", "site.yml", "--yes", "--json", *keys).json()["hosts"]
    assert {host["status"] for host in again.values()} == {"ok"}
    assert all(host.path("/srv/alone-done").exists() for host in hosts)


def test_ctrl_c_ends_the_run_and_leaves_the_workers(sixty: list[Host], workers: Cluster, tmp_path: Path) -> None:
    hosts = sixty[:4]
    site = Site(tmp_path, workers)
    after = "  - file: /srv/after\n    content: done\n    requires: [command:slow]\n"
    site.write(hosts, (SITE + after).replace("/srv/", "/srv/stopped-"))
    command = site.begin("apply", "site.yml", "--yes")
    processes.wait_until(lambda: all(host.path("/srv/stopped-log").exists() for host in hosts), 120, "the commands")
    command.send_signal(signal.SIGINT)
    assert command.stderr is not None
    while "Stopping: waiting for running actions" not in command.stderr.readline():
        pass
    for host in hosts:
        host.write("/srv/stopped-go", "")
    out, err = command.communicate(timeout=120)
    assert command.returncode == 130, out + err
    assert all(host.path("/srv/stopped-done").exists() for host in hosts), "running actions are completed"
    site("apply", "site.yml", "--yes")
    assert all(host.path("/srv/stopped-after").exists() for host in hosts)


def test_streams_of_a_worker_carry_much_data_in_both_directions(sixty: list[Host], workers: Cluster) -> None:
    importlib.import_module("distributed")  # adds its defaults, which the end of `set` would remove
    data = os.urandom(12_000_000)
    with dask.config.set(workers.settings), contextlib.closing(opened(workers.url)) as engine:
        connection = engine.connect(Target("big", sixty[0].address, user="root"), SshSettings(ssh_config="none"))
        stream = connection.open(["head", "-c", str(len(data))])
        with ThreadPoolExecutor() as threads:
            written = threads.submit(stream.write, data)
            back = b"".join(iter(lambda: stream.read(60) or b"", b""))
            written.result()
        assert back == data


def test_workers_may_open_as_many_files_as_the_hard_limit_allows(workers: Cluster) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    pids = [worker.pid for worker in workers.workers]
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (256, hard))
    importlib.import_module("distributed")  # adds its defaults, which the end of `set` would remove
    with dask.config.set(workers.settings), contextlib.closing(opened(workers.url)):
        limits = {resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in pids}
    assert limits == {(min(hard, 1 << 20), hard)}


def _with_version(directory: Path, version: str) -> str:
    """Make a copy of statecfg with another version; return its directory."""
    package = directory / "statecfg"
    package.mkdir(parents=True)
    for path in (ROOT / "statecfg").iterdir():
        (package / path.name).symlink_to(path)
    text = (package / "__init__.py").read_text()
    (package / "__init__.py").unlink()
    (package / "__init__.py").write_text(re.sub('__version__ = ".*"', f'__version__ = "{version}"', text))
    return str(directory)


def _memory(pid: int) -> bytes:
    """Return what a process has in its memory."""
    found = bytearray()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and "[v" not in line:
                memory.seek(start)
                found += memory.read(end - start)
    return bytes(found)


def test_no_secret_passes_the_scheduler_and_other_versions_are_refused(light_host: Host, tmp_path: Path) -> None:
    canary = "canary-7c1d94-never-here"
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(cluster.running(tmp_path / "cluster", 0, tls=False))
        recorder = stack.enter_context(Recorder(int(running.url.rpartition(":")[2])))
        running.url = f"dask://127.0.0.1:{recorder.port}"
        running.add_worker()
        running.add_worker(PYTHONPATH=_with_version(tmp_path / "other", "0.3.9"))
        (tmp_path / "none/statecfg").mkdir(parents=True)
        (tmp_path / "none/statecfg/__init__.py").write_text("raise ImportError\n")
        without = running.add_worker(PYTHONPATH=str(tmp_path / "none"))
        running.add_worker(DASK_STATECFG__PORTS="many")
        running.await_workers()
        project = Project(tmp_path / "project", [light_host])
        (project.root / "canary").write_text(canary)
        (project.root / "canary").chmod(0o600)
        (project.root / "site.yml").write_text(
            "hosts: all\nvars:\n  canary: !secret {file: canary}\nresources:\n"
            '  - file: /srv/canary\n    mode: "0600"\n    content: "{{ canary }}"\n'
        )
        done = project("apply", "site.yml", "--yes", "--engine", running.url)
        assert light_host.read("/srv/canary") == canary
        assert "0.3.9" in done.err and statecfg_version in done.err
        assert "it can't run statecfg" in done.err
        assert "statecfg.ports is 'many'" in done.err
        assert without.poll() is None
        for process in (running.scheduler, *running.workers):
            for name in ("cmdline", "environ"):
                assert canary.encode() not in Path(f"/proc/{process.pid}/{name}").read_bytes()
        memory = _memory(running.scheduler.pid)
        for seen in (recorder.seen, memory, running.logs().encode()):
            assert canary.encode() not in seen
        assert b"BEGIN CERTIFICATE" in recorder.seen and b"BEGIN CERTIFICATE" in memory, "they contain the task"
        processes.end(running.workers.pop(0))
        refused = project("plan", "site.yml", "--engine", running.url, code=5)
        assert "0.3.9" in refused.err and statecfg_version in refused.err


@each(
    "url, told",
    [
        ("dask://192.0.2.1:8786", "192.0.2.1 is not this machine, and dask:// does not encrypt"),
        ("dask://127.0.0.1", "not the address of a Dask scheduler"),
        ("dask://127.0.0.1:99999", "not the address of a Dask scheduler"),
        ("tls://me@localhost:8786", "not the address of a Dask scheduler"),
        ("dask://127.0.0.1:1", "can't be used: [Errno 111] Connection refused"),
    ],
)
def test_a_cluster_that_can_not_be_used_is_refused(url: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        opened(url)


def _chosen(scheduler: str, *workers: str) -> list[str]:
    """Return the workers that statecfg uses of a cluster whose scheduler names these."""
    cluster = DaskWorkers("dask://127.0.0.1:8786")
    cluster._client = SimpleNamespace(scheduler_info=lambda: {"workers": {name: {} for name in workers}})
    return cluster._workers(scheduler)


HERE, THERE, ENCRYPTED = "tcp://127.0.0.1:40000", "tcp://192.0.2.7:40000", "tls://192.0.2.7:40000"


@each(
    "scheduler, workers",
    [
        ("tcp://127.0.0.1:8786", [HERE]),
        ("tcp://localhost:8786", [HERE, "tcp://127.9.0.1:40001", "tcp://[::1]:40002"]),
        ("tls://192.0.2.1:8786", [ENCRYPTED, "tls://[2001:db8::7]:40000"]),
    ],
)
def test_workers_that_can_be_reached_safely_are_used(scheduler: str, workers: list[str]) -> None:
    assert _chosen(scheduler, *reversed(workers)) == sorted(workers)


@each(
    "scheduler, workers, refused",
    [
        ("tcp://127.0.0.1:8786", [THERE], THERE),
        ("tcp://127.0.0.1:8786", [HERE, THERE], THERE),
        ("tcp://127.0.0.1:8786", ["tcp://[2001:db8::7]:40000"], "tcp://[2001:db8::7]:40000"),
        ("tcp://127.0.0.1:8786", ["inproc://127.0.0.1/7/1"], "inproc://127.0.0.1/7/1"),
        ("tls://127.0.0.1:8786", [HERE], HERE),
        ("tls://192.0.2.1:8786", [ENCRYPTED, THERE], THERE),
    ],
)
def test_a_worker_without_tls_on_another_machine_is_refused(scheduler: str, workers: list[str], refused: str) -> None:
    told = re.escape(f"the worker {refused} is on another machine, and the cluster has no TLS")
    with pytest.raises(InvalidInput, match=told):
        _chosen(scheduler, *workers)


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no workers"):
        _chosen("tcp://127.0.0.1:8786")


def test_missing_certificates_are_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(InvalidInput, match="names no certificates"):
        opened(f"tls://127.0.0.1:{listener.getsockname()[1]}")


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=re.escape("pip install 'statecfg[dask]'")):
        opened("dask://127.0.0.1:1")
