"""Finds hosts whose definitions read equal inputs, so that one evaluation serves all of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statecfg.facts.reading import Reading
from statecfg.graph.value import Value
from statecfg.playbook.inventory import LOCAL
from statecfg.problems import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from statecfg.playbook.compile import Definition
    from statecfg.playbook.inventory import Host
    from statecfg.playbook.plays import Play
    from statecfg.run.evaluation import Evaluated

COMPARED = 16  # the last evaluations that a host is compared with, so that many different hosts take linear time
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


class Shared:
    """The last evaluations of a run.

    :param new_reading: returns an empty reading for a host
    """

    def __init__(self, new_reading: Callable[[str], Reading]) -> None:
        self._new_reading = new_reading
        self._last: deque[Evaluation] = deque(maxlen=COMPARED)

    def add(self, evaluation: Evaluation) -> None:
        """Add an evaluation that other hosts may share."""
        self._last.appendleft(evaluation)

    def find(self, host: Host, plays: Sequence[Play]) -> tuple[Evaluation, Reading] | None:
        """Return an evaluation that would give the same result for a host, and the host's reading; None if none would.

        :param plays: the plays of the host
        """
        for evaluation in self._last:
            if list(map(id, evaluation.plays)) == list(map(id, plays)) and _same_host(evaluation, host):
                reading = self._new_reading(host.name)
                if _same_facts(evaluation.reading, reading):
                    _pass_on(evaluation.reading, reading, host)
                    return evaluation, reading
        return None


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
