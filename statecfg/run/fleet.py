"""Many hosts at once: a session with each, a limited number at a time, and one report of them all."""

from __future__ import annotations

import getpass
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run import bundle
from statecfg.run.host.driver import HostDriver
from statecfg.run.host.events import Events, Late, Unjoined
from statecfg.run.host.gate import Gate
from statecfg.run.host.request import PATIENCE, Order, Request
from statecfg.transport import Settings
from statecfg.transport.become import Become

if TYPE_CHECKING:
    from statecfg.run.deployment import Deployment

__all__ = ["Become", "Event", "Job", "Options", "Report", "run"]

FORMAT = 1
Report = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What one host is to be.

    :param playbook: its file, relative to the project
    :param owner: the name under which the host remembers whose resources they are; `playbook` where not given
    :param differs: what is known here to be another thing than a saved plan says, so that the host refuses
    :param units: the units that may run hooks there, and what they are made of (see `units.coordinator`)
    :param prune: what left the definition is to go
    :param partial: only some of the playbook's resources: what is not among them has not left the definition
    :param ledger: the lineage of the host's ledger as it was last heard of here, "" where it never was
    :param node: the host as hooks on it are told of it
    :param policy: the playbook as they are told of it
    """

    host: Host
    definition: Definition
    playbook: str
    prune: bool = False
    partial: bool = False
    ledger: str = ""
    node: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""
    units: Mapping[str, Any] = field(default_factory=dict)
    differs: Sequence[str] = ()


@dataclass(frozen=True)
class Event:
    """Something that happened on a host while a run is under way.

    :param kind: one of `HostEvent`
    """

    host: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Options:
    """How to run.

    :param mode: one of `Mode`
    :param forks: hosts talked to at once
    :param keep_going: after a failure, skip only what depends on it
    :param become: whom to become on every host; None: what the inventory says
    :param password: for the hosts that become another user because the inventory says so
    :param lock_timeout: seconds to wait for another run on a host
    :param expect: host → node → fingerprint, of a saved plan: a host that would do anything else is refused
    :param peers: host → the host key of a saved plan, as reports have it: a host that shows another one is refused
    :param confirm: shown the report of the plan before anything is done; False ends the run there
    :param patience: seconds a host may have no news but heartbeats, beside the longest timeout of its nodes
    :param cancel: set to stop: nothing more begins
    :param run: the run's id; a new one where it is not given
    :param agreed: that more than half of a host's resources may go was said in so many words
    :param hooks: host → the hooks that may fire there, as the host takes them
    :param history: of mode "history": `playbook`, `run` (the beginning of an id), `limit`
    :param events: is told of the hosts' lives, and calls the controller's hooks
    :param deployment: the services that are declared
    :param units: host → the hooks of units that a saved plan says are due: where others are, it is refused
    :param join: completes these options and the jobs (hooks, events, what is remembered of hosts) while the hosts are
        being connected to; what it raises ends the run before anything is done
    """

    mode: str = Mode.PLAN
    forks: int = 16
    keep_going: bool = False
    become: Become | None = None
    lock_timeout: float = 0.0
    settings: Settings | None = None
    expect: Mapping[str, Mapping[str, str]] | None = None
    confirm: Callable[[Report], bool] | None = None
    password: str | None = field(default=None, repr=False)
    patience: float = PATIENCE
    cancel: threading.Event = field(default_factory=threading.Event)
    run: str = ""
    agreed: bool = False
    hooks: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    history: Mapping[str, Any] | None = None
    events: Events | None = None
    deployment: Deployment | None = None
    units: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    peers: Mapping[str, str] = field(default_factory=dict)
    join: Callable[[Options, Sequence[Job]], tuple[Options, Sequence[Job]]] | None = None


def run(jobs: Sequence[Job], options: Options, listen: Callable[[Event], None]) -> Report:
    """Run on all hosts; return the report (format 1).

    :param listen: gets every event, one at a time, from whichever thread
    :raises Exception: what `options.join` raises
    """
    lock = threading.Lock()

    def emit(host: str, kind: str, data: Mapping[str, Any]) -> None:
        with lock:
            listen(Event(host, kind, data))

    order = Order(
        options.run or uuid.uuid4().hex[:12],
        options.mode,
        f"{getpass.getuser()}@{socket.gethostname()}",
        options.keep_going,
        options.lock_timeout,
        options.settings,
        options.become,
        options.patience,
        options.password,
    )
    slots = threading.Semaphore(max(1, options.forks))
    gate = Gate(slots) if options.confirm is not None else None
    joined = _Joined()
    drivers = [
        HostDriver(
            _request(job, options, order),
            partial(emit, job.host.name),
            partial(joined.of, job.host.name),
            gate,
            options.cancel,
        )
        for job in jobs
    ]
    threads = [threading.Thread(target=_drive, args=(driver, slots), daemon=True) for driver in drivers]
    for thread in threads:
        thread.start()
    joined.join(options, jobs)
    playbook = jobs[0].playbook if jobs else ""
    if gate is not None and options.confirm is not None:
        for driver in drivers:
            driver.gate_pass.waiting.wait()
        gate.answer = options.confirm(_report(order, playbook, drivers))
    for thread in threads:
        while thread.is_alive():  # a plain join would hold up Ctrl-C
            thread.join(0.5)
    return _with_shared_ledgers(_report(order, playbook, drivers))


def _with_shared_ledgers(report: Report) -> Report:
    """Return a report that says by name which hosts are the same machine and user: they share one ledger.

    A host that another name of the same run has locked tells no ledger: the holder's run id and the host key say it.
    """
    names: dict[str, list[str]] = {}
    for name, host in report["hosts"].items():
        if host.get("ledger"):
            names.setdefault(host["ledger"], []).append(name)
    for name, host in report["hosts"].items():
        same = names.get(host.get("ledger") or "", ())
        others = [other for other in same if other != name] or _holders(report, host)
        if others:
            text = f"{name} and {', '.join(others)} are names of the same machine and user; use one of them"
            host["warnings"] = [*host.get("warnings", ()), text]
    return report


def _holders(report: Report, host: Mapping[str, Any]) -> list[str]:
    """Return the names whose run holds a locked host, if it is this run."""
    if host["status"] != HostStatus.LOCKED or (host.get("holder") or {}).get("run") != report["run"]:
        return []
    same = [name for name, other in report["hosts"].items() if other is not host and other.get("ledger")]
    return [name for name in same if report["hosts"][name].get("peer") == host.get("peer")] or same


class _Joined:
    """What is looked up while the hosts are being connected to, and who waits for it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.options: Options | None = None
        self.jobs: dict[str, Job] = {}

    def join(self, options: Options, jobs: Sequence[Job]) -> None:
        """Look it up. Raises what `options.join` raises, once nobody waits for it any more."""
        try:
            found, complete = (options, jobs) if options.join is None else options.join(options, jobs)
            self.jobs = {job.host.name: job for job in complete}
            self.options = found
        finally:
            self.done.set()

    def of(self, host: str) -> Late:
        """Wait for it; return what a host is to know. Raises Unjoined where it could not be had."""
        self.done.wait()
        if self.options is None:
            raise Unjoined
        job = self.jobs[host]
        return job.definition, _more(job, self.options), self.options.events


