"""What the sources of an inventory declare, and how they become one inventory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from statecfg.playbook.inventory import Group, Host, Inventory, Login, Vars, same
from statecfg.problems import SourceLocation, problem, report

_DEFAULT = Host("")
_SETTINGS = ("address", "port", "proxy_jump", "python", "transport")


@dataclass
class Parts:
    """What one or several sources declare.

    :param hosts: the hosts with their connection settings
    :param own: host → its own variables
    :param groups: the groups
    :param inherited: host → variables of its groups, of sources that decide themselves which group's variable wins
    """

    hosts: list[Host] = field(default_factory=list)
    own: dict[str, Vars] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    inherited: dict[str, Vars] = field(default_factory=dict)


def combined(sources: Iterable[Parts], file: str) -> Inventory:
    """Return the inventory of several sources. Report where they disagree.

    :param file: the name of the inventory's file
    :raises InvalidInput: with all contradictions between hosts and groups
    """
    hosts: dict[str, Host] = {}
    own: dict[str, Vars] = {}
    groups: dict[str, Group] = {}
    inherited: dict[str, Vars] = {}
    for source in sources:
        for host in source.hosts:
            hosts[host.name] = _merged_host(hosts[host.name], host) if host.name in hosts else host
        for name, variables in source.own.items():
            own[name] = merged(own.get(name, {}), variables, f"host `{name}`")
        for group in source.groups:
            groups[group.name] = _merged_group(groups[group.name], group) if group.name in groups else group
        inherited.update(source.inherited)
    return Inventory(hosts.values(), own, groups.values(), file, inherited)


def merged(one: Vars, other: Vars, what: str) -> Vars:
    """Return the variables of two sources. Report each variable that they set differently.

    :param what: what the variables belong to, for messages
    """
    for name in sorted(one.keys() & other.keys()):
        if not same(one[name][0], other[name][0]):
            detail = f"`{name}` of {what} has two values"
            report(problem("SC0409", detail, "remove one of them", one[name][1], other[name][1]))
    return {**one, **other}


def _merged_group(one: Group, other: Group) -> Group:
    return replace(
        one,
        hosts={**other.hosts, **one.hosts},
        groups={**other.groups, **one.groups},
        vars=merged(one.vars, other.vars, f"group `{one.name}`"),
    )


def _merged_host(one: Host, other: Host) -> Host:
    settings = {name: _setting(one, other, name, one, other, _DEFAULT) for name in _SETTINGS}
    login = {
        item.name: _setting(one.login, other.login, item.name, one, other, _DEFAULT.login) for item in fields(Login)
    }
    return replace(one, **settings, login=Login(**login))


def _setting(one: Any, other: Any, name: str, host: Host, again: Host, default: Any) -> Any:
    """Return a setting of a host in two sources. The default counts as not set."""
    value, second, unset = getattr(one, name), getattr(other, name), getattr(default, name)
    if unset not in (value, second) and value != second:
        locations: tuple[SourceLocation, ...] = (host.position, again.position)
        detail = f"`{name}` of host `{host.name}` is {value!r} in one source and {second!r} in another"
        report(problem("SC0409", detail, "remove one of them", *locations))
    return second if value == unset else value
