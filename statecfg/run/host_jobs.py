"""Evaluates the plays of hosts to jobs, and collects the problems of all hosts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from statecfg.facts.reading import Reading
from statecfg.playbook.compile import Definition, WireNode
from statecfg.problems import Problem, collecting, problem, reported, reporting
from statecfg.run import evaluation
from statecfg.run.shared import Evaluation, Shared

if TYPE_CHECKING:
    from statecfg.graph.recording import Scope
    from statecfg.playbook.inventory import Host, Inventory
    from statecfg.playbook.plays import Play
    from statecfg.playbook.project import Project
    from statecfg.run.choice import Choice
    from statecfg.run.evaluation import Evaluated
    from statecfg.run.fact_source import FactSource
    from statecfg.run.job import Job

CACHE = "declare nodes and read facts each time the function of a play is called; don't keep them in a cache"
SLOW = ("SC0323", "SC0507")  # error codes of time limits
OF_FACTS = ("SC0323", "SC0524")  # error codes that the text of one fact can cause


class HostJobs:
    """Makes the jobs of one playbook.

    :param playbook: the playbook's file, relative to the project
    :param owner: the name of the owning playbook in the ledgers of hosts
    :param choice: the user's options
    :param inventory: the hosts that definitions can read; None if it is wrong
    :param source: the facts of all hosts that are known so far
    :ivar readings: host → what its last evaluation has read
    :ivar tags: the tags of all resources, if only some tags were requested
    :ivar slow: a time limit has passed; every other host would take as long
    """

    def __init__(
        self,
        playbook: str,
        owner: str,
        choice: Choice,
        project: Project,
        inventory: Inventory | None,
        source: FactSource,
    ) -> None:
        self.playbook, self.owner, self.choice, self.project = playbook, owner, choice, project
        self.inventory, self.source = inventory, source
        self.problems = SharedProblems()
        self.readings: dict[str, Reading] = {}
        self.tags: set[str] = set()
        self.slow = False
        self._shared = Shared(self._reading)

    def job(self, host: Host, plays: Sequence[Play]) -> Job | None:
        """Return the job of a host; None if its definition is wrong, or no resource has the requested tags.

        If the plays read facts that are not known yet, the job's definition has only the nodes that are certain, and
        the host's `readings` list what is missing.
        """
        from statecfg.graph.recording import scopes
        from statecfg.run.job import Job, Sources

        choice = self.choice
        found: Sequence[Scope] = ()
        shared = self._shared.find(host, plays) if not choice.sources else None
        if shared is not None:
            result, reading = shared
        else:
            reading = self._reading(host.name)
            with scopes(choice.sources) as found:
                result = self._evaluate(host, plays, reading)
            self._shared.add(result)
        self.readings[host.name] = reading
        self.problems.add(host.name, result.problems)
        evaluated, definition = result.evaluated, result.definition
        if result.problems:
            return None
        # With tags, skip hosts without tagged resources, but not those that were asked for facts because of them.
        asked = self.source.collected.get(host.name)
        if definition is None or (choice.tags and not definition.layers and not asked and not reading.missing):
            return None
        prune = choice.prune or any(one.prune for play in plays for one in (play, *play.others))
        partial = bool(choice.tags)
        sources = Sources(evaluated.graph, plays, found) if choice.sources and evaluated is not None else None
        return Job(host, definition, self.playbook, prune and not partial, partial, owner=self.owner, sources=sources)

    def _reading(self, host: str) -> Reading:
        return Reading(host, self.source.of, self.inventory, self.choice.extra)

    def _evaluate(self, host: Host, plays: Sequence[Play], reading: Reading) -> Evaluation:
        evaluated = definition = None
        wrong = reported() or bool(self.problems.hosts_of)  # what is broken may be explained already
        with collecting() as problems, reporting():
            evaluated = evaluation.evaluate(host, plays, self.choice.extra, self.choice.tags, reading)
            self.tags |= evaluated.tags
            definition = evaluation.definition(host, evaluated.graph, evaluated, self.project, reading)
        self.slow = self.slow or any(item.code in SLOW for item in problems)
        if not problems and reading.missing:
            definition = _certain(definition or Definition([]))
        elif not problems and not wrong:
            problems += _incomplete(plays, evaluated)
        return Evaluation(host, plays, reading, problems, evaluated, definition)


def _incomplete(plays: Sequence[Play], evaluated: Evaluated | None) -> list[Problem]:
    """Return a problem if a part of the definition was not evaluated, although nothing is wrong and no fact is missing.

    This happens if the playbook keeps a result of an evaluation for which facts were missing.
    """
    if evaluated is None:
        return [problem("SC0505", "the definition reads facts in another evaluation", CACHE, plays[0].position)]
    broken = next((node for node in evaluated.graph.nodes() if node.broken), None)
    if broken is None:
        return []
    detail = f"{broken.provides} is from an earlier evaluation of the play, which lacked facts"
    return [problem("SC0505", detail, CACHE, *(broken.positions or (plays[0].position,)))]


def _certain(definition: Definition) -> Definition:
    """Return a definition without the nodes that depend on missing facts. Only part of such a node was compiled."""
    names = {node["provides"] for layer in definition.layers for node in layer if "position" in node}
    layers = [[_among(node, names) for node in layer if node["provides"] in names] for layer in definition.layers]
    return replace(definition, layers=[layer for layer in layers if layer])


def _among(node: WireNode, names: Collection[str]) -> WireNode:
    """Return a node with those of its requirements that are among the names."""
    lists: Any = {key: [name for name in node[key] if name in names] for key in ("requires", "triggers") if key in node}
    return {**node, **lists}


class SharedProblems:
    """The problems of many hosts, each only once. A problem that not all hosts share names its hosts."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.hosts_of: dict[tuple[Any, ...], tuple[Problem, dict[str, None]]] = {}

    def add(self, host: str, problems: Iterable[Problem]) -> None:
        """Add the problems of one host."""
        self.hosts.add(host)
        for item in problems:
            key = (item.code, item.locations, item.detail.replace(host, "\0"))
            self.hosts_of.setdefault(key, (item, {}))[1][host] = None

    def take(self, host: str, codes: Collection[str]) -> list[Problem]:
        """Return the problems of a host and forget them, if all of them have these codes; otherwise return none.

        :param codes: the codes of problems that the facts of a host cause
        """
        own = [(key, item) for key, (item, names) in self.hosts_of.items() if host in names]
        if any(item.code not in codes for _, item in own):
            return []
        for key, _ in own:
            names = self.hosts_of[key][1]
            del names[host]
            if not names:
                del self.hosts_of[key]
        self.hosts.discard(host)
        return [item for _, item in own]

    def problems(self) -> list[Problem]:
        """Return the problems in the order in which they were found."""
        return [self._with_hosts(item, [*names]) for item, names in self.hosts_of.values()]

    def _with_hosts(self, item: Problem, names: list[str]) -> Problem:
        # Problems with secrets never belong to a host: the controller looks each secret up once.
        shared = len(names) == len(self.hosts) or item.code.startswith("SC042")
        if shared or (len(names) == 1 and names[0] in item.detail):
            return item
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        first, line, rest = item.detail.partition("\n")
        return replace(item, detail=f"{first} (on {listed}){line}{rest}")
