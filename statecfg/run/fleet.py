"""Runs on many hosts: a limited number of sessions at a time, and one report of all hosts."""

from __future__ import annotations

import getpass
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run import bundle
from statecfg.run.awaited import Awaited
from statecfg.run.deployment import Deployment
from statecfg.run.folding import Folding
from statecfg.run.host.barrier import Barrier
from statecfg.run.host.driver import HostDriver
from statecfg.run.host.events import Events, Late, Unjoined
from statecfg.run.host.gate import Gate, Pace, Pass, Slots
from statecfg.run.host.request import CommonRequest, HostRequest
from statecfg.run.host.shared_content import LIMIT, SharedContent
from statecfg.run.job import Job
from statecfg.run.options import Access, Expected, Limits
from statecfg.run.report_model import HostData, Report, make_report
from statecfg.run.sessions import Sessions

__all__ = ["Access", "Event", "Expected", "Limits", "Options", "Report", "RunHooks", "run"]


@dataclass(frozen=True)
class Event:
    """Something that happened on a host during a run.

    :param name: one of `RunEvent`
    """

    host: str
    name: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class RunHooks:
    """The hooks of a run.

    :param around: host → the hooks that may be called for its resources, in the form that the host receives
    :param events: follows the hosts of the run, and calls the controller's hooks
    :param mask: masks the secrets in a host's report, so that it can be stored before the run has ended
    """

    around: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    events: Events | None = None
    mask: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Options:
    """The options of a run.

    :param mode: one of `Mode`
    :param expected: what a saved plan expects; None without a saved plan
    :param confirm: receives the report of the plan before any change; returns whether to apply it
    :param cancel: set to stop the run: nothing more begins
    :param run: the run's id; "" for a new one
    :param agreed: whether the user explicitly allowed removing more than half of a host's resources
    :param query: for mode "history": `playbook`, `run` (the beginning of an id), `limit`, `node`; for mode "reveal":
        `name`; for mode "facts": the request for facts in addition to those that every host sends
    :param deployment: the declared services
    :param join: completes these options and the jobs (hooks, events, stored data of hosts) while statecfg connects to
        the hosts; if it raises an error, the run ends before any change
    """

    mode: str = Mode.PLAN
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    expected: Expected | None = None
    confirm: Callable[[Report], bool] | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    run: str = ""
    agreed: bool = False
    hooks: RunHooks = field(default_factory=RunHooks)
    query: Mapping[str, Any] | None = None
    deployment: Deployment | None = None
    join: Callable[[Options, Sequence[Job]], tuple[Options, Sequence[Job]]] | None = None


class Readers(Protocol):
    """Read the reports of hosts during the run."""

    def begin(self) -> None:
        """Note that all definitions are valid, and the user has agreed: no error can end the run from now on."""

    def finished(self, name: str, report: HostData) -> None:
        """Read the report of a host, which no longer changes. Several threads call this at the same time."""


def run(
    jobs: Sequence[Job],
    options: Options,
    listen: Callable[[Event], None],
    awaited: Awaited | None = None,
    readers: Readers | None = None,
) -> Report:
    """Run on all hosts; return the report (format 1).

    :param listen: called with every event, one at a time, from different threads
    :param awaited: completes the jobs of hosts that wait for facts; None if there are none
    :param readers: are told of the hosts' reports; None if there are none
    :raises Exception: any error of `options.join`
    :raises InvalidInput: a definition that depends on facts is wrong; no host was changed
    """
    lock, ledgers = threading.Lock(), _Ledgers()
    folding = Folding() if len(jobs) > 1 else None

    def emit(host: str, name: str, data: Mapping[str, Any]) -> None:
        with lock:
            if name == RunEvent.FINISHED:
                ledgers.finished(host, data["report"])
            listen(Event(host, name, data))
        if name == RunEvent.FINISHED:
            if folding is not None:
                folding.fold(data["report"])
            if readers is not None:
                readers.finished(host, data["report"])

    order = CommonRequest(
        options.run or uuid.uuid4().hex[:12],
        options.mode,
        f"{getpass.getuser()}@{socket.gethostname()}",
        options.access,
        options.limits,
        SharedContent(LIMIT if len(jobs) > 1 else 0),
    )
    limits = options.limits
    slots = Slots(limits.forks, limits.connected, Pace(limits.connect_rate, options.cancel))
    gate = Gate(len(jobs)) if options.confirm is not None else None
    joined, barrier = _Joined(), Barrier(awaited, [job.host.name for job in jobs if job.needs])

    def driver(request: HostRequest) -> HostDriver:
        name = request.host.name
        gate_pass = Pass(slots, gate, barrier)
        return HostDriver(request, partial(emit, name), partial(joined.of, name), gate_pass, options.cancel)

    # An error in a definition, such as a node type that can't be sent, ends the run here, before any session starts.
    requests = [_request(job, options, order, awaited) for job in jobs]
    sessions = Sessions(requests, driver, slots)
    options.access.load(request.target for request in requests)
    sessions.start()
    try:
        joined.join(options, jobs)
        barrier.complete_jobs()
        playbook = jobs[0].playbook if jobs else ""
        if gate is not None and options.confirm is not None:
            gate.waiting.wait()
            gate.answer = options.confirm(_report(order, playbook, sessions.reports))
    except BaseException:
        sessions.stop()
        raise
    if readers is not None and (gate is None or gate.answer):
        readers.begin()
    sessions.wait()
    report = _report(order, playbook, sessions.reports)
    for name, host in report["hosts"].items():
        _warn_of_names(name, host, _holders(report, host))
    return report


