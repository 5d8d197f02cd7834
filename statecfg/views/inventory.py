"""The inventory, for people and programs: a table of hosts, and each variable with its source location."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.views.changes import value_text
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.problems import nearer
from statecfg.views.tally import plural

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host
    from statecfg.problems.positions import SourceLocation

    Won = Mapping[str, Mapping[str, tuple[Any, SourceLocation]]]


def data(hosts: Iterable[Host], won: Won) -> Mapping[str, Any]:
    """Return hosts as JSON data: address, port, user, transport, groups, and variables with value and source location.

    :param won: host → variable → value and source location
    """
    return {"format": 1, "hosts": {host.name: _host(host, won[host.name]) for host in hosts}}


def _host(host: Host, won: Mapping[str, tuple[Any, SourceLocation]]) -> Mapping[str, Any]:
    return {
        "address": host.address,
        "port": host.port,
        "user": host.login.user,
        "transport": host.transport,
        "become": host.login.become,
        "groups": list(host.groups),
        "vars": {
            name: {"value": value, "from": str(nearer(position, Path.cwd()))}
            for name, (value, position) in sorted(won.items())
        },
        "position": str(nearer(host.position, Path.cwd())),
    }


def host_lines(hosts: Sequence[Host]) -> Iterator[Line]:
    """Yield a table with a line for each host: its name, address and groups."""
    rows = [(host.name, _where(host), ", ".join(host.groups)) for host in hosts]
    heads = ("HOST", "ADDRESS", "GROUPS")
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(3)]
    if rows:
        yield make(("  ".join(f"{head:<{width}}" for head, width in zip(heads, widths, strict=True)).rstrip(), "dim"))
    for row in rows:
        name, where, groups = (f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield make((name, "bold"), f"  {where}  ", (groups.rstrip(), "skip"), hang=sum(widths[:2]) + 4)
    yield make((plural(len(hosts), "host"), "dim"))


def _where(host: Host) -> str:
    if host.transport == "local":
        return "this machine"
    address = f"{host.login.user}@{host.address}" if host.login.user else host.address
    return f"{address}:{host.port}" if host.port else address


def variable_lines(hosts: Sequence[Host], won: Won) -> Iterator[Line]:
    """Yield each host's variables with their values and, at the right edge, their source locations.

    :param won: host → variable → value and source location
    """
    for number, host in enumerate(hosts):
        if number:
            yield BLANK
        yield make(("── ", "dim"), (host.name, "bold"), right=", ".join(host.groups), rule=True)
        variables = sorted(won[host.name].items())
        width = max((len(name) for name, _ in variables), default=0)
        for name, (value, position) in variables:
            yield make(
                "  ",
                (f"{name:<{width}}", "skip"),
                f"  {value_text(value)}",
                hang=width + 4,
                right=str(nearer(position, Path.cwd())),
            )
        if not variables:
            yield make(("  no variables", "dim"))
