"""Drift, for people: changes on the host, changes in the definition, and a last line to grep for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from statecfg.remote.graph.names import HostStatus, Outcome
from statecfg.run.report_model import HostData, Report
from statecfg.views import hosts as host_lines
from statecfg.views import units
from statecfg.views.lines import BLANK, Line, Span, make
from statecfg.views.plan import BRIEF, Detail, left_lines, node_lines
from statecfg.views.tally import EqualHosts, Fate, fates, fold, names, nodes, plural, unresolved

HOST, DEFINITION, PENDING = "host", "definition", "pending"


def verify_lines(report: Report, detail: Detail = BRIEF) -> Iterator[Line]:
    """Yield the lines that show drift.

    :param report: the masked report of mode "verify", in format 1
    :param detail: how much to show
    """
    for group in fold(report):
        yield from _group(group, detail)
        yield BLANK
    hosts = report["hosts"]
    broken = [name for name in sorted(hosts) if hosts[name]["status"] != HostStatus.OK]
    if broken:
        text = f"{len(broken)} of {plural(len(hosts), 'host')} could not be verified: {names(broken)}"
        yield make((text, "remove"))
    by_host, by_definition, pending, sound, failed = _counts(hosts.values())
    more: Span = (f", {failed} failed", "remove") if failed else ("", "")
    waiting = f", {pending:,} not applied yet" if pending else ""
    text = f" {by_host} changed on the host, {by_definition} in the definition{waiting}, {sound:,} as defined"
    yield make(("Drift:", "bold"), text, more, ".")


def _counts(hosts: Iterable[HostData]) -> tuple[int, int, int, int, int]:
    """Return the numbers of nodes: changed on the host, in the definition, not fully applied, as defined, failed.

    A node that changed on the host and in the definition counts as changed on the host.
    """
    by_host = by_definition = pending = sound = failed = 0
    for host in hosts:
        listed = list(fates(host))
        by_host += sum(_by_host(fate) for fate in listed)
        by_definition += sum(_by_definition(fate) for fate in listed) + sum(1 for _ in nodes(host, "left"))
        by_definition += sum("change" in unit for unit in host.get("units") or ())
        pending += sum(_pending(fate) for fate in listed)
        sound += sum(fate.effect == Outcome.UNCHANGED for fate in listed)
        failed += sum(fate.effect in Outcome.STOPPED for fate in listed)
    return by_host, by_definition, pending, sound, failed


def _by_host(fate: Fate) -> bool:
    return HOST in (fate.node.get("drift") or ())


def _by_definition(fate: Fate) -> bool:
    return DEFINITION in (fate.node.get("drift") or ()) and not _by_host(fate)


def _pending(fate: Fate) -> bool:
    return PENDING in (fate.node.get("drift") or ()) and not _by_host(fate) and not _by_definition(fate)


def _group(group: EqualHosts, detail: Detail) -> Iterator[Line]:
    yield host_lines.heading(group)
    yield from host_lines.or_nothing(group.host, _host(group.host, detail), "No drift")


def _host(host: HostData, detail: Detail) -> Iterator[Line]:
    """Yield the drift of a host, below its heading."""
    yield from host_lines.trouble(host)
    listed = list(fates(host))
    left = list(nodes(host, "left"))
    by_host = [fate for fate in listed if _by_host(fate)]
    by_definition = [fate for fate in listed if _by_definition(fate)]
    if by_host:
        yield make(("  The host changed:", "bold"))
    for fate in by_host:
        yield from node_lines(fate, detail)
        if DEFINITION in fate.node["drift"]:
            yield make(("      ↳ ", "dim"), "the definition changed as well", hang=8)
    if by_definition or left:
        yield make(("  The definition changed:", "bold"))
    for fate in by_definition:
        yield from node_lines(fate, detail)
    for node in left:
        yield from left_lines(node, detail)
    pending = [fate for fate in listed if _pending(fate)]
    if pending:
        yield make(("  Not applied yet:", "bold"))
    for fate in pending:
        yield from node_lines(fate, detail)
    for fate in listed:
        drifted = _by_host(fate) or _by_definition(fate) or _pending(fate)
        if not drifted and (fate.effect != Outcome.UNCHANGED or unresolved(fate.node) or detail.verbose):
            yield from node_lines(fate, detail)
    yield from host_lines.owed(host)
    yield from units.due_lines(host, bool(detail.verbose))
    unchanged, excluded = (sum(fate.effect == what for fate in listed) for what in (Outcome.UNCHANGED, "excluded"))
    if listed and unchanged + excluded == len(listed) and not left:
        yield make(("  ✓ ", "add"), f"No drift: {plural(unchanged, 'resource')} as defined.")
    elif unchanged and not detail.verbose:
        yield make((f"    {unchanged:,} as defined", "dim"))
