"""Finds hosts whose definitions read equal inputs, so that one evaluation serves all of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from statecfg.facts.reading import Reading
from statecfg.graph.value import Value
from statecfg.playbook.inventory import LOCAL
from statecfg.problems import InvalidInput, Problem
from statecfg.problems.frozen import dataclass
from statecfg.problems.tokens import SecretError

if TYPE_CHECKING:
    from collections.abc import Callable

    from statecfg.facts.paths import Path
    from statecfg.playbook.compile import Definition
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.plays import Play
    from statecfg.run.evaluation import Evaluated

COMPARED = 64  # different sets of names that evaluations have read, with which a host is compared
KEPT = 1000  # evaluations; each different one needs memory
_NOTHING = object()  # the value of a variable that does not exist


@dataclass(frozen=True)
class Evaluation:
    """The result of evaluating the plays of a host.

    :param reading: what the evaluation read
    :param problems: what is wrong with the definition
    :param evaluated: the graph; None if evaluation failed
    :param definition: None if evaluation or compilation failed
    """

    host: Host
    plays: Sequence[Play]
    reading: Reading
    problems: Sequence[Problem]
    evaluated: Evaluated | None
    definition: Definition | None


@dataclass(frozen=True)
class _Questions:
    """What an evaluation has read, without the values.

    :param plays: the identities of the plays
    :param variables: their names; (None,) if the evaluation has read all names
    :param facts: host ("" for the own host), paths that were read, and facts that were missing
    """

    plays: tuple[int, ...]
    attributes: frozenset[str]
    variables: tuple[str | None, ...]
    facts: tuple[tuple[str, tuple[Path, ...], frozenset[str]], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Return what an evaluation has read."""
        read = evaluation.reading
        names = [name for name in read.looked_up if name is not None]
        return cls(
            tuple(map(id, evaluation.plays)),
            frozenset(read.attributes),
            (None,) if None in read.looked_up else tuple(sorted(names)),
            tuple(
                ("" if host == read.host else host, tuple(facts.read_paths), frozenset(facts.missing))
                for host, facts in read.hosts_facts.items()
            ),
        )

    def answers(self, host: Host, fact: Callable[[str, Path], Any]) -> int:
        """Return a number that is equal for hosts with the same values.

        :param fact: returns what is at a path of the facts of a host ("" for the own host)
        :raises InvalidInput: a fact is missing or too old
        """
        values: list[Any] = [host.name if "name" in self.attributes else None]
        values.append(tuple(host.groups) if "groups" in self.attributes else None)
        values.append(_is_local(host) if "local" in self.attributes else None)
        if None in self.variables:
            values.append(host.vars)
        else:
            values += [host.vars.get(name, _NOTHING) for name in self.variables if name is not None]
        values += [fact(name, path) for name, paths, _ in self.facts for path in paths]
        return hash(tuple(map(fingerprint, values)))


class Shared:
    """Evaluations of a run, by what they have read and which values they found.

    So the time that a host takes does not depend on how many evaluations there are.

    :param new_reading: returns an empty reading for a host
    """

    def __init__(self, new_reading: Callable[[str], Reading]) -> None:
        self._new_reading = new_reading
        self._kept: OrderedDict[tuple[_Questions, int], Evaluation] = OrderedDict()  # the last used ones are at the end
        self._questions: OrderedDict[_Questions, int] = OrderedDict()  # → how many are kept; in the same order

    def add(self, evaluation: Evaluation) -> None:
        """Add an evaluation that other hosts may share."""
        questions, read = _Questions.of(evaluation), evaluation.reading
        facts = read.hosts_facts
        answers = questions.answers(evaluation.host, lambda name, path: facts[name or read.host].read_paths[path])
        key = (questions, answers)
        if key not in self._kept:
            self._questions[questions] = self._questions.get(questions, 0) + 1
        self._kept[key] = replace(evaluation, evaluated=None)  # a graph is large, and only `Job.sources` has it
        self._used(key)
        if len(self._kept) > KEPT:
            (old, _), _ = self._kept.popitem(last=False)
            self._questions[old] -= 1
            if not self._questions[old]:
                del self._questions[old]

    def find(self, host: Host, plays: Sequence[Play]) -> tuple[Evaluation, Reading] | None:
        """Return an evaluation that would give the same result for a host, and the host's reading; None if none would.

        :param plays: the plays of the host
        """
        ids = tuple(map(id, plays))
        asked = islice((questions for questions in reversed(self._questions) if questions.plays == ids), COMPARED)
        for questions in list(asked):
            answers = self._answers(questions, host)
            if answers is None:
                continue
            key = (questions, answers)
            evaluation = self._kept.get(key)
            if evaluation is not None and _same_host(evaluation, host):
                reading = self._new_reading(host.name)
                if _same_facts(evaluation.reading, reading):
                    _pass_on(evaluation.reading, reading, host)
                    self._used(key)
                    return evaluation, reading
        return None

    def _answers(self, questions: _Questions, host: Host) -> int | None:
        """Return what a host answers; None if a fact is missing or too old."""
        reading = self._new_reading(host.name)
        try:
            return questions.answers(host, lambda name, path: reading.facts(name or host.name).read_again(path))
        except InvalidInput:  # a separate evaluation reports it at its source location
            return None

    def _used(self, key: tuple[_Questions, int]) -> None:
        self._kept.move_to_end(key)
        self._questions.move_to_end(key[0])


