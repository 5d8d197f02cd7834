"""The hosts and groups that playbooks are for: who belongs where, and whose variable wins."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from statecfg.playbook import host_patterns
from statecfg.playbook.host_patterns import ALL, LOCAL
from statecfg.problems import InvalidInput, Problem, problem, suggest
from statecfg.problems.positions import NOWHERE, SourceLocation

__all__ = ["ALL", "LOCAL", "Group", "Host", "Inventory", "wrong_name"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

Vars = Mapping[str, tuple[Any, SourceLocation]]

# How to reach a host, as inventories name it → the module in `statecfg/transport/` that does it.
TRANSPORTS = {"ssh": "ssh_connection", "local": "local"}


@dataclass(frozen=True, slots=True)
class Host:
    """A machine we manage.

    :param name: what reports, patterns and `--limit` call it
    :param address: what to connect to; the name where not given
    :param port: 1 to 65535; None: what ssh_config says, or 22
    :param user: whom to log in as; None: what ssh_config says, or the current user
    :param identity_files: private keys to try, as paths on the controller
    :param proxy_jump: hosts to jump through, as ssh's `-J` takes them
    :param become: "sudo", "doas" or "su" to act as `become_user`; None to act as the user who logged in
    :param python: path of the Python to use on the host; None to look for one
    :param vars: variables, of its groups and its own merged
    :param groups: the groups it is in, directly or through others, sorted
    :param transport: one of `TRANSPORTS`
    :param position: where the inventory names it
    """

    name: str
    address: str = ""
    port: int | None = None
    user: str | None = None
    identity_files: tuple[str, ...] = ()
    proxy_jump: str | None = None
    become: str | None = None
    become_user: str = "root"
    python: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    transport: str = "ssh"
    position: SourceLocation = NOWHERE


@dataclass(frozen=True, slots=True)
class Group:
    """Hosts and groups with something in common; `hosts` and `groups` map a name to the place that says so."""

    name: str
    hosts: Mapping[str, SourceLocation] = field(default_factory=dict)
    groups: Mapping[str, SourceLocation] = field(default_factory=dict)
    vars: Vars = field(default_factory=dict)
    position: SourceLocation = NOWHERE


class Inventory:
    """Hosts by name and groups by name, checked.

    :param hosts: the hosts, without groups and variables
    :param vars: each host's own variables
    :param groups: the groups
    :param file: the file they come from, "" for none
    :raises InvalidInput: with every contradiction in it
    """

    def __init__(
        self,
        hosts: Iterable[Host] = (),
        vars: Mapping[str, Vars] | None = None,
        groups: Iterable[Group] = (),
        file: str = "",
    ) -> None:
        self.file = file
        self.groups = {group.name: group for group in groups}
        self._own = dict(vars or {})
        plain = {host.name: host for host in hosts}
        found = self._check_names(plain) + self._check_circles()
        if found:
            raise InvalidInput(found)
        self._below = {name: self._descend(name) for name in self.groups}
        self._members = {name: self._hosts_of(name) for name in self.groups}
        self._of: dict[str, list[str]] = {name: [] for name in plain}
        for group in sorted(self._members):
            for name in self._members[group]:
                self._of[name].append(group)
        self._won = {name: self._winners(name, found) for name in plain}
        if found:
            raise InvalidInput(found)
        self.hosts = {name: self._complete(host) for name, host in plain.items()}

    def select(
        self, pattern: str, limit: str | None = None, *places: SourceLocation, empty_ok: bool = False
    ) -> list[Host]:
        """Return the hosts of a pattern that the limit leaves, in the inventory's order.

        :param pattern: see `statecfg.playbook.host_patterns.match`
        :param limit: a pattern that narrows the first one down
        :param places: where the pattern was written
        :param empty_ok: a limit that leaves none of this pattern's hosts is no error
        :raises InvalidInput: a pattern or limit matches nothing, or can't be parsed
        """
        every = [*self.hosts, LOCAL] if pattern.strip() == LOCAL else [*self.hosts]
        chosen, found = host_patterns.match(pattern, self._names(self.hosts), "hosts", *places)
        if limit is not None:
            kept, wrong = host_patterns.match(limit, self._names(every), "--limit")
            found += wrong
            left = [name for name in chosen if name in kept]
            if chosen and not left and not found and not empty_ok:
                detail = f"--limit `{limit}` leaves none of the {len(chosen)} hosts of `{pattern}`"
                found.append(problem("SC0406", detail, suggest(limit, chosen, "its hosts"), *places))
            chosen = left
        if found:
            raise InvalidInput(found)
        return [self.host(name) for name in chosen]

    def host(self, name: str) -> Host:
        """Return a host by its name; `@local` is this machine. Raises InvalidInput where there is none."""
        if name == LOCAL:
            return self.hosts.get(LOCAL) or Host(LOCAL, "localhost", transport="local")
        if name not in self.hosts:
            detail = f"there is no host `{name}`"
            raise InvalidInput([problem("SC0404", detail, suggest(name, [*self.hosts, LOCAL], "there are"))])
        return self.hosts[name]

    def members(self, group: str) -> list[str]:
        """Return the names of a group's hosts, its groups' hosts included, in the inventory's order."""
        return [name for name in self.hosts if group == ALL or name in self._members[group]]

    def who_won(self, host: str) -> dict[str, tuple[Any, SourceLocation]]:
        """Return each variable of the host with its value and the place that gave it.

        A host's own variables win over its groups'; a group's win over those of a group that holds it.
        """
        return {} if host == LOCAL and host not in self._won else dict(self._won[host])

    def _names(self, hosts: Iterable[str]) -> host_patterns.Names:
        return host_patterns.Names(list(hosts), {g: sorted(m) for g, m in self._members.items() if g != ALL})

    def _check_names(self, hosts: Mapping[str, Host]) -> list[Problem]:
        found: list[Problem] = []
        for name, group in self.groups.items():
            if name in hosts:
                detail = f"`{name}` is a group and a host"
                found.append(problem("SC0403", detail, "rename one of them", group.position, hosts[name].position))
            for host, place in group.hosts.items():
                if host not in hosts:
                    found.append(self._unknown("host", host, list(hosts), place))
            for other, place in group.groups.items():
                if other not in self.groups:
                    found.append(self._unknown("group", other, list(self.groups), place))
        return found

    @staticmethod
    def _unknown(kind: str, name: str, valid: list[str], place: SourceLocation) -> Problem:
        add = f"add it to {kind}s:"
        help_text = suggest(name, valid, f"{add} There are")
        return problem("SC0404", f"there is no {kind} `{name}`", help_text or add, place)

    def _check_circles(self) -> list[Problem]:
        done: set[str] = set()
        for start in self.groups:
            path: list[str] = []
            # A path of iterators in place of recursion: groups may nest as deeply as they like.
            steps = [iter([start])]
            while steps:
                name = next(steps[-1], None)
                if name is None:
                    steps.pop()
                    if path:
                        done.add(path.pop())
                elif name in path:
                    return [self._circle([*path[path.index(name) :], name])]
                elif name not in done and name in self.groups:
                    path.append(name)
                    steps.append(iter(self.groups[name].groups))
        return []

    def _circle(self, path: list[str]) -> Problem:
        places = [self.groups[one].groups[other] for one, other in itertools.pairwise(path)]
        return problem("SC0402", " → ".join(path), "take one of these out of the other", *places)

    def _descend(self, name: str) -> set[str]:
        below: set[str] = set()
        left = list(self.groups) if name == ALL else list(self.groups[name].groups)
        while left:
            group = left.pop()
            if group not in below and group != name:
                below.add(group)
                left.extend(self.groups[group].groups)
        return below

    def _hosts_of(self, name: str) -> set[str]:
        if name == ALL:
            return set(self._own)
        return {host for group in (name, *self._below[name]) for host in self.groups[group].hosts}

    def _winners(self, host: str, found: list[Problem]) -> dict[str, tuple[Any, SourceLocation]]:
        groups = self._of[host]
        won: dict[str, tuple[Any, SourceLocation]] = {}
        for variable in dict.fromkeys(key for group in groups for key in self.groups[group].vars):
            giving = [group for group in groups if variable in self.groups[group].vars]
            nearest = [group for group in giving if not self._below[group].intersection(giving)]
            values = [self.groups[group].vars[variable] for group in nearest]
            won[variable] = values[0]
            own = self._own.get(host, {})
            if variable not in own and any(not _same(value, values[0][0]) for value, _ in values):
                found.append(_disagreement(host, variable, nearest, [place for _, place in values]))
        won.update(self._own.get(host, {}))
        return won

    def _complete(self, host: Host) -> Host:
        values = {key: value for key, (value, _) in self._won[host.name].items()}
        groups = tuple(group for group in self._of[host.name] if group != ALL)
        return replace(host, address=host.address or host.name, vars=values, groups=groups)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _disagreement(host: str, variable: str, groups: list[str], places: list[SourceLocation]) -> Problem:
    names = " and ".join(f"`{group}`" for group in groups)
    help_text = f"give `{variable}` to the host, or put one of the groups into the other"
    return problem("SC0408", f"`{variable}` of host `{host}` differs between groups {names}", help_text, *places)


def wrong_name(name: str) -> str | None:
    """Return what is wrong with the name of a host or group, or None.

    Names are letters, digits, `_`, `-` and `.`, and don't start with `-` or `.`: they are used in patterns, in ssh
    configuration and in file names. Source: what `ssh -oProxyCommand` attacks have taught.
    """
    if _NAME.match(name) and len(name) <= 253:
        return None
    if name.startswith("-"):
        return "it starts with `-`, so programs would take it for an option"
    if len(name) > 253:
        return f"it has {len(name)} characters; 253 are the limit"
    bad = next((letter for letter in name if not re.match(r"[A-Za-z0-9_.-]", letter)), name[:1])
    return f"{bad!r} is not allowed in it" if name else "it is empty"
