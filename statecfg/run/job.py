"""The work for one host of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from statecfg.graph.graph import Graph
from statecfg.graph.recording import Scope
from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.playbook.plays import Play
from statecfg.problems.frozen import dataclass


@dataclass(frozen=True)
class Sources:
    """What the definition of a host was made from.

    :param graph: the evaluated graph
    :param plays: the plays of the host
    :param scopes: the variables that roles and included files add
    """

    graph: Graph
    plays: Sequence[Play]
    scopes: Sequence[Scope] = ()


@dataclass(frozen=True)
class Job:
    """The work for one host.

    :param playbook: the playbook's file, relative to the project
    :param prune: whether to remove orphans
    :param partial: whether the definition contains only some of the playbook's resources, so that it shows no orphans
    :param ledger: the last known lineage of the host's ledger, "" if unknown
    :param for_hooks: the host and the playbook in the form that hooks on the host receive: `node`, `policy`
    :param owner: the name of the owning playbook in the host's ledger; `playbook` if empty
    :param units: the units that may run hooks on the host, and their content (see `units.coordinator`)
    :param sources: what the definition was made from, if it was requested
    :param differs: differences from a saved plan that the controller found; the host refuses the plan if there are any
    :param needs: names of the facts that the definition depends on; until they are known, it has only
        the nodes that are certain
    """

    host: Host
    definition: Definition
    playbook: str
    prune: bool = False
    partial: bool = False
    ledger: str = ""
    for_hooks: Mapping[str, Any] = field(default_factory=dict)
    owner: str = ""
    units: Mapping[str, Any] = field(default_factory=dict)
    differs: Sequence[str] = ()
    needs: tuple[str, ...] = ()
    sources: Sources | None = None
