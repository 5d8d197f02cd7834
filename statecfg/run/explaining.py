"""Explains the nodes, variables and hosts of a prepared playbook, as JSON data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecfg.facts.view import MissingFact
from statecfg.graph import host_conditions, host_items, references
from statecfg.graph.nodes import Node
from statecfg.graph.recording import Scope
from statecfg.graph.references import Matched
from statecfg.playbook.inventory import Host, Inventory
from statecfg.playbook.plays import HostContext, Play, Vars
from statecfg.playbook.role import chain
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show
from statecfg.remote.run.decisions import statement
from statecfg.run.job import Job
from statecfg.run.prepare import Work
from statecfg.templates import Text

LocationText = Callable[[SourceLocation], str]


class Explaining:
    """Explains what a playbook declares.

    :param work: the playbook, whose jobs have their sources
    :param extra: the variables of the command line
    :param text_of: returns a source location as text
    """

    def __init__(self, work: Work, extra: Mapping[str, Any], text_of: LocationText) -> None:
        self.work, self.extra, self.text_of = work, extra, text_of
        self.playbook = work.project.relative(work.playbook) if work.playbook is not None else ""

    def nodes(self, name: str) -> list[Mapping[str, Any]]:
        """Return the explanations of a node. Hosts with the same explanation share it."""
        found = _Shared()
        for job in self.work.jobs:
            data = self._node(job, name)
            if data is not None:
                found.add(data, job.host.name)
        return found.listed()

    def _node(self, job: Job, name: str) -> Mapping[str, Any] | None:
        layer = next(
            (number for number, layer in enumerate(job.definition.layers, 1) for n in layer if n["provides"] == name), 0
        )
        if not layer or job.sources is None:
            return None
        nodes = {node.provides: node for node in job.sources.graph.nodes()}
        node = nodes.get(name)
        automatic = job.definition.automatic
        options: Mapping[str, Any] = node.options if node is not None else {}
        items = options.get(host_items.OPTION)
        data: Mapping[str, Any] = {
            "name": name,
            "type": node.type if node is not None else name.partition(":")[0],
            "playbook": self.playbook,
            "hosts": [],
            "declared": self._declarations(node) if node is not None else [],
            "labels": list(dict.fromkeys(references.groups(node))) if node is not None else [],
            "layer": layer,
            "items": host_items.statement(items) if items is not None else "",
            "conditions": [host_items.shown(statement(item)) for item in host_conditions.of_options(options)],
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

    def _declarations(self, node: Node) -> list[Mapping[str, Any]]:
        # The rounds of a loop declare a node at the same source location.
        distinct = dict.fromkeys(
            (position, tuple((use.name, use.position) for use in chain(role))) for position, role in node.declarations
        )
        return [
            {
                "position": self.text_of(position),
                "roles": [{"name": name, "position": self.text_of(included)} for name, included in uses],
            }
            for position, uses in distinct
        ]

    def _requirements(self, node: Node, automatic: Mapping[str, Mapping[str, str]]) -> Iterator[Mapping[str, Any]]:
        for name in node.requires:
            reference = str.__str__(name.reference) if isinstance(name, Matched) else ""
            yield {
                "name": str.__str__(name),
                "why": "reference" if reference else "written",
                "detail": reference,
                "triggers": name in node.triggers,
                "position": self.text_of(references.location_of(name) or node.position),
            }
        for name, reason in automatic.get(node.provides, {}).items():
            yield {"name": name, "why": "automatic", "detail": reason, "triggers": False, "position": ""}

    def variables(self, name: str) -> list[Mapping[str, Any]]:
        """Return the values of a variable: for each play and role, the levels that set it, the last of which won."""
        found = _Shared()
        for job in self.work.jobs:
            for play in job.sources.plays if job.sources is not None else ():
                data = self._variable(job, play, name)
                if data["levels"]:
                    found.add(data, job.host.name)
                for scope in job.sources.scopes if job.sources is not None else ():
                    if scope.play == play.name and name in scope.values:
                        levels = [*data["levels"], *self._in_scopes(scope, name)]
                        inner = {**data, "hosts": [], "levels": levels, "value": levels[-1]["value"]}
                        found.add({**inner, "inside": scope.name}, job.host.name)
        return found.listed()

    def _in_scopes(self, scope: Scope | None, name: str) -> list[Mapping[str, Any]]:
        """Return the levels of a variable in the roles and included files around an entry, the innermost last."""
        levels: list[Mapping[str, Any]] = []
        while scope is not None:
            if name in scope.values:
                how, location = scope.origins[name]
                level = {"level": f"{scope.name} ({how})", "value": show(scope.values[name])}
                levels.append({**level, "position": self.text_of(location)})
            scope = scope.outer
        return levels[::-1]

    def _variable(self, job: Job, play: Play, name: str) -> Mapping[str, Any]:
        levels = list(_of_inventory(self.work.inventory, job.host.name, name, self.text_of))
        if name in play.vars:
            written = play.vars[name]
            location = written.location if isinstance(written, Text) else play.position
            levels.append({"level": f"play {play.name}", "value": show(written), "position": self.text_of(location)})
        if name in self.extra:
            levels.append({"level": "command line", "value": show(self.extra[name]), "position": "-e"})
        value = self._final(job.host, play, name) if levels else show(None)
        return {
            "name": name, "playbook": self.playbook, "play": play.name, "hosts": [], "levels": levels, "value": value,
            "inside": "",
        }  # fmt: skip

    def _final(self, host: Host, play: Play, name: str) -> str:
        """Return the value that a variable has in a play."""
        context = HostContext(host.name, Vars(), tuple(host.groups), host.transport == "local")
        try:
            return show(play.variables(host.vars, self.extra, context).get(name))
        except MissingFact:
            return "it depends on facts of the host"

    def hosts(self, name: str) -> list[Mapping[str, Any]]:
        """Return what the playbook does on a host; nothing if the playbook does not name it."""
        return [
            {
                "name": name,
                "playbook": self.playbook,
                "position": self.text_of(job.host.position) if job.host.position.line else "",
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
        sources = [job.sources for job in jobs if job.sources is not None]
        found |= {name for source in sources for play in source.plays for name in play.vars}
        return found | {name for source in sources for scope in source.scopes for name in scope.values}


class _Shared:
    """Explanations of several hosts. Equal ones are one explanation, which lists the hosts."""

    def __init__(self) -> None:
        self._found: dict[str, Mapping[str, Any]] = {}

    def add(self, data: Mapping[str, Any], host: str) -> None:
        """Add the explanation of a host."""
        hosts = self._found.setdefault(json.dumps(data, sort_keys=True), data)["hosts"]
        if host not in hosts[-1:]:
            hosts.append(host)

    def listed(self) -> list[Mapping[str, Any]]:
        """Return the explanations in the order in which they were added."""
        return list(self._found.values())


def _of_inventory(
    inventory: Inventory | None, host: str, name: str, text_of: LocationText
) -> Iterator[Mapping[str, Any]]:
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
        levels.append((won, {"level": f"group {group.name}", "value": show(value), "position": text_of(location)}))
    yield from (level for _, level in sorted(levels, key=lambda item: item[0]))
    if winner is not None and not any(won for won, _ in levels):
        yield {"level": "host", "value": show(winner[0]), "position": text_of(winner[1])}