def _same_host(evaluation: Evaluation, host: Host) -> bool:
    """Return whether everything that an evaluation read of its host, except for facts, is equal for another host."""
    other, read = evaluation.host, evaluation.reading
    if ("name" in read.attributes and host.name != other.name) or (
        "groups" in read.attributes and tuple(host.groups) != tuple(other.groups)
    ):
        return False
    if "local" in read.attributes and _is_local(host) != _is_local(other):
        return False
    if None in read.looked_up:
        return same(host.vars, other.vars)
    names = [name for name in read.looked_up if name is not None]
    return all(same(host.vars.get(name, _NOTHING), other.vars.get(name, _NOTHING)) for name in names)


def _is_local(host: Host) -> tuple[bool, bool]:
    return host.transport == "local", host.name == LOCAL


def _same_facts(read: Reading, reading: Reading) -> bool:
    """Return whether the facts that an evaluation read are equal for another host; note them in its new reading."""
    if read.host in read.by_name or reading.host in read.by_name:
        return False  # one of these hosts is "its own host" in one evaluation, and "another host" in the other
    for name, theirs in read.hosts_facts.items():
        facts = reading.facts(reading.host if name == read.host else name)
        if any(fact in facts.values for fact in theirs.missing) or (theirs.missing and facts.final):
            return False
        try:
            if not all(same(facts.read_again(path), value) for path, value in theirs.read_paths.items()):
                return False
        except InvalidInput:  # a fact is missing or too old: a separate evaluation reports it at its source location
            return False
        facts.missing.update((fact, dict(locations)) for fact, locations in theirs.missing.items())
    return True


def _pass_on(read: Reading, reading: Reading, host: Host) -> None:
    """Record in the reading of a host what a shared evaluation has read."""
    reading.names |= {*read.names, *host.vars}
    reading.variables.update(read.variables)
    reading.looked_up |= read.looked_up
    reading.attributes |= read.attributes
    reading.by_name |= read.by_name


def fingerprint(value: Any) -> Hashable:
    """Return data that are equal for values that are the `same`."""
    if isinstance(value, Value):
        try:
            return type(value), repr(value), hash(value) if value.known else id(value)
        except SecretError:  # only the host has the value
            return type(value), repr(value), id(value)
    if isinstance(value, float):
        return float, repr(value)
    if isinstance(value, Mapping):
        return type(value), tuple(value), tuple(map(fingerprint, value.values()))
    if isinstance(value, list | tuple):
        return type(value), tuple(map(fingerprint, value))
    try:
        return type(value), hash(value)
    except TypeError:
        return type(value), None


def same(one: Any, other: Any) -> bool:
    """Return whether two values are the same for every template and function: also their types and orders."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Value):  # a comparison reads a secret, and nothing may need its value
        return repr(one) == repr(other) and one.known and other.known and bool(one == other)
    if isinstance(one, float):
        return repr(one) == repr(other)  # 0.0 and -0.0 are equal
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