class _Ledgers:
    """Finds hosts that share a ledger: they are names of the same machine and user."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}  # lineage of a ledger → the hosts with it that have finished

    def finished(self, name: str, host: HostData) -> None:
        """Warn if the host shares its ledger with hosts that finished earlier. Their reports no longer change."""
        if host.get("ledger"):
            names = self._names.setdefault(host["ledger"], [])
            _warn_of_names(name, host, names)
            names.append(name)


def _warn_of_names(name: str, host: HostData, others: Sequence[str]) -> None:
    if others:
        text = f"{name} and {', '.join(others)} are names of the same machine and user; use one of them"
        host["warnings"] = [*host.get("warnings", ()), text]


def _holders(report: Report, host: HostData) -> list[str]:
    """Return the other names under which this run holds a locked host, none if another run holds it.

    Such a host reports no ledger. The run id of the lock's holder and the host key show which hosts are the same.
    """
    if host["status"] != HostStatus.LOCKED or (host.get("holder") or {}).get("run") != report["run"]:
        return []
    same = [name for name, other in report["hosts"].items() if other is not host and other.get("ledger")]
    return [name for name in same if report["hosts"][name].get("peer") == host.get("peer")] or same


class _Joined:
    """The data that is looked up while statecfg connects to the hosts."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.options: Options | None = None
        self.jobs: dict[str, Job] = {}

    def join(self, options: Options, jobs: Sequence[Job]) -> None:
        """Look up the data and wake the waiting threads.

        :raises Exception: any error of `options.join`
        """
        try:
            found, complete = (options, jobs) if options.join is None else options.join(options, jobs)
            self.jobs = {job.host.name: job for job in complete}
            self.options = found
        finally:
            self.done.set()

    def of(self, host: str) -> Late:
        """Wait for the data; return the part for one host.

        :raises Unjoined: if the look-up failed
        """
        self.done.wait()
        if self.options is None:
            raise Unjoined
        job = self.jobs[host]
        return job.definition, _more(job, self.options), self.options.hooks.events


def _request(job: Job, options: Options, order: CommonRequest, awaited: Awaited | None) -> HostRequest:
    """Return the request to one host."""
    facts = options.query if options.mode == Mode.FACTS else None
    host, expected = job.host.name, options.expected
    if job.needs and awaited is not None:
        facts = awaited.request(job.needs)
    return HostRequest(
        job.host,
        job.definition,
        job.owner or job.playbook,
        bundle.build(job.definition.types),
        order,
        None if expected is None else expected.nodes.get(host, {}),
        options.confirm is not None,
        _more(job, options),
        "" if expected is None else expected.peers.get(host, ""),
        facts,
        bundle.first_parts(options.mode, facts is not None),
    )


def _more(job: Job, options: Options) -> Mapping[str, Any]:
    """Return the additional data of a job for the executor, without empty values."""
    more: dict[str, Any] = {
        "prune": job.prune,
        "partial": job.partial,
        "claims": job.definition.claims,
        "yes": options.agreed,
        "ledger": job.ledger,
        **job.for_hooks,
        "hooks": list(options.hooks.around.get(job.host.name, ())),
        "history": options.query if options.mode in (Mode.HISTORY, Mode.REVEAL) else None,
        "units": dict(job.units),
        "differs": list(job.differs),
    }
    return {key: value for key, value in more.items() if value}


def _report(order: CommonRequest, playbook: str, hosts: Mapping[str, HostData]) -> Report:
    """Return the report of the run so far."""
    return make_report(order.run, order.mode, playbook, dict(hosts))
