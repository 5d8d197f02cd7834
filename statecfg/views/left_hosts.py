"""Hosts that left a playbook: their remaining units and resources, and the command that removes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import names, plural

if TYPE_CHECKING:
    from statecfg.store.left_hosts import LeftHost


def lines(report: Mapping[str, Any]) -> Iterator[Line]:
    """Yield a blank line and the lines about each host that left the playbook; nothing if no host did."""
    left = report.get("left_hosts") or ()
    if not left:
        return
    yield BLANK
    yield make((f"{plural(len(left), 'host')} left the playbook; its resources there stay:", "skip"))
    for host in left:
        yield make("  - ", (str(host["host"]), "bold"), f"  {what(host)}", hang=4)
        if host["command"]:
            yield make("    ", ("To remove it: ", "dim"), str(host["command"]))._replace(whole=True)
        else:
            text = "it has no address, because it is not in the inventory: add it, or run `statecfg hosts forget`"
            yield make("    ", (text, "dim"), hang=4)


def what(host: LeftHost) -> str:
    """Return the units and resources of a host that left the playbook, in words."""
    units, resources = host["units"], host["resources"]
    parts = [f"{plural(len(units), 'unit')}: {names(units)}"] if units else []
    parts += [f"{plural(len(resources), 'resource')}: {names(resources)}"] if resources else []
    return "; ".join(parts) or "resources that no recorded run contains"
