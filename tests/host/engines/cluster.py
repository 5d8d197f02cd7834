"""A real Dask cluster on this machine: a scheduler and workers as separate processes, with TLS or without."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import ROOT
from tests.lab import processes

DASK = [sys.executable, "-c", "from dask.__main__ import main; main()"]
STARTED = 120.0  # seconds; a busy machine starts programs slowly


@dataclass
class Cluster:
    """A running cluster.

    :ivar url: the scheduler's address, for --engine
    :ivar environment: what the controller needs, too
    :ivar log_files: process id → log of the worker. Stopped workers stay in it
    """

    directory: Path
    url: str
    environment: dict[str, str]
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    log_files: dict[int, Path] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Dask in the environment, for a controller in this process."""
        prefix = "DASK_"
        names = {name: name[len(prefix) :].lower() for name in self.environment if name.startswith(prefix)}
        return {new.replace("__", ".").replace("_", "-"): self.environment[old] for old, new in names.items()}

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start one more worker, without waiting for it."""
        name = f"worker{len(self.log_files)}"
        arguments = [self.url.replace("dask:", "tcp:"), "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1"]
        arguments += ["--no-dashboard", "--memory-limit", "0", "--local-directory", str(self.directory), "--name", name]
        log = self.directory / f"{name}.log"
        worker = _start("worker", arguments, log, {**self.environment, **environment})
        self.workers.append(worker)
        self.log_files[worker.pid] = log
        return worker

    def await_workers(self) -> None:
        """Wait until the scheduler knows every worker."""

        def known() -> bool:
            assert all(worker.poll() is None for worker in self.workers), self.logs()
            return all("Registered to:" in self.log_files[worker.pid].read_text() for worker in self.workers)

        processes.wait_until(known, STARTED, "the workers of Dask")

    def address(self, worker: subprocess.Popen[bytes]) -> str:
        """Return the address of a worker that the scheduler knows."""
        found = re.search(r"Start worker at: +(\S+)", self.log_files[worker.pid].read_text())
        assert found is not None, self.logs()
        return found[1]

    def logs(self) -> str:
        """Return what the scheduler and the workers have logged."""
        return "\n".join(path.read_text() for path in sorted(self.directory.glob("*.log")))


@contextlib.contextmanager
def running(directory: Path, workers: int, *, tls: bool, **environment: str) -> Iterator[Cluster]:
    """Start a cluster, and stop it at the end."""
    directory.mkdir(parents=True)
    environment = {**(_certificates(directory) if tls else {}), **environment}
    file = directory / "scheduler.json"
    arguments = ["--host", f"{'tls' if tls else 'tcp'}://127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    arguments += ["--no-dashboard"]
    scheduler = _start("scheduler", arguments, directory / "scheduler.log", environment)
    started = [scheduler]
    try:
        processes.wait_until(file.exists, STARTED, "the scheduler of Dask")
        processes.wait_until(lambda: file.read_text().endswith("}"), 10, "its address")
        url = json.loads(file.read_text())["address"].replace("tcp:", "dask:")
        cluster = Cluster(directory, url, environment, scheduler)
        started = cluster.workers
        for _ in range(workers):
            cluster.add_worker()
        cluster.await_workers()
        yield cluster
    finally:
        for process in {*started, scheduler}:
            processes.end(process)


def _certificates(directory: Path) -> dict[str, str]:
    """Make one certificate for all roles; return the settings that make Dask use it."""
    key, certificate = str(directory / "key.pem"), str(directory / "certificate.pem")
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*argv, "-keyout", key, "-out", certificate, "-subj", "/CN=dask"], check=True, capture_output=True)
    settings = {"CA_FILE": certificate}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        settings |= {f"{role}__CERT": certificate, f"{role}__KEY": key}
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": value for name, value in settings.items()}


def _start(program: str, arguments: list[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    values = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    with log.open("wb") as sink:
        return subprocess.Popen(
            [*DASK, program, *arguments], env=values, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
        )
