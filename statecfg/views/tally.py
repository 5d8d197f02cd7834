"""What a report amounts to: the kind of each node's change, how many of each, which hosts tell the same story."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from statecfg.remote.graph.names import HostStatus, Outcome
from statecfg.views import states

Report = Mapping[str, Any]
Node = Mapping[str, Any]
Kind = Literal["add", "change", "destroy", "replace", "forget", "unchanged", "unknown", "failed", "skipped"]

SYMBOLS: dict[Kind, str] = {
    "add": "+",
    "change": "~",
    "destroy": "-",
    "replace": "-/+",
    "forget": "-",
    Outcome.UNCHANGED: " ",
    Outcome.UNKNOWN: "?",
    Outcome.FAILED: "✗",
    Outcome.SKIPPED: "·",
}


def kind(node: Node) -> Kind:
    """Return what happens to the resource of `node`: added, changed, destroyed, replaced, or the outcome as it is."""
    outcome = node["outcome"]
    if outcome != Outcome.CHANGED:
        return outcome if outcome in (Outcome.UNCHANGED, *Outcome.STOPPED) else Outcome.UNKNOWN
    return of_changes(node.get("changes") or [])


def of_changes(changes: Iterable[Mapping[str, Any]]) -> Kind:
    """Return the kind of a set of changes: all from nothing, all to nothing, another kind of thing, or a change."""
    seen = [(change.get("before") is None, change.get("after") is None, change.get("field")) for change in changes]
    if any(field == "kind" and not (absent or gone) for absent, gone, field in seen):
        return "replace"
    if seen and all(absent for absent, _, _ in seen):
        return "add"
    if seen and all(gone for _, gone, _ in seen):
        return "destroy"
    return "change"


def removal(node: Node) -> Kind:
    """Return what happens to a resource that goes: destroyed, forgotten (only its record goes), or its outcome."""
    if node.get("stays"):  # it is restarted because something else goes
        return kind(node)
    outcome = node["outcome"]
    gone: dict[str, Kind] = {
        Outcome.CHANGED: "destroy",
        Outcome.UNCHANGED: "forget",
        Outcome.FAILED: Outcome.FAILED,
        Outcome.SKIPPED: Outcome.SKIPPED,
    }
    return gone.get(outcome, Outcome.UNKNOWN)


class Fate(NamedTuple):
    """A node with what happens to it; `goes` says that it is taken back, not made."""

    node: Node
    kind: Kind
    goes: bool = False


def nodes(host: Mapping[str, Any], part: str = "layers") -> Iterator[Node]:
    """Yield the nodes of a part of a host's report in the order of its layers: "layers", "removals" or "left"."""
    for layer in host.get(part) or []:
        yield from layer


def fates(host: Mapping[str, Any]) -> Iterator[Fate]:
    """Yield what happens to the nodes of a host's report, in order: those that go come first."""
    for node in nodes(host, "removals"):
        yield Fate(node, removal(node), goes=not node.get("stays"))
    for node in nodes(host):
        yield Fate(node, kind(node))


def unresolved(node: Node) -> str:
    """Return in words the state of a node that was not applied or removed to the end, "" for all others."""
    return states.of_resource(str(node.get("state") or ""))


def count(hosts: Iterable[Mapping[str, Any]]) -> Counter[Kind]:
    """Return how many nodes of each kind the reports of `hosts` hold; a replacement counts as itself."""
    return Counter(fate.kind for host in hosts for fate in fates(host))


def sentence(kinds: Counter[Kind]) -> str:
    """Return `N to add, N to change, N to destroy`; a replacement is one to add and one to destroy."""
    added, destroyed = kinds["add"] + kinds["replace"], kinds["destroy"] + kinds["replace"]
    forgotten = f", {kinds['forget']} to forget" if kinds["forget"] else ""
    return f"{added} to add, {kinds['change']} to change, {destroyed} to destroy{forgotten}"


def touched(host: Mapping[str, Any]) -> bool:
    """Say whether anything may have been done on a host; what an untouched one reports is a plan at most."""
    return host["status"] not in HostStatus.UNTOUCHED


def pending(report: Report) -> bool:
    """Say whether the plan holds anything that an apply would do or may find to do."""
    kinds = count(report["hosts"].values())
    busy: tuple[Kind, ...] = ("add", "change", "destroy", "replace", "forget", Outcome.UNKNOWN)
    if any(kinds[one] for one in busy):
        return True
    hosts = report["hosts"].values()
    if any(unit.get("due") for host in hosts for unit in host.get("units") or ()):
        return True
    return any(host.get("owed") or any(map(unresolved, nodes(host))) for host in hosts)


class Group(NamedTuple):
    """Hosts whose reports are the same, and that report."""

    names: list[str]
    host: Mapping[str, Any]


def fold(report: Report) -> list[Group]:
    """Return the hosts of a report, those with equal reports together: by name, those in trouble last."""
    groups: dict[str, Group] = {}
    for name in sorted(report["hosts"]):
        host = report["hosts"][name]
        same = json.dumps({key: host[key] for key in host if key not in _OWN}, sort_keys=True, default=repr)
        groups.setdefault(same, Group([], host)).names.append(name)
    return sorted(groups.values(), key=lambda group: group.host["status"] != HostStatus.OK)


# What tells nothing of the plan: two hosts that differ in these only still share it.
_OWN = frozenset({"facts", "duration", "seconds", "round_trips", "peer", "fingerprints", "ledger"})


def plural(number: int, noun: str) -> str:
    """Return `1 host`, `2 hosts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names(hosts: list[str], most: int = 8) -> str:
    """Return host names joined by commas, the rest of a long list as a number."""
    shown = ", ".join(hosts[:most])
    return shown if len(hosts) <= most else f"{shown} and {len(hosts) - most:,} more"
