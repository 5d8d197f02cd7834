"""The plan of a playbook for an imagined host, with what tests ask of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.model import Action, Blob
from statecfg.remote.graph.names import Outcome
from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.machine.planned import Planned
from statecfg.remote.run.plan import Plan, Step


@dataclass(frozen=True)
class PlannedNode:
    """A node of a plan.

    :param name: its name, such as `file:/etc/motd`
    :param type: its node type
    :param attrs: its attributes as the host gets them
    :param requires: the names of the nodes that it requires
    :param outcome: "changed", "unchanged", "unknown", "failed" or "skipped"
    :param actions: what it would do
    :param changes: the differences that it would make, each with `object`, `field`, and `before` and `after` or `diff`
    :param known_after: the node that decides what an "unknown" node has to do
    :param reason: why it is "failed" or "skipped"
    :param triggered_by: the changing nodes in its `restart_on`
    :param excluded: why `when_host` excludes it, "" if it does not; it is "unchanged" then
    """

    name: str
    type: str
    attrs: Mapping[str, Any]
    requires: Sequence[str]
    outcome: str
    actions: Sequence[Action]
    changes: Sequence[Mapping[str, Any]]
    known_after: str | None
    reason: str
    triggered_by: Sequence[str]
    excluded: str = ""

    @property
    def ops(self) -> list[str]:
        """The names of its actions, in order, the shutdown-first action first."""
        return [action.op for action in self.actions]

    @property
    def content(self) -> str | None:
        """The content that it gives to a file, such as the text that its template renders; None without content."""
        content: Blob | str | None = self.attrs.get("content")
        return content.read().decode() if isinstance(content, Blob) else content

    def __str__(self) -> str:
        why = self.reason or self.excluded
        about = f"known after {self.known_after}" if self.known_after else why or ", ".join(self.ops)
        return f"{self.outcome:<9} {self.name}" + (f"  {about}" if about else "")


class HostPlan(Mapping[str, PlannedNode]):
    """The plan of a playbook for one host: a map from names to nodes, in the order of the run.

    :param host: the name of the host
    :param plan: the plan
    :param machine: the machine as the plan leaves it
    :param facts: the facts of the imagined host, as it names them
    """

    def __init__(self, host: str, plan: Plan, machine: Planned, facts: str | Mapping[str, Any]) -> None:
        self.host, self.machine, self.facts = host, machine, facts
        self.layers = [[step.node.provides for step in layer] for layer in plan.layers]
        self._nodes = {step.node.provides: _node(step) for layer in plan.layers for step in layer}

    def __getitem__(self, name: str) -> PlannedNode:
        """Return the node with a name.

        :raises KeyError: there is none; the message suggests a similar name
        """
        if name not in self._nodes:
            raise KeyError(f"the plan has no node {name}; {did_you_mean(name, self._nodes)}".rstrip("; "))
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        """Return a line for each node, which pytest shows if an assertion fails."""
        return "\n".join([f"<plan for {self.host}>", *map(str, self.values())])

    def _with(self, outcome: str) -> list[str]:
        return [node.name for node in self.values() if node.outcome == outcome]

    @property
    def changed(self) -> list[str]:
        """The names of the nodes that would change something."""
        return self._with(Outcome.CHANGED)

    @property
    def unchanged(self) -> list[str]:
        """The names of the nodes that have nothing to do."""
        return self._with(Outcome.UNCHANGED)

    @property
    def unknown(self) -> list[str]:
        """The names of the nodes whose changes are known only after another node."""
        return self._with(Outcome.UNKNOWN)

    @property
    def failed(self) -> dict[str, str]:
        """The nodes that would fail or be skipped, with the reasons."""
        return {node.name: node.reason for node in self.values() if node.outcome in Outcome.STOPPED}

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        above: dict[str, frozenset[str]] = {}
        for name, node in self._nodes.items():  # a node comes after those that it requires
            above[name] = frozenset(node.requires).union(*(above.get(one, ()) for one in node.requires))
        return above

    def requires(self, name: str, other: str) -> bool:
        """Return whether a node requires another one, directly or indirectly, and therefore comes after it."""
        return self[other].name in self._above[self[name].name]

    def read(self, path: str) -> str:
        """Return the text of a file on the host as the plan leaves it.

        :raises OSError: there is no such file
        :raises statecfg.Unknown: a node that may change anything makes the content unknown
        """
        return self.machine.read(path).decode()

    def exists(self, path: str) -> bool:
        """Return whether the host has a file, directory or link at a path as the plan leaves it."""
        return self.machine.stat(path) is not None

    def mode(self, path: str) -> str:
        """Return the permission bits of a path as the plan leaves it, such as "0644".

        :raises OSError: there is nothing at the path
        """
        stat = self.machine.stat(path)
        if stat is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        return f"{stat.mode:04o}"


def _node(step: Step) -> PlannedNode:
    node = step.node
    return PlannedNode(
        node.provides, node.type, node.attrs, list(node.requires), step.outcome, step.spec.steps, step.changes,
        step.known_after, step.reason, list(step.triggered_by), step.excluded,
    )  # fmt: skip
