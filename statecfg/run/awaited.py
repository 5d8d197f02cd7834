"""The hosts of a playbook whose definitions depend on facts. Their jobs are completed when the facts are known."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statecfg.facts.catalogue import OWN
from statecfg.graph import opaque
from statecfg.problems import InvalidInput, Problem, collecting, inputs
from statecfg.run import bundle

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.plays import Play
    from statecfg.problems import SourceLocation
    from statecfg.run.hook_failure import HookFailure
    from statecfg.run.host_jobs import HostJobs
    from statecfg.run.job import Job

    Jobs = dict[str, Job]  # by the name of the host
    Reshaping = Callable[[list[Job]], tuple[list[Job], list[HookFailure]]]


NONE: Mapping[str, str] = {}
CORRECT = "Correct the fact, or make the definition work without it."


@dataclass(frozen=True)
class Refused:
    """Why a host gets no definition."""

    summary: str
    detail: str = "Nothing was changed on this host."
    hint: str = ""


class Awaited:
    """Completes the jobs of the hosts that wait for facts. Only one thread may call it.

    :param jobs: evaluates the plays
    :param hosts: the waiting hosts with their plays
    :param names: host → the facts to ask it for first
    :param reshaped: lets hooks change the graphs of jobs
    :ivar then: called one after another with all completed jobs; each returns them with its changes
    :ivar secrets: name → value of the secrets of completed jobs
    """

    def __init__(
        self,
        jobs: HostJobs,
        hosts: Sequence[tuple[Host, list[Play]]],
        names: Mapping[str, Sequence[str]],
        reshaped: Reshaping,
    ) -> None:
        self.names = names
        self.then: list[Callable[[Jobs], Jobs]] = []
        self.secrets: dict[str, str] = {}
        self.complete: Jobs = {}
        self._jobs, self._reshaped = jobs, reshaped
        self._hosts = {host.name: (host, plays) for host, plays in hosts}
        self._refused: dict[str, Refused] = {}
        self._values: dict[str, dict[str, Any]] = {}
        self._inputs, self._directory = inputs.current(), os.getcwd()

    def request(self, names: Collection[str]) -> dict[str, Any]:
        """Return a request for facts in the form that hosts receive."""
        own = {name.removeprefix(f"{OWN}."): self._jobs.own[name[len(OWN) + 1 :]] for name in names if "." in name}
        return {"names": sorted(names), "own": {name: [fact.file, fact.source] for name, fact in own.items()}}

    def add(self, host: str, values: Mapping[str, Any], failed: Mapping[str, str] = NONE) -> Sequence[str]:
        """Evaluate the definition of a host with more facts.

        :param values: name of a fact → value
        :param failed: name of a fact → why the host could not collect it; this matters only if the definition reads it
        :returns: the facts to ask for
        """
        known = self._values.setdefault(host, {})
        known.update(values)
        with self._working():
            job = self._jobs.job(*self._hosts[host], known)
        missing = tuple(self._jobs.facts[host].missing)
        if job is None:
            return ()
        if not missing:
            self.complete[host] = job
        for name in missing:
            if name in failed:
                self._refused[host] = Refused(f"the fact `{name}` failed: {failed[name]:.1000}", hint=CORRECT)
                return ()
        return missing

    def finish(self) -> Mapping[str, Job | Refused]:
        """Return host → completed job, after all hosts have answered or failed.

        :raises InvalidInput: a definition is wrong; with the problems of all hosts
        """
        with self._working(), collecting() as problems:
            wrong = self._jobs.problems.problems()
            if wrong:
                raise InvalidInput(sorted(wrong, key=_place))
            jobs, failed = self._reshaped([*self.complete.values()])
            for job in jobs:
                bundle.build(job.definition.types)
        if problems:
            raise InvalidInput(problems)
        self.secrets.update(secret for job in jobs for secret in job.definition.secrets.items())
        self.complete = {job.host.name: job for job in jobs}
        for change in self.then:
            self.complete = change(self.complete)
        return {**self.complete, **self._refused, **{failure.host: Refused(str(failure)) for failure in failed}}

    def used(self, host: str) -> dict[str, Any]:
        """Return path → value of the facts that the completed definition of a host used."""
        return dict(self._jobs.facts[host].used) if host in self.complete else {}

    def places(self) -> dict[SourceLocation, tuple[set[str], set[str]]]:
        """Return the source locations that read missing facts, each with the names of the facts and of the hosts."""
        places: dict[SourceLocation, tuple[set[str], set[str]]] = {}
        for host in self.names:
            for fact, locations in self._jobs.facts[host].missing.items():
                for location in locations:
                    facts, hosts = places.setdefault(location, (set(), set()))
                    facts.add(fact)
                    hosts.add(host)
        return dict(sorted(places.items()))

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Evaluate in the same environment as the first time, and keep the secrets that are used."""
        from statecfg.playbook.output import to_stderr

        with to_stderr(), inputs.recording_into(self._inputs), opaque.recording() as used, _directory(self._directory):
            yield
        self.secrets.update((name, value.reveal()) for name, value in used.items())


def _place(item: Problem) -> tuple[str, int, int]:
    file, line, column = item.places[0] if item.places else ("", 0, 0)
    return file, line, column or 0


def _directory(path: str) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if os.getcwd() == path else contextlib.chdir(path)
