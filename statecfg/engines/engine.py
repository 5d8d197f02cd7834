"""Engines: what connects to the hosts of a run."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from statecfg import transport
from statecfg.engines.link import Workers
from statecfg.problems import InvalidInput, problem
from statecfg.problems.suggestions import suggest
from statecfg.transport import LOCAL, HostConnection, SshSettings, Target, Unreachable, WorkerLost

if TYPE_CHECKING:
    from statecfg.engines.remote_transport import EngineWorker

ENGINES = ("threads", "processes", "processes:N", "tls://HOST:PORT", "dask://127.0.0.1:PORT")
MOST = 256  # worker processes
HINT = "install the same statecfg for the workers, or use --engine threads, which needs none"


def opened(text: str) -> Engine:
    """Start an engine. The caller must close it.

    :param text: one of `ENGINES`
    :raises InvalidInput: it is not an engine, or it can't be used
    """
    name, _, number = text.partition(":")
    if text == "threads":
        return Threads()
    if text == "processes" or (name == "processes" and number.isdecimal() and 0 < int(number) <= MOST):
        from statecfg.engines.processes import ProcessWorkers

        return WorkerEngine(ProcessWorkers(int(number) if number else None))
    if name in ("dask", "tls") and number.startswith("//"):
        from statecfg.engines.dask import DaskWorkers

        return WorkerEngine(DaskWorkers(text), here=False)
    raise InvalidInput([problem("SC0453", f"`{text}` is not an engine", suggest(text, ENGINES, "available"))])


class Engine(Protocol):
    """Connects to hosts.

    :ivar here: whether the connections begin on this machine, with its keys and its ssh_config
    :ivar warnings: what the user should know about workers that are not used
    """

    here: bool
    warnings: tuple[str, ...]

    def load(self, targets: Iterable[Target]) -> None:
        """Load what `connect` needs for these targets; see `statecfg.transport.load`."""

    def connect(self, target: Target, settings: SshSettings | None = None) -> HostConnection:
        """Connect to a host; see `statecfg.transport.connect`."""

    def close(self) -> None:
        """Close all connections of workers, and end the workers. Repeated calls change nothing."""


class Threads:
    """Connects from the threads of this process. It has no workers."""

    here = True
    warnings: tuple[str, ...] = ()

    def load(self, targets: Iterable[Target]) -> None:
        """Load what `connect` needs for these targets; see `statecfg.transport.load`."""
        transport.load(targets)

    def connect(self, target: Target, settings: SshSettings | None = None) -> HostConnection:
        """Connect to a host; see `statecfg.transport.connect`."""
        return transport.connect(target, settings)

    def close(self) -> None:
        """Do nothing: each thread closes its connection itself."""


class WorkerEngine:
    """Connects from workers. Each host gets the worker that has the fewest hosts.

    :param workers: starts the workers
    :param here: whether the workers are on this machine
    :raises InvalidInput: no worker can be used
    """

    def __init__(self, workers: Workers, here: bool = True) -> None:
        self.here = here
        self._source, self._lock = workers, threading.Lock()
        from statecfg.engines.remote_transport import EngineWorker  # a run without workers does not need it

        self._workers = [EngineWorker(link) for link in workers.start()]
        unfit = {worker: why for worker in self._workers if (why := worker.mismatch())}
        for worker, why in unfit.items():
            worker.end(why)
        if len(unfit) == len(self._workers):
            self.close()
            raise InvalidInput([problem("SC0453", "; ".join(unfit.values()) or "the engine has no workers", HINT)])
        self.warnings = tuple(f"{why}; it is not used" for why in unfit.values())

    def load(self, targets: Iterable[Target]) -> None:
        """Load nothing: the workers connect."""

    def connect(self, target: Target, settings: SshSettings | None = None) -> HostConnection:
        """Connect to a host from a worker, or from here if it is this machine; see `statecfg.transport.connect`.

        A worker that is lost meanwhile is replaced by another one.
        """
        if target.name == LOCAL or target.transport == "local":
            return transport.connect(target, settings)
        lost: list[str] = []
        while True:
            worker = self._least_loaded(target.name)
            try:
                shared = replace(settings or SshSettings(), processes=len(self._workers))
                connection = worker.connect(target, shared)
            except BaseException as failure:
                worker.count(-1)
                if not isinstance(failure, WorkerLost):
                    raise
                lost.append(failure.summary)
            else:
                connection.warnings += tuple(f"{why}; another worker connected to this host" for why in lost)
                return connection

    def close(self) -> None:
        """Close all connections of workers, and end the workers."""
        for worker in self._workers:
            worker.end("the run has ended")
        self._source.close()

    def _least_loaded(self, host: str) -> EngineWorker:
        """Return a worker, and count one more host for it.

        :raises Unreachable: all workers are lost
        """
        with self._lock:
            working = [worker for worker in self._workers if not worker.gone]
            if not working:
                why = "; ".join(worker.gone for worker in self._workers)
                raise Unreachable(host, f"no worker is left to connect to it: {why}", "Run the command again.")
            worker = min(working, key=lambda worker: worker.load)
            worker.count(1)
            return worker
