"""Summarizes a report: what happens to each node, how often each effect occurs, and hosts with equal reports."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from statecfg.remote.graph.names import PLAN_FAILS, HostStatus, Outcome
from statecfg.run.report_model import Change, HostData, Node, Report
from statecfg.views import alike, states

Effect = Literal[
    "add", "change", "destroy", "replace", "forget", "unchanged", "excluded", "unknown", "failed", "skipped"
]

SYMBOLS: dict[Effect, str] = {
    "add": "+",
    "change": "~",
    "destroy": "-",
    "replace": "-/+",
    "forget": "-",
    Outcome.UNCHANGED: " ",
    "excluded": "·",
    Outcome.UNKNOWN: "?",
    Outcome.FAILED: "✗",
    Outcome.SKIPPED: "·",
}


def effect_of(node: Node) -> Effect:
    """Return what happens to the resource of `node`: the effect of its changes if it changes, otherwise its outcome.

    An unchanged node whose condition is false is "excluded".
    """
    outcome = node["outcome"]
    if outcome == Outcome.UNCHANGED and node.get("excluded"):
        return "excluded"
    if outcome != Outcome.CHANGED:
        stopped: dict[str, Effect] = {
            Outcome.UNCHANGED: Outcome.UNCHANGED,
            Outcome.FAILED: Outcome.FAILED,
            Outcome.SKIPPED: Outcome.SKIPPED,
        }
        return stopped.get(outcome, Outcome.UNKNOWN)
    effect = of_changes(node.get("changes") or [])
    return "change" if effect in ("add", "destroy") and node.get("kept") else effect


def of_changes(changes: Iterable[Change]) -> Effect:
    """Return the effect of a set of changes: "add", "destroy", "replace" (another type of file) or "change"."""
    seen = [(change.get("before") is None, change.get("after") is None, change.get("field")) for change in changes]
    if any(field == "kind" and not (absent or removed) for absent, removed, field in seen):
        return "replace"
    if seen and all(absent for absent, _, _ in seen):
        return "add"
    if seen and all(removed for _, removed, _ in seen):
        return "destroy"
    return "change"


def done_word(node: Node, effect: Effect) -> str:
    """Return in a word what an apply did with a node, "" for a node that did not change anything."""
    ops = {str(action["op"]) for action in node.get("actions") or ()}
    if effect == "change" and not node.get("changes") and ops:
        if node.get("shutdown_first") or ops <= {"restart"}:
            return "restarted"
        return "reloaded" if ops <= {"reload"} else "run" if ops <= {"run"} else _DONE[effect]
    return _DONE.get(effect, "")


_DONE: dict[Effect, str] = {"add": "added", "change": "changed", "destroy": "destroyed", "replace": "replaced"}


def removal(node: Node) -> Effect:
    """Return what happens to a removal: "destroy", "forget" (only its record is deleted), or its outcome."""
    if node.get("stays"):  # not a removal itself: it restarts because something else is removed
        return effect_of(node)
    outcome = node["outcome"]
    results: dict[str, Effect] = {
        Outcome.CHANGED: "destroy",
        Outcome.UNCHANGED: "forget",
        Outcome.FAILED: Outcome.FAILED,
        Outcome.SKIPPED: Outcome.SKIPPED,
    }
    return results.get(outcome, Outcome.UNKNOWN)


class Fate(NamedTuple):
    """A node and what happens to it.

    :param is_removal: whether the node is a removal
    """

    node: Node
    effect: Effect
    is_removal: bool = False


def nodes(host: HostData, part: str = "layers") -> Iterator[Node]:
    """Yield the nodes of a part of a host's report, in the order of its layers.

    :param part: "layers", "removals" or "left"
    """
    layers = {"layers": host.get("layers"), "removals": host.get("removals"), "left": host.get("left")}[part]
    for layer in layers or []:
        yield from layer


def fates(host: HostData) -> Iterator[Fate]:
    """Yield what happens to the nodes of a host's report, in order, removals first."""
    for node in nodes(host, "removals"):
        yield Fate(node, removal(node), is_removal=not node.get("stays"))
    for node in nodes(host):
        yield Fate(node, effect_of(node))


def unresolved(node: Node) -> str:
    """Return in words the state of a node that was not completely applied or removed, "" for all others."""
    return states.of_resource(str(node.get("state") or ""))


def cause(node: Node) -> str:
    """Return after what an unknown part of a node is known: another node, or the run of the node itself."""
    name = str(node.get("known_after") or "")
    return "it has run" if name == node["name"] else name


