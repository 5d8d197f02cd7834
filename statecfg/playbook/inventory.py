"""The inventory: hosts, groups, and which value of a variable wins."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from statecfg.playbook import host_patterns
from statecfg.playbook.host_patterns import ALL, LOCAL
from statecfg.problems import InvalidInput, Problem, did_you_mean, problem, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import NOWHERE, SourceLocation

if TYPE_CHECKING:
    from statecfg.graph.opaque import Secret

__all__ = ["ALL", "LOCAL", "Group", "Host", "Inventory", "Login", "wrong_name"]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")

# The name that templates always have for the host's name and groups.
RESERVED = "host"
RESERVED_DETAIL = f"`{RESERVED}` is reserved"

Vars = Mapping[str, tuple[Any, SourceLocation]]

# How to reach a host, as inventories name it → the module in `statecfg/transport/` that does it.
TRANSPORTS = {"ssh": "ssh_connection", "local": "local"}


@dataclass(frozen=True, slots=True)
class Login:
    """The user that statecfg logs in as, and the user that it acts as.

    :param user: the user to log in as; None for the user in ssh_config, or the current user
    :param identity_files: private keys to try, as paths on the controller
    :param become: "sudo", "doas" or "su" to act as `become_user`; None to act as the user who logged in
    :param become_password: the password that this needs; -K overrides it
    """

    user: str | None = None
    identity_files: tuple[str, ...] = ()
    become: str | None = None
    become_user: str = "root"
    become_password: Secret | None = None

    def with_become(self, wanted: bool | None, user: str | None) -> Login:
        """Return the login with `become` and `become_user` from elsewhere. It keeps its own method of becoming.

        :param wanted: whether to become another user, with sudo if the login has no method
        """
        become = self.become or ("sudo" if wanted else None)
        return replace(self, become=become, become_user=user or self.become_user)

    def with_settings(self, wanted: bool | None, user: str | None) -> Login:
        """Return the login with the project's settings, which apply only if the inventory sets no other user."""
        return self.with_become(wanted, user if self.become_user == "root" else None)


