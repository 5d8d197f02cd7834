"""Explains the nodes, variables and hosts of a prepared playbook, as JSON data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.graph import references
from statecfg.graph.references import Matched
from statecfg.playbook.plays import Play
from statecfg.playbook.role import chain
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show
from statecfg.run.job import Job
from statecfg.run.prepare import Work
from statecfg.templates import Text

if TYPE_CHECKING:
    from statecfg.graph.nodes import Node, RoleUse
    from statecfg.playbook.inventory import Inventory

Place = Callable[[SourceLocation], str]


class Explaining:
    """Explains what a playbook declares.

    :param work: the playbook, whose jobs have their sources
    :param extra: the variables of the command line
    :param place: returns a source location as text
    """

    def __init__(self, work: Work, extra: Mapping[str, Any], place: Place) -> None:
        self.work, self.extra, self.place = work, extra, place
        self.playbook = work.project.relative(work.playbook) if work.playbook is not None else ""

    def nodes(self, name: str) -> list[dict[str, Any]]:
        """Return the explanations of a node. Hosts with the same explanation share it."""
        found: list[dict[str, Any]] = []
        for job in self.work.jobs:
            data = self._node(job, name)
            if data is not None:
                same = next((item for item in found if item | {"hosts": []} == data), None)
                if same is None:
                    found.append(same := data)
                same["hosts"] = [*same["hosts"], job.host.name]
        return found

    def _node(self, job: Job, name: str) -> dict[str, Any] | None:
        layer = next(
            (number for number, layer in enumerate(job.definition.layers, 1) for n in layer if n["provides"] == name), 0
        )
        if not layer or job.sources is None:
            return None
        nodes = {node.provides: node for node in job.sources.graph.nodes()}
        node = nodes.get(name)
        automatic = job.definition.automatic
        data: dict[str, Any] = {
            "name": name,
            "type": node.type if node is not None else name.partition(":")[0],
            "playbook": self.playbook,
            "hosts": [],
            "declared": [self._declaration(*use) for use in node.declarations] if node is not None else [],
            "labels": list(dict.fromkeys(references.groups(node))) if node is not None else [],
            "layer": layer,
            "requires": list(self._requirements(node, automatic)) if node is not None else [],
            "required_by": [
                {**requirement, "name": other.provides}
                for other in nodes.values()
                for requirement in self._requirements(other, automatic)
                if requirement["name"] == name
            ],
            "left_out": [
                {"node": item.node, "required": item.required, "reason": item.reason, "path": list(item.path)}
                for item in job.definition.left_out
                if name in (item.node, item.required)
            ],
        }
        return data

    def _declaration(self, position: SourceLocation, role: RoleUse | None) -> dict[str, Any]:
        roles = [{"name": use.name, "position": self.place(use.position)} for use in chain(role)]
        return {"position": self.place(position), "roles": roles}

    def _requirements(self, node: Node, automatic: Mapping[str, Mapping[str, str]]) -> Iterator[dict[str, Any]]:
        for name in node.requires:
            reference = str.__str__(name.reference) if isinstance(name, Matched) else ""
            yield {
                "name": str.__str__(name),
                "why": "reference" if reference else "written",
                "detail": reference,
                "triggers": name in node.triggers,
                "position": self.place(references.place(name) or node.position),
            }
        for name, reason in automatic.get(node.provides, {}).items():
            yield {"name": name, "why": "automatic", "detail": reason, "triggers": False, "position": ""}

    def variables(self, name: str) -> list[dict[str, Any]]:
        """Return the values of a variable: for each play and role, the levels that set it, the last of which won."""
        found: list[dict[str, Any]] = []
        for job in self.work.jobs:
            for play in job.sources.plays if job.sources is not None else ():
                data = self._variable(job, play, name)
                if data["levels"]:
                    _shared(found, data, job.host.name)
            for use in _uses(job):
                if name in use.variables:
                    how = "passed" if name in use.passed else "its own value"
                    level = {"level": f"role {use.name} ({how})", "value": show(use.variables[name])}
                    level["position"] = self.place(use.position)
                    data = {"name": name, "playbook": self.playbook, "play": "", "hosts": [], "levels": [level]}
                    _shared(found, {**data, "value": level["value"]}, job.host.name)
        return found

    def _variable(self, job: Job, play: Play, name: str) -> dict[str, Any]:
        levels = list(_of_inventory(self.work.inventory, job.host.name, name, self.place))
        if name in play.vars:
            written = play.vars[name]
            location = written.location if isinstance(written, Text) else play.position
            levels.append({"level": f"play {play.name}", "value": show(written), "position": self.place(location)})
        if name in self.extra:
            levels.append({"level": "command line", "value": show(self.extra[name]), "position": "-e"})
        host = job.host
        final = play.variables(host.vars, self.extra, host.name, host.groups) if levels else {}
        value = show(final.get(name))
        return {
            "name": name, "playbook": self.playbook, "play": play.name, "hosts": [], "levels": levels, "value": value
        }  # fmt: skip

    def hosts(self, name: str) -> list[dict[str, Any]]:
        """Return what the playbook does on a host; nothing if the playbook does not name it."""
        return [
            {
                "name": name,
                "playbook": self.playbook,
                "position": self.place(job.host.position) if job.host.position.line else "",
                "address": job.host.address,
                "groups": list(job.host.groups),
                "plays": [play.name for play in job.sources.plays] if job.sources is not None else [],
                "resources": sum(map(len, job.definition.layers)),
                "variables": sorted(job.host.vars),
                "left_out": [
                    {"node": item.node, "required": item.required, "reason": item.reason, "path": list(item.path)}
                    for item in job.definition.left_out
                ],
            }
            for job in self.work.jobs
            if job.host.name == name
        ]

    def names(self) -> set[str]:
        """Return everything that can be explained, for suggestions."""
        jobs = self.work.jobs
        found = {node["provides"] for job in jobs for layer in job.definition.layers for node in layer}
        found |= {job.host.name for job in jobs} | {name for job in jobs for name in job.host.vars} | {*self.extra}
        return found | {name for job in jobs if job.sources for play in job.sources.plays for name in play.vars}


def _shared(found: list[dict[str, Any]], data: dict[str, Any], host: str) -> None:
    same = next((item for item in found if item | {"hosts": []} == data), None)
    if same is None:
        found.append(same := data)
    if host not in same["hosts"]:
        same["hosts"] = [*same["hosts"], host]


def _uses(job: Job) -> Sequence[RoleUse]:
    """Return each use of a role on a host once."""
    uses: dict[int, RoleUse] = {}
    for node in job.sources.graph.nodes() if job.sources is not None else ():
        for _, role in node.declarations:
            uses.update((id(use), use) for use in chain(role))
    return list(uses.values())


def _of_inventory(inventory: Inventory | None, host: str, name: str, place: Place) -> Iterator[dict[str, Any]]:
    """Yield the groups that set a variable of a host, the winning one last, and then the host itself."""
    if inventory is None or host not in inventory.hosts:
        return
    groups = [
        group for group in inventory.groups.values() if name in group.vars and host in inventory.members(group.name)
    ]
    winner = inventory.who_won(host).get(name)
    levels = []
    for group in groups:
        value, location = group.vars[name]
        won = winner is not None and location == winner[1]
        levels.append((won, {"level": f"group {group.name}", "value": show(value), "position": place(location)}))
    yield from (level for _, level in sorted(levels, key=lambda item: item[0]))
    if winner is not None and not any(won for won, _ in levels):
        yield {"level": "host", "value": show(winner[0]), "position": place(winner[1])}
