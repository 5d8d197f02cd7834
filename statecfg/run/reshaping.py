"""Lets hooks change the graphs of hosts before compilation."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from statecfg.facts.reading import Reading
from statecfg.graph.graph import Graph
from statecfg.playbook.inventory import Host
from statecfg.problems import Problem, collecting, reporting
from statecfg.run.evaluation import Evaluated
from statecfg.run.hook_failure import HookFailure

AT_ONCE = 16  # maximum number of hosts whose hooks are called concurrently


class Reshape(Protocol):
    """The interface that may change the graphs of hosts before compilation, such as HTTP hooks (`hooks.reconcile`)."""

    @property
    def unsure(self) -> Collection[str]:
        """Names of hosts on which nothing may be pruned, because it is unknown what hooks would have added."""

    def concerns(self, host: str) -> Sequence[str]:
        """Return the names of the hooks that may change the graph of a host."""

    def reshape(
        self, host: Host, playbook: str, graph: Graph, variables: Mapping[str, Any], secrets: Mapping[str, str]
    ) -> Graph:
        """Return the changed graph of a host.

        :param playbook: the name of the owning playbook
        :param graph: the evaluated graph
        :param variables: the variables of the host's plays
        :param secrets: name → value of the secrets in the graph and the variables
        :raises HookFailure: if a hook failed and ends the run on this host
        :raises InvalidInput: if the changed graph is invalid
        """


class HookedHost:
    """A host whose hooks are called.

    :param playbook: the name of the owning playbook
    :param reading: gives the definition facts and variables
    :ivar graph: the result, None if a hook failed or returned no valid graph
    :ivar failure: why a hook ended the run on this host
    :ivar problems: what is wrong with the returned graph
    """

    def __init__(self, host: Host, evaluated: Evaluated, playbook: str, reading: Reading) -> None:
        self.host, self.evaluated, self.playbook, self.reading = host, evaluated, playbook, reading
        self.graph: Graph | None = None
        self.failure: HookFailure | None = None
        self.problems: list[Problem] = []

    def call(self, reshape: Reshape) -> None:
        """Call the hooks of this host."""
        evaluated = self.evaluated
        variables = {name: value for play in evaluated.variables.values() for name, value in play.items()}
        secrets = {name: value.reveal() for name, value in evaluated.secrets.items()}
        # Checks of the changed graph call functions of node types, which may read facts.
        with self.reading.recording(), collecting() as self.problems, reporting():
            try:
                self.graph = reshape.reshape(self.host, self.playbook, evaluated.graph, variables, secrets)
            except HookFailure as error:
                self.failure = error


def call_hooks(hosts: Sequence[HookedHost], reshape: Reshape) -> None:
    """Call the hooks of several hosts, of up to `AT_ONCE` hosts concurrently."""
    _concurrently([partial(host.call, reshape) for host in hosts])


def _concurrently(calls: Sequence[Callable[[], None]]) -> None:
    """Make calls in up to `AT_ONCE` threads, each in a copy of this context; if calls fail, raise the first error."""
    left = [(contextvars.copy_context(), call) for call in reversed(calls)]
    raised: list[BaseException] = []

    def work() -> None:
        while not raised:
            try:
                context, call = left.pop()
            except IndexError:
                return
            try:
                context.run(call)
            except BaseException as error:  # raised again below, in the calling thread
                raised.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(calls)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # a join without timeout would delay Ctrl-C
            thread.join(0.5)
    if raised:
        raise raised[0]
