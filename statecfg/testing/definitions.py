"""Plan the playbooks of a project on imagined hosts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecfg.playbook.compile import Definition
from statecfg.problems import InvalidInput, problem
from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.run.item_nodes import Repeated
from statecfg.remote.run.items import ItemPlanner
from statecfg.remote.run.planning import Planner
from statecfg.remote.wire.frames import decode_node
from statecfg.run.choice import Choice, KnownFacts
from statecfg.run.prepare import offline
from statecfg.testing import fact_sets
from statecfg.testing.imagined import ImaginedHost, ImaginedMachine
from statecfg.testing.plans import HostPlan

_GIVE = 'give the imagined host facts, such as facts="debian-12"'


class Definitions:
    """The playbooks of a project.

    :param root: directory of the project
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.abspath(root))

    def plan(
        self,
        playbook: str | os.PathLike[str],
        host: str | None = None,
        *,
        on: ImaginedHost | HostPlan | None = None,
        vars: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        inventory: str | os.PathLike[str] | None = None,
    ) -> HostPlan:
        """Return the plan of a playbook for one host. It contacts no host, and missing secrets have placeholders.

        :param playbook: the file, relative to the project
        :param host: the name of the host in the inventory; default: the only host of the playbook
        :param on: the imagined host; or a plan, for the host as that plan leaves it. Default: a bare host
        :param vars: variables that override all others, as with `-e`
        :param tags: tags of resources, none for all resources
        :param inventory: the file, relative to the project; default: that of the project
        :raises InvalidInput: the playbook, the inventory or the name of the host is wrong
        """
        plans = self.plans(playbook, host, on=on, vars=vars, tags=tags, inventory=inventory)
        if len(plans) != 1:
            detail = f"{os.fspath(playbook)} is for the hosts {', '.join(plans)}"
            raise InvalidInput([problem("SC0406", detail, f'name one: host="{next(iter(plans))}"')])
        return next(iter(plans.values()))

    def plans(
        self,
        playbook: str | os.PathLike[str],
        hosts: str | None = None,
        *,
        on: ImaginedHost | HostPlan | None = None,
        vars: Mapping[str, Any] | None = None,
        tags: Sequence[str] = (),
        inventory: str | os.PathLike[str] | None = None,
    ) -> dict[str, HostPlan]:
        """Return the plans of a playbook by the names of its hosts. Each host starts in the same state.

        :param hosts: a host pattern, as for `--limit`; default: all hosts of the playbook

        The other parameters and the errors are those of `plan`.
        """
        on = on or ImaginedHost()
        file = None if inventory is None else self.root / inventory
        known = KnownFacts(fact_sets.chosen(on.facts, self.root))
        work = offline(self.root / playbook, Choice(file, hosts, tuple(tags), dict(vars or {}), known=known))
        unknown = [
            problem("SC0522", f"the definition of {job.host.name} reads {', '.join(job.needs)}", _GIVE)
            for job in work.jobs
            if job.needs
        ]
        if unknown:
            raise InvalidInput(unknown)
        return {job.host.name: _planned(job.host.name, job.definition, on) for job in work.jobs}


def _planned(host: str, definition: Definition, on: ImaginedHost | HostPlan) -> HostPlan:
    machine = ImaginedMachine(on.machine if isinstance(on, HostPlan) else on.machine())
    blobs: dict[str, Blob] = dict(definition.blobs)
    layers = [[_arrived(decode_node(node, blobs), machine) for node in layer] for layer in definition.layers]
    repeated = Repeated(layers)
    planner = Planner(REGISTRY, machine)
    if repeated.declared:
        planner = ItemPlanner(REGISTRY, machine)
        planner.repeated = repeated
    plan = planner.plan(layers)
    # What the acting nodes may change besides their own objects is unknown to tests, too.
    machine.turn("", frozenset(name for name, step in plan.steps.items() if step.acts))
    return HostPlan(host, plan, machine, on.facts)


def _arrived(node: HostNode, machine: ImaginedMachine) -> HostNode:
    """Return a node as its type completes it on the host."""
    complete = REGISTRY[node.type].methods.get("from_wire")
    if complete is None:
        return node
    completed: HostNode = complete(*[node, machine][: complete.__code__.co_argcount])
    return completed
