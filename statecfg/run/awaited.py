"""The hosts of a playbook whose definitions depend on facts. Their jobs are completed when the facts are known."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.facts.catalogue import OWN
from statecfg.facts.reading import named
from statecfg.graph import opaque
from statecfg.playbook import secret_keys
from statecfg.problems import InvalidInput, Problem, collecting, inputs
from statecfg.problems.frozen import dataclass
from statecfg.run import bundle
from statecfg.run.host_jobs import OF_FACTS

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.plays import Play
    from statecfg.problems import SourceLocation
    from statecfg.run.hook_failure import HookFailure
    from statecfg.run.host_jobs import HostJobs
    from statecfg.run.job import Job

    Jobs = dict[str, Job]  # by the name of the host
    Reshaping = Callable[[list[Job]], tuple[list[Job], list[HookFailure]]]
    Wanted = Mapping[str, Sequence[str]]  # host → facts


NONE: Mapping[str, str] = {}
SAME = 3  # hosts that fail at one place before another host succeeds
CORRECT = "Correct the fact, or make the definition work without it."
REACH = "Run the command again when it can be reached. With --limit, exclude it, to use its facts in the store."
MENTION = "Read this fact in the playbook itself, at the start of the play."


@dataclass(frozen=True)
class RefusedHost:
    """Why a host gets no definition."""

    summary: str
    detail: str = "Nothing was changed on this host."
    hint: str = ""


class ReceivedFacts:
    """Which facts the hosts have sent, and which they can't send.

    :param asked: the hosts that are asked for facts first
    :ivar due: the hosts that were asked and have not answered yet
    :ivar failed: host → name of a fact → why the host could not collect it
    :ivar lost: the hosts whose sessions have ended
    """

    def __init__(self, asked: Collection[str]) -> None:
        self.asked, self.due = frozenset(asked), set(asked)
        self.failed: dict[str, dict[str, str]] = {}
        self.lost: set[str] = set()

    def why_not(self, host: str, owner: str, names: Collection[str]) -> RefusedHost | None:
        """Return why a host's definition can't be completed; None if the missing facts can still arrive.

        :param owner: the host of the facts
        :param names: the names of the missing facts
        """
        shown = {name: named(owner, host, [name])[0] for name in names}
        for name, path in shown.items():
            why = self.failed.get(owner, {}).get(name)
            if why is not None:
                return RefusedHost(f"the fact `{path}` failed: {why:.1000}", hint=CORRECT)
        if owner in self.lost:
            first = next(iter(shown.values()))
            return RefusedHost(f"its definition needs the fact `{first}`, and {owner} could not be asked", hint=REACH)
        if owner not in self.asked:
            first = next(iter(shown.values()))
            return RefusedHost(f"its definition needs the fact `{first}` too late to ask {owner}", hint=MENTION)
        return None


class Awaited:
    """Completes the jobs of the hosts that wait for their own facts or for those of other hosts. Only one thread may
    call it.

    :param jobs: evaluates the plays
    :param hosts: the waiting hosts with their plays
    :param waiting: their jobs so far; `needs` has the facts to ask a host for first
    :param reshaped: lets hooks change the graphs of jobs
    :ivar names: host → the facts to ask it for first
    :ivar then: called one after another with all completed jobs; each returns them with its changes
    :ivar secrets: name → value of the secrets of completed jobs
    """

    def __init__(
        self,
        jobs: HostJobs,
        hosts: Sequence[tuple[Host, list[Play]]],
        waiting: Sequence[Job],
        reshaped: Reshaping,
    ) -> None:
        self.names: dict[str, Sequence[str]] = {job.host.name: job.needs for job in waiting}
        self.then: list[Callable[[Jobs], Jobs]] = []
        self.secrets: dict[str, str] = {}
        self.complete: Jobs = {job.host.name: job for job in waiting if not jobs.readings[job.host.name].missing}
        self._jobs, self._reshaped = jobs, reshaped
        self._hosts = {host.name: (host, plays) for host, plays in hosts}
        self._received = ReceivedFacts(self.names)
        self._refused: dict[str, RefusedHost] = {}
        self._blamed: dict[str, list[Problem]] = {}
        self._pending = {host: jobs.readings[host].missing for host in self.names if host not in self.complete}
        self._environment = inputs.current(), secret_keys.current(), os.getcwd()

    @property
    def waiting_for_facts(self) -> bool:
        """Whether a host's answer is due."""
        return bool(self._received.due)

    def request(self, names: Collection[str]) -> Mapping[str, Any]:
        """Return a request for facts in the form that hosts receive."""
        known = self._jobs.source.own
        own = {name.removeprefix(f"{OWN}."): known[name[len(OWN) + 1 :]] for name in names if "." in name}
        return {"names": sorted(names), "own": {name: [fact.file, fact.source] for name, fact in own.items()}}

    def add(self, host: str, values: Mapping[str, Any], failed: Mapping[str, str] = NONE) -> Wanted:
        """Take the answer of a host; evaluate the definitions that have waited for it.

        :param values: name of a fact → value
        :param failed: name of a fact → why the host could not collect it; this matters only if a definition reads it
        :returns: host → further facts to ask it for
        """
        self._jobs.source.collected[host].update(values)
        self._received.failed.setdefault(host, {}).update(failed)
        self._received.due.discard(host)
        return self._advance()

    def lost(self, host: str) -> Wanted:
        """Note that the session with a host has ended, so that it can't be asked. For the result see `add`."""
        self._received.due.discard(host)
        self._received.lost.add(host)
        self._pending.pop(host, None)
        self.complete.pop(host, None)
        return self._advance()

    def _advance(self) -> Wanted:
        """Evaluate the definitions whose requested facts have all arrived; return host → further facts to ask for."""
        wanted: dict[str, dict[str, None]] = {}
        for host, missing in list(self._pending.items()):
            if not self._received.due.isdisjoint((host, *missing)):
                continue
            del self._pending[host]
            with self._working():
                job = self._jobs.job(*self._hosts[host])
            blamed = self._jobs.problems.take(host, OF_FACTS) if job is None else []
            if blamed:
                self._blame(host, blamed)
                continue
            missing = self._jobs.readings[host].missing
            why = next(filter(None, (self._received.why_not(host, *item) for item in missing.items())), None)
            if why is not None:
                self._refused[host] = why
            elif missing and job is not None:
                self._pending[host] = missing
                for other, names in missing.items():
                    wanted.setdefault(other, {}).update(dict.fromkeys(names))
            elif job is not None:
                self.complete[host] = job
        self._received.due |= wanted.keys()
        return {host: tuple(names) for host, names in wanted.items()}

    def _blame(self, host: str, problems: list[Problem]) -> None:
        """Note that the facts of a host make its definition fail; only this host fails.

        :raises InvalidInput: the same happened on the first few hosts, so the definition is wrong
        """
        self._blamed[host] = problems
        same = sum(blamed[0].locations == problems[0].locations for blamed in self._blamed.values())
        if same > SAME and not self.complete:
            raise InvalidInput(problems)

    def finish(self) -> Mapping[str, Job | RefusedHost]:
        """Return host → completed job, after all hosts have answered or failed.

        :raises InvalidInput: a definition is wrong; with the problems of all hosts
        """
        with self._working(), collecting() as problems:
            wrong = self._jobs.problems.problems()
            if wrong:
                raise InvalidInput(sorted(wrong, key=_sort_key))
            jobs, failed = self._reshaped([*self.complete.values()])
            for job in jobs:
                bundle.build(job.definition.types)
        if problems:
            raise InvalidInput(problems)
        self.secrets.update(secret for job in jobs for secret in job.definition.secrets.items())
        self.complete = {job.host.name: job for job in jobs}
        for change in self.then:
            self.complete = change(self.complete)
        self._refused.update((host, _too_much(blamed[0])) for host, blamed in self._blamed.items())
        return {**self.complete, **self._refused, **{failure.host: _refused(failure) for failure in failed}}

    def locations(self) -> dict[SourceLocation, tuple[set[str], set[str]]]:
        """Return the source locations that read missing facts, each with the names of the facts and of the hosts."""
        found: dict[SourceLocation, tuple[set[str], set[str]]] = {}
        for host in self.names:
            for owner, missing in self._jobs.readings[host].missing.items():
                for fact, locations in missing.items():
                    for location in locations:
                        facts, hosts = found.setdefault(location, (set(), set()))
                        facts.update(named(owner, host, [fact]))
                        hosts.add(host)
        return dict(sorted(found.items()))

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Evaluate in the same environment as the first time, and keep the secrets that are used."""
        from statecfg.playbook.output import to_stderr

        where, ring, directory = self._environment
        with contextlib.ExitStack() as stack, opaque.recording() as used:
            for context in (to_stderr(), inputs.recording_into(where), secret_keys.using(ring), _directory(directory)):
                stack.enter_context(context)
            yield
        self.secrets.update((name, value.reveal()) for name, value in used.items())


def _refused(failure: HookFailure) -> RefusedHost:
    return RefusedHost(str(failure), hint="" if failure.again is None else "The next apply asks it again.")


def _too_much(wrong: Problem) -> RefusedHost:
    place = f"{os.path.relpath(wrong.locations[0].file)}:{wrong.locations[0].line}: " if wrong.locations else ""
    return RefusedHost(f"{place}{wrong.detail}", hint=CORRECT)


def _sort_key(item: Problem) -> tuple[str, int, int]:
    file, line, column = item.locations[0] if item.locations else ("", 0, 0)
    return file, line, column or 0


def _directory(path: str) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if os.getcwd() == path else contextlib.chdir(path)
