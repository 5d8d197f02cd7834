"""The groups, hosts and variables of Ansible-format sources, and which variable wins among them.

Ansible evaluates all its sources as one inventory, and so does this module. Its rules end here: the variables of a host
become those of its groups and its own, and join the variables of statecfg's sources at these two levels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecfg.dialects.inventories import connection, variable_files
from statecfg.dialects.inventories.parts import Parts
from statecfg.playbook.inventory import ALL, RESERVED, RESERVED_DETAIL, Group, Vars, wrong_name
from statecfg.playbook.secrets import SHORTEST, Secret
from statecfg.problems import SourceLocation, problem, report
from statecfg.problems.positions import NOWHERE

UNGROUPED = "ungrouped"
PRIORITY = "ansible_group_priority"
PASSWORD = re.compile(r"(?:.*_)?(?:pass|passwd|password|passphrase)\Z", re.I)


@dataclass
class AnsibleGroup:
    """A group.

    :param hosts: name of each host in it → source location
    :param children: name of each group in it → source location
    :param priority: among groups of the same depth, the variables of the group with the highest priority win
    """

    name: str
    position: SourceLocation = NOWHERE
    hosts: dict[str, SourceLocation] = field(default_factory=dict)
    children: dict[str, SourceLocation] = field(default_factory=dict)
    vars: dict[str, tuple[Any, SourceLocation]] = field(default_factory=dict)
    priority: int = 1


@dataclass
class AnsibleHost:
    """A host with its own variables."""

    name: str
    position: SourceLocation
    vars: dict[str, tuple[Any, SourceLocation]] = field(default_factory=dict)


class AnsibleInventory:
    """Everything that the Ansible-format sources declare.

    :ivar directories: the directories whose `group_vars/` and `host_vars/` apply. A later one overrides an earlier one
    """

    def __init__(self) -> None:
        self.groups = {name: AnsibleGroup(name) for name in (ALL, UNGROUPED)}
        self.hosts: dict[str, AnsibleHost] = {}
        self.directories: dict[str, None] = {}

    def use_files_in(self, directory: str) -> None:
        """Let the `group_vars/` and `host_vars/` in the directory of a source apply.

        If several sources are in a directory, its files count with the last of them.
        """
        self.directories.pop(directory, None)
        self.directories[directory] = None

    def group(self, name: str, location: SourceLocation) -> AnsibleGroup:
        """Return the group with a name; add it if it is new. Report a wrong name."""
        if name not in self.groups:
            wrong = wrong_name(name)
            if wrong is not None:
                help_text = "choose another name for the group"
                report(problem("SC0401", f"group `{name}`: {wrong}", help_text, location))
            self.groups[name] = AnsibleGroup(name, location)
        found = self.groups[name]
        if found.position is NOWHERE:
            found.position = location
        return found

    def child(self, group: AnsibleGroup, name: str, location: SourceLocation) -> None:
        """Add a group to a group. Report `all`, which contains every group."""
        if name == ALL:
            detail = f"{group.name} → {ALL} → {group.name}"
            report(problem("SC0402", detail, f"remove `{ALL}`, which contains every group", location))
            return
        group.children.setdefault(self.group(name, location).name, location)

    def host(self, name: str, location: SourceLocation, group: AnsibleGroup, port: int | None = None) -> AnsibleHost:
        """Return the host with a name; add it if it is new, and add it to a group. Report a wrong name.

        :param port: the port after its name, which counts only at the first occurrence of the host
        """
        group.hosts.setdefault(name, location)
        if name not in self.hosts:
            wrong = wrong_name(name)
            if wrong is not None:
                help_text = "give the host a name, and write its address as `ansible_host`"
                report(problem("SC0401", f"host `{name}`: {wrong}", help_text, location))
            self.hosts[name] = AnsibleHost(name, location)
            if port is not None:
                self.hosts[name].vars["ansible_port"] = (port, location)
        return self.hosts[name]

    def assign(self, owner: AnsibleGroup | AnsibleHost, name: str, value: Any, location: SourceLocation) -> None:
        """Set a variable. Report a name that can't be a variable's.

        :param value: a value of JSON's types
        """
        if name == PRIORITY and isinstance(owner, AnsibleGroup):
            self._prioritize(owner, value, location)
        elif valid_name(name, location):
            owner.vars[name] = (hidden(name, value), location)

    def _prioritize(self, group: AnsibleGroup, value: Any, location: SourceLocation) -> None:
        try:
            group.priority = int(value)
        except (TypeError, ValueError):
            report(problem("SC0405", f"`{PRIORITY}` is {value!r}", "it must be a number", location))

    def parts(self) -> Parts:
        """Return the hosts with their connection settings, the groups, and the variables of each host by level."""
        files = variable_files.Foreign(self.directories, self._file_vars)
        member_of = self._memberships()
        depths = self._depths()
        parts = Parts()
        for host in self.hosts.values():
            groups = self._ordered(member_of[host.name], depths)
            inherited: dict[str, tuple[Any, SourceLocation]] = dict(self.groups[ALL].vars)
            for group in groups:
                inherited.update(group.vars)
            for directory in self.directories:
                inherited.update(files.of_group(directory, ALL))
            for directory in self.directories:
                for group in groups:
                    inherited.update(files.of_group(directory, group.name))
            own = dict(host.vars)
            for directory in self.directories:
                own.update(files.of_host(directory, host.name))
            parts.hosts.append(connection.host(host.name, {**inherited, **own}, host.position))
            parts.inherited[host.name], parts.own[host.name] = inherited, own
        parts.groups.extend(self._plain_groups(member_of))
        return parts

    def _file_vars(self, values: Iterable[tuple[str, Any, SourceLocation]]) -> Vars:
        owner = AnsibleHost("", NOWHERE)
        for name, value, location in values:
            self.assign(owner, name, value, location)
        return owner.vars

    def _memberships(self) -> dict[str, set[str]]:
        """Return host → the groups that contain it directly or indirectly, without `all`.

        A host is in `ungrouped` if no other group contains it, regardless of the sources.
        """
        parents: dict[str, set[str]] = {name: set() for name in self.groups}
        for group in self.groups.values():
            for name in group.children:
                parents[name].add(group.name)
        found: dict[str, set[str]] = {name: set() for name in self.hosts}
        for group in self.groups.values():
            above = {group.name}
            waiting = [group.name]
            while waiting:
                new = parents[waiting.pop()] - above
                above |= new
                waiting.extend(new)
            for name in group.hosts:
                found[name] |= above
        for groups in found.values():
            groups -= {ALL}
            if groups - {UNGROUPED}:
                groups -= {UNGROUPED}
            else:
                groups |= {UNGROUPED}
        return found

    def _depths(self) -> dict[str, int]:
        """Return group → the length of the longest chain of groups above it. Groups in a cycle have no depth."""
        waiting = dict.fromkeys(self.groups, 0)
        for group in self.groups.values():
            for name in group.children:
                waiting[name] += 1
        depths = {name: 0 if name == ALL else 1 for name, count in waiting.items() if not count}
        ready = list(depths)
        while ready:
            name = ready.pop()
            for child in self.groups[name].children:
                depths[child] = max(depths.get(child, 1), depths[name] + 1)
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        return depths

    def _ordered(self, names: Iterable[str], depths: Mapping[str, int]) -> list[AnsibleGroup]:
        # Inventory reports cycles, so the order of the groups in one does not matter.
        groups = [self.groups[name] for name in names]
        return sorted(groups, key=lambda group: (depths.get(group.name, 0), group.priority, group.name))

    def _plain_groups(self, member_of: Mapping[str, set[str]]) -> Iterable[Group]:
        for group in self.groups.values():
            if group.name == ALL:
                continue
            hosts: Mapping[str, SourceLocation] = group.hosts
            if group.name == UNGROUPED:
                lone = [name for name, groups in member_of.items() if UNGROUPED in groups]
                hosts = {name: self.hosts[name].position for name in lone}
                if not hosts:
                    continue
            yield Group(group.name, hosts, group.children, {}, group.position)


def valid_name(name: str, location: SourceLocation) -> bool:
    """Return whether a string can name a variable; report it otherwise."""
    if not name.isidentifier():
        help_text = "use letters, digits and _, and don't start with a digit"
        report(problem("SC0308", f"`{name}` is not a valid name of a variable", help_text, location))
    elif name == RESERVED:
        report(problem("SC0308", RESERVED_DETAIL, "choose another name", location))
    return name.isidentifier() and name != RESERVED


def hidden(name: str, value: Any) -> Any:
    """Return a value with each password in it as a secret. A variable or key with such a name is a password.

    Texts that are too short to be masked stay as they are.

    :param name: the name of the variable or key
    """
    if isinstance(value, dict):
        return {key: hidden(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [hidden(name, item) if isinstance(item, dict) else item for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int) or not PASSWORD.match(name):
        return value
    return Secret(name, str(value)) if len(str(value)) >= SHORTEST else value