def count(hosts: Iterable[HostData], done: bool = False) -> Counter[Effect]:
    """Return the number of nodes with each effect in the reports of `hosts`; a replacement counts only as "replace".

    Units that are removed or upgraded count as well. If the plan of a host fails, nothing starts there: what it would
    change counts as "skipped".

    :param done: count only the units whose hooks ran, for the outcome of an apply
    """
    counts: Counter[Effect] = Counter()
    for host in hosts:
        counts.update(_happens(fate.effect, host) for fate in fates(host))
        units = [unit for unit in host.get("units") or () if "change" in unit and (not done or "hooks" in unit)]
        counts.update(_happens(OF_UNIT[unit["change"]], host) for unit in units)
    return counts


OF_UNIT: dict[str, Effect] = {"remove": "destroy", "upgrade": "change"}


def _happens(effect: Effect, host: HostData) -> Effect:
    """Return the effect of a node, or "skipped" if it would change something on a host where nothing starts."""
    stays = host.get("halted") != PLAN_FAILS or effect in (Outcome.UNCHANGED, "excluded", Outcome.FAILED)
    return effect if stays else Outcome.SKIPPED


def sentence(counts: Counter[Effect]) -> str:
    """Return `N to add, N to change, N to destroy`; a replacement counts as an addition and a destruction."""
    added, destroyed = counts["add"] + counts["replace"], counts["destroy"] + counts["replace"]
    forgotten = f", {counts['forget']} to forget" if counts["forget"] else ""
    return f"{added} to add, {counts['change']} to change, {destroyed} to destroy{forgotten}"


def touched(host: HostData) -> bool:
    """Return whether the run may have changed a host. An untouched host reports at most a plan."""
    return host["status"] not in HostStatus.UNTOUCHED


def pending(report: Report) -> bool:
    """Return whether the plan contains anything that an apply would do or might do."""
    counts = count(report["hosts"].values())
    busy: tuple[Effect, ...] = ("add", "change", "destroy", "replace", "forget", Outcome.UNKNOWN)
    if any(counts[one] for one in busy):
        return True
    hosts = report["hosts"].values()
    if any(unit.get("due") or unit.get("change") for host in hosts for unit in host.get("units") or ()):
        return True
    return any(host.get("owed") or any(map(unresolved, nodes(host))) for host in hosts)


class EqualHosts(NamedTuple):
    """Hosts with equal reports, and that report."""

    names: list[str]
    host: HostData


def fold(report: Report) -> list[EqualHosts]:
    """Return the hosts of a report, grouped by equal reports and sorted by name; hosts that are not ok come first.

    Errors count as equal if they differ only in the hosts' names and addresses.
    """
    if len(report["hosts"]) == 1:
        return [EqualHosts([name], host) for name, host in report["hosts"].items()]
    groups: dict[str, list[str]] = {}
    texts: dict[int, str] = {}  # hosts with equal results share the values of their reports
    for name in sorted(report["hosts"]):
        host = report["hosts"][name]
        error = host.get("error")
        keys = [key for key in sorted(host) if key not in _OWN and (key != "error" or not error)]
        same = "\n".join(f"{key} {_text(host.get(key), texts)}" for key in keys)
        groups.setdefault(same + (alike.template(error, name) if error else ""), []).append(name)
    folded = [_group(names, report["hosts"]) for names in groups.values()]
    return sorted(folded, key=lambda group: group.host["status"] == HostStatus.OK)


def _group(names: list[str], hosts: Mapping[str, HostData]) -> EqualHosts:
    host = hosts[names[0]]
    errors = {name: hosts[name]["error"] for name in names if "error" in hosts[name]}
    return EqualHosts(names, {**host, "error": alike.merged(errors)} if len(errors) > 1 else host)


def _text(value: object, texts: dict[int, str]) -> str:
    """Return a string that is the same for equal values of reports. Long ones are replaced by their digests."""
    if id(value) not in texts:
        text = json.dumps(value, sort_keys=True, default=repr)
        texts[id(value)] = text if len(text) <= _LONG else hashlib.sha256(text.encode()).hexdigest()
    return texts[id(value)]


_LONG = 100  # characters


# Keys that say nothing about the plan. Two hosts that differ only in these share a group.
_OWN = frozenset({"facts", "duration", "seconds", "round_trips", "peer", "fingerprints", "ledger"})


def plural(number: int, noun: str) -> str:
    """Return `1 host`, `2 hosts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names(hosts: list[str], most: int = 8) -> str:
    """Return host names joined by commas; after the first `most`, only the number of the others."""
    listed = ", ".join(hosts[:most])
    return listed if len(hosts) <= most else f"{listed} and {len(hosts) - most:,} more"
