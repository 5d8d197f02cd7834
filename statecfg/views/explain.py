"""Explanations of nodes, variables and hosts, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from statecfg.run.report_model import Report
from statecfg.views import hosts as host_lines
from statecfg.views.history import run_lines
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import EqualHosts, names, plural

Json = Mapping[str, Any]


def explanation_lines(data: Json) -> Iterator[Line]:
    """Yield the explanations of everything that has a name.

    :param data: lists of `nodes`, `variables` and `hosts`
    """
    first = True
    for subject, lines in (("nodes", _node), ("variables", _variable), ("hosts", _host)):
        for item in data[subject]:
            if not first:
                yield BLANK
            first = False
            yield from lines(item)


def _heading(item: Json, hosts: Iterable[str]) -> Line:
    right = " · ".join(filter(None, (names(list(hosts)), item["playbook"])))
    return make(("── ", "dim"), (item["name"], "bold"), right=right, rule=True)


def _row(title: str, *parts: Any, right: str = "") -> Line:
    return make((f"  {title:<13}", "dim"), *parts, hang=15, right=right)


def _node(item: Json) -> Iterator[Line]:
    yield _heading(item, item["hosts"])
    yield _row("type", item["type"])
    for number, declared in enumerate(item["declared"]):
        yield _row("declared" if not number else "and", declared["position"])
        for role in declared["roles"]:
            yield _row("", f"in the role {role['name']}, which {role['position']} includes")
    if item["labels"]:
        yield _row("part of", ", ".join(item["labels"]))
    yield _row("layer", str(item["layer"]))
    if item["items"]:
        yield _row("for each of", item["items"])
    for number, text in enumerate(item["conditions"]):
        yield _row("if" if not number else "and", text)
    for title, key in (("requires", "requires"), ("required by", "required_by")):
        for number, requirement in enumerate(item[key]):
            yield from _requirement(title if not number else "", requirement)
        if not item[key]:
            yield _row(title, ("nothing", "dim"))
    yield from _left_out(item["left_out"])


def _requirement(title: str, requirement: Json) -> Iterator[Line]:
    mark = "↻" if requirement["triggers"] else "⇠" if requirement["why"] == "automatic" else "←"
    yield _row(title, f"{mark} {requirement['name']}")
    why = {
        "automatic": f"automatic: {requirement['detail']}",
        "reference": f"through {requirement['detail']} in {requirement['position']}",
        "written": f"written in {requirement['position']}",
    }[requirement["why"]]
    yield _row("", (f"  {why}" + (", and triggers" if requirement["triggers"] else ""), "dim"))


def _left_out(items: Iterable[Json]) -> Iterator[Line]:
    for number, item in enumerate(items):
        yield _row(
            "left out" if not number else "", f"{item['node']} would require {item['required']}: {item['reason']}"
        )
        cycle = " → ".join([item["node"], *item["path"]])
        why = f"it would close the cycle {cycle}" if item["path"] else "too many nodes require each other"
        yield _row("", (f"  {why}", "dim"))


def _variable(item: Json) -> Iterator[Line]:
    yield _heading(item, item["hosts"])
    if item["play"]:
        yield _row("play", item["play"])
    if item["inside"]:
        yield _row("inside", item["inside"])
    yield _row("value", (item["value"], "bold"))
    for number, level in enumerate(reversed(item["levels"])):
        title = "set by" if not number else "overrides"
        yield _row(title, f"{level['level']}: {level['value']}", right=level["position"])


def _host(item: Json) -> Iterator[Line]:
    yield _heading(item, ())
    if item["position"]:
        yield _row("declared", item["position"])
    yield _row("address", item["address"])
    yield _row("groups", ", ".join(item["groups"]) or ("none", "dim"))
    yield _row("plays", ", ".join(item["plays"]))
    yield _row("resources", plural(item["resources"], "resource"))
    yield _row("variables", ", ".join(item["variables"]) or ("none", "dim"))
    yield from _left_out(item["left_out"])


def ledger_lines(report: Report) -> Iterator[Line]:
    """Yield what the ledgers of hosts know about a node or a host: who manages it, and its last runs."""
    for name in sorted(report["hosts"]):
        host = report["hosts"][name]
        yield BLANK
        yield host_lines.heading(EqualHosts([name], host))
        yield from host_lines.trouble(host)
        for item in host.get("managed") or ():
            yield _row("managed by", str(item["playbook"]), right=str(item["position"]))
            yield _row("state", str(item["state"]) + (", protected" if item["protect"] else ""))
            yield _row("since", f"{host_lines.moment(item['since'])}, run {item['first_run']}")
            yield _row("last run", str(item["last_run"]))
        for playbook, number in (host.get("owners") or {}).items():
            yield _row("manages", plural(number, "resource"), right=str(playbook))
        if not any(map(host.get, ("managed", "owners", "history", "error"))):
            yield make(("  The ledger knows nothing about it.", "dim"))
        for past in host.get("history") or ():
            yield from run_lines(past)