def _request(job: Job, options: Options, order: Order) -> Request:
    """Return what one host is asked for."""
    return Request(
        job.host,
        job.definition,
        job.owner or job.playbook,
        bundle.build(job.definition.types),
        order,
        None if options.expect is None else options.expect.get(job.host.name, {}),
        options.confirm is not None,
        _more(job, options),
        options.peers.get(job.host.name, ""),
    )


def _more(job: Job, options: Options) -> dict[str, Any]:
    """Return what the executor is to know of a job beside its definition; what says nothing is left out."""
    more: dict[str, Any] = {
        "prune": job.prune,
        "partial": job.partial,
        "yes": options.agreed,
        "ledger": job.ledger,
        "node": dict(job.node),
        "policy": dict(job.policy),
        "hooks": list(options.hooks.get(job.host.name, ())),
        "history": options.history,
        "units": dict(job.units),
        "differs": list(job.differs),
    }
    return {key: value for key, value in more.items() if value}


def _drive(driver: HostDriver, slots: threading.Semaphore) -> None:
    """Drive one session in a slot of its own; a host that waits for an answer gives its slot up."""
    slots.acquire()
    released = threading.Event()

    def release() -> None:
        driver.gate_pass.waiting.wait()
        slots.release()
        released.set()

    threading.Thread(target=release, daemon=True).start()
    try:
        driver.run()
    except Exception as problem:  # a bug of ours: this host's report shows it, and the others go on
        driver.failed(problem)
    released.wait()


def _report(order: Order, playbook: str, drivers: Sequence[HostDriver]) -> Report:
    """Return the report of what is known now."""
    return {
        "format": FORMAT,
        "run": order.run,
        "mode": order.mode,
        "playbook": playbook,
        "hosts": {driver.host: driver.report for driver in drivers},
    }