@dataclass(frozen=True, slots=True)
class Host:
    """A managed machine.

    :param name: its name in reports, patterns and `--limit`
    :param address: the address to connect to; default: the name
    :param port: 1 to 65535; None for the port in ssh_config, or 22
    :param proxy_jump: jump hosts, in the format of ssh's `-J`
    :param login: the user to log in as, and the user to act as
    :param python: path of the Python on the host; None to search for one
    :param vars: the merged variables of its groups and its own
    :param groups: the groups that contain it, directly or indirectly, sorted
    :param transport: one of `TRANSPORTS`
    :param position: the source location in the inventory
    """

    name: str
    address: str = ""
    port: int | None = None
    proxy_jump: str | None = None
    login: Login = Login()
    python: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    transport: str = "ssh"
    position: SourceLocation = NOWHERE


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of hosts and groups.

    :param hosts: name of each host → source location of the name
    :param groups: name of each group in it → source location of the name
    """

    name: str
    hosts: Mapping[str, SourceLocation] = field(default_factory=dict)
    groups: Mapping[str, SourceLocation] = field(default_factory=dict)
    vars: Vars = field(default_factory=dict)
    position: SourceLocation = NOWHERE


class Inventory:
    """The validated hosts and groups by name.

    :param hosts: the hosts, without groups and variables
    :param vars: host → its own variables
    :param groups: the groups
    :param file: the inventory's file; "" for none
    :param inherited: host → variables of its groups in sources that decide themselves which group's variable wins
    :raises InvalidInput: with all contradictions
    """

    def __init__(
        self,
        hosts: Iterable[Host] = (),
        vars: Mapping[str, Vars] | None = None,
        groups: Iterable[Group] = (),
        file: str = "",
        inherited: Mapping[str, Vars] | None = None,
    ) -> None:
        self.file = file
        self._inherited = dict(inherited or {})
        self.groups = {group.name: group for group in groups}
        self._own = dict(vars or {})
        plain = {host.name: host for host in hosts}
        problems = self._check_names(plain) + self._check_cycles()
        if problems:
            raise InvalidInput(problems)
        self._below = {name: self._descend(name) for name in self.groups}
        self._members = {name: self._hosts_of(name) for name in self.groups}
        self._of: dict[str, list[str]] = {name: [] for name in plain}
        for group in sorted(self._members):
            for name in self._members[group]:
                self._of[name].append(group)
        self._effective = {name: self._winners(name, problems) for name in plain}
        if problems:
            raise InvalidInput(problems)
        self.hosts = {name: self._complete(host) for name, host in plain.items()}

    def select(
        self, pattern: str, limit: str | None = None, *locations: SourceLocation, empty_ok: bool = False
    ) -> list[Host]:
        """Return the hosts that both a pattern and a limit select, in the inventory's order.

        :param pattern: see `statecfg.playbook.host_patterns.match`
        :param limit: a second pattern; None for no limit
        :param locations: where the pattern is written
        :param empty_ok: allow that the limit excludes all hosts of the pattern
        :raises InvalidInput: the pattern or limit matches nothing or can't be parsed
        """
        names = [*self.hosts, LOCAL] if pattern.strip() == LOCAL else [*self.hosts]
        chosen, problems = host_patterns.match(pattern, self._names(self.hosts), "hosts", *locations)
        if limit is not None:
            allowed, wrong = host_patterns.match(limit, self._names(names), "--limit")
            problems += wrong
            remaining = [name for name in chosen if name in allowed]
            if chosen and not remaining and not problems and not empty_ok:
                detail = f"--limit `{limit}` excludes every host of `{pattern}`"
                problems.append(problem("SC0406", detail, suggest(limit, chosen, "its hosts"), *locations))
            chosen = remaining
        if problems:
            raise InvalidInput(problems)
        return [self.host(name) for name in chosen]

    def host(self, name: str) -> Host:
        """Return a host by its name; `@local` is this machine.

        :raises InvalidInput: the inventory has no host with this name
        """
        if name == LOCAL:
            return self.hosts.get(LOCAL) or Host(LOCAL, "localhost", transport="local")
        if name not in self.hosts:
            help_text = suggest(name, dict.fromkeys([*self.hosts, LOCAL]), "available")
            raise InvalidInput([problem("SC0404", f"the inventory has no host `{name}`", help_text)])
        return self.hosts[name]

    def members(self, group: str) -> list[str]:
        """Return the names of the hosts in a group and in the groups that it contains, in the inventory's order."""
        return [name for name in self.hosts if group == ALL or name in self._members[group]]

    def who_won(self, host: str) -> dict[str, tuple[Any, SourceLocation]]:
        """Return each variable of a host with its value and the source location of the value.

        A host's own variables override those of its groups; a group's override those of a group that contains it.
        """
        return {} if host == LOCAL and host not in self._effective else dict(self._effective[host])

    def _names(self, hosts: Iterable[str]) -> host_patterns.SelectableNames:
        return host_patterns.SelectableNames(list(hosts), {g: sorted(m) for g, m in self._members.items() if g != ALL})

    def _check_names(self, hosts: Mapping[str, Host]) -> list[Problem]:
        problems: list[Problem] = []
        for name, group in self.groups.items():
            # If the group contains nothing else, patterns with the name are clear.
            if name in hosts and (set(group.hosts) != {name} or group.groups):
                detail = f"`{name}` is a group and a host"
                problems.append(problem("SC0403", detail, "rename one of them", group.position, hosts[name].position))
            for host, location in group.hosts.items():
                if host not in hosts:
                    problems.append(self._unknown("host", host, list(hosts), location))
            for other, location in group.groups.items():
                if other not in self.groups:
                    problems.append(self._unknown("group", other, list(self.groups), location))
        return problems

    @staticmethod
    def _unknown(category: str, name: str, valid: list[str], location: SourceLocation) -> Problem:
        add = f"add it to `{category}s:`"
        near = did_you_mean(name, valid)
        listed = suggest(name, valid, "available")
        help_text = f"{near} Otherwise {add}" if near else f"{add}; {listed}" if listed else add
        return problem("SC0404", f"the inventory has no {category} `{name}`", help_text, location)

    def _check_cycles(self) -> list[Problem]:
        visited: set[str] = set()
        for start in self.groups:
            path: list[str] = []
            # A stack of iterators instead of recursion: groups can be nested to any depth.
            steps = [iter([start])]
            while steps:
                name = next(steps[-1], None)
                if name is None:
                    steps.pop()
                    if path:
                        visited.add(path.pop())
                elif name in path:
                    return [self._cycle([*path[path.index(name) :], name])]
                elif name not in visited and name in self.groups:
                    path.append(name)
                    steps.append(iter(self.groups[name].groups))
        return []

    def _cycle(self, path: list[str]) -> Problem:
        locations = [self.groups[one].groups[other] for one, other in itertools.pairwise(path)]
        return problem("SC0402", " → ".join(path), "remove one of these groups from the group before it", *locations)

    def _descend(self, name: str) -> set[str]:
        below: set[str] = set()
        waiting = list(self.groups) if name == ALL else list(self.groups[name].groups)
        while waiting:
            group = waiting.pop()
            if group not in below and group != name:
                below.add(group)
                waiting.extend(self.groups[group].groups)
        return below

    def _hosts_of(self, name: str) -> set[str]:
        if name == ALL:
            return set(self._own)
        return {host for group in (name, *self._below[name]) for host in self.groups[group].hosts}

    def _winners(self, host: str, problems: list[Problem]) -> dict[str, tuple[Any, SourceLocation]]:
        groups = self._of[host]
        inherited = self._inherited.get(host, {})
        effective: dict[str, tuple[Any, SourceLocation]] = dict(inherited)
        for variable in dict.fromkeys(key for group in groups for key in self.groups[group].vars):
            setting = [group for group in groups if variable in self.groups[group].vars]
            innermost = [group for group in setting if not self._below[group].intersection(setting)]
            values = [self.groups[group].vars[variable] for group in innermost]
            names = "groups " + " and ".join(f"`{group}`" for group in innermost)
            if variable in inherited:
                values, names = [*values, inherited[variable]], f"an Ansible source and {names}"
            effective[variable] = values[0]
            own = self._own.get(host, {})
            if variable not in own and any(not same(value, values[0][0]) for value, _ in values):
                problems.append(_disagreement(host, variable, names, [location for _, location in values]))
        effective.update(self._own.get(host, {}))
        return effective

    def _complete(self, host: Host) -> Host:
        values = {key: value for key, (value, _) in self._effective[host.name].items()}
        groups = tuple(group for group in self._of[host.name] if group != ALL)
        return replace(host, address=host.address or host.name, vars=values, groups=groups)


def same(one: Any, other: Any) -> bool:
    """Return whether two values of a variable are equal and of the same type."""
    return type(one) is type(other) and bool(one == other)


def _disagreement(host: str, variable: str, names: str, locations: list[SourceLocation]) -> Problem:
    help_text = f"set `{variable}` on the host, or add one of the groups to the other"
    detail = f"`{variable}` of host `{host}` differs between {names}"
    return problem("SC0408", detail, help_text, *locations)


def wrong_name(name: str) -> str | None:
    """Return what is wrong with the name of a host or group; None if it is valid.

    A name consists of letters, digits, `_`, `-` and `.`, and does not start with `-` or `.`, because it is used in
    patterns, ssh arguments and file names. The rule prevents attacks such as a host named `-oProxyCommand=…`.
    """
    if _NAME.match(name) and len(name) <= 253:
        return None
    if name.startswith("-"):
        return "it starts with `-`, so programs would read it as an option"
    if len(name) > 253:
        return f"it has {len(name)} characters; the maximum is 253"
    bad = next((letter for letter in name if not re.match(r"[A-Za-z0-9_.-]", letter)), name[:1])
    return f"it must not contain {bad!r}" if name else "it is empty"
