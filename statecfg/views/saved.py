"""A saved plan, for people: its changes and its origin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from statecfg.remote.graph.names import Mode
from statecfg.run.report_model import Report, make_report
from statecfg.run.saved.model import Choices, Made, SavedPlan
from statecfg.views.lines import Line, make
from statecfg.views.plan import BRIEF, Detail, plan_lines
from statecfg.views.tally import names, plural


def report(plan: SavedPlan) -> Report:
    """Return the report in a saved plan."""
    hosts = {name: host["report"] for name, host in plan["hosts"].items()}
    return make_report(plan["run"], Mode.PLAN, plan["playbook"], hosts)


class PlanDocument(Report):
    """A report with the origin of its plan."""

    saved: dict[str, Any]


def document(plan: SavedPlan, statecfg: str) -> PlanDocument:
    """Return a saved plan for programs: its report, and its origin in `saved`.

    :param statecfg: the version of statecfg that made the plan
    """
    origin = {
        "statecfg": statecfg,
        "project": plan["project"],
        "made": plan["made"],
        "choices": plan["choices"],
        "inputs": plan["inputs"],
        "sha256": plan["sha256"],
        "secrets": sorted(plan["secrets"]),
        "facts": {name: host["facts"] for name, host in plan["hosts"].items() if host.get("facts")},
        "store": plan["store"] or None,
    }
    return {**report(plan), "saved": origin}


def lines(plan: SavedPlan, statecfg: str, detail: Detail = BRIEF) -> Iterator[Line]:
    """Yield the lines that show a saved plan; with `detail.verbose`, also every input."""
    for label, text in origin(plan, statecfg):
        yield make((f"{label}:", "dim"), f"{'':{max(1, 11 - len(label))}}{text}", hang=12)
    if detail.verbose:
        for entry in plan["inputs"]:
            yield make(
                ("  · ", "dim"), f"{entry['kind']} {entry['path']}", (f"  {entry['sha256'][:12]}", "dim"), hang=4
            )
        for name in plan["secrets"]:
            yield make(("  · ", "dim"), f"secret {name}", hang=4)
        for name, host in sorted(plan["hosts"].items()):
            for path, value in sorted((host.get("facts") or {}).items()):
                yield make(("  · ", "dim"), f"fact of {name}: {path} = {value}", hang=4)
    yield from plan_lines(report(plan), detail, saved=True)


def origin(plan: SavedPlan, statecfg: str) -> Iterator[tuple[str, str]]:
    """Yield label and text for the origin of a plan: its playbook, author, time, commit, hosts, options and inputs."""
    provenance = plan["made"]
    yield "Plan of", f"{plan['playbook']} in project {plan['project']}"
    yield "Made", f"{_moment(provenance['at'])} by {provenance['by']} with statecfg {statecfg}"
    yield "Commit", _commit(provenance)
    yield "Hosts", names(sorted(plan["hosts"]), 20) or "none"
    chosen = list(_chosen(plan["choices"]))
    if chosen:
        yield "Chosen", ", ".join(chosen)
    counted: dict[str, int] = {}
    for entry in plan["inputs"]:
        counted[entry["kind"]] = counted.get(entry["kind"], 0) + 1
    if plan["secrets"]:
        counted["secret"] = len(plan["secrets"])
    facts = sum(len(host.get("facts") or {}) for host in plan["hosts"].values())
    if facts:
        counted["fact of a host"] = facts
    yield "Inputs", ", ".join(f"{number} × {name}" if number > 1 else name for name, number in counted.items())
    if plan["store"]:
        yield "Store", f"{plan['store'][:8]}: it has services, so the same store is needed to apply it"


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        return text


def _commit(provenance: Made) -> str:
    commit, modified = provenance.get("commit"), provenance.get("modified")
    if not isinstance(commit, str):
        return "unknown: this is not a git repository, or git cannot read it"
    if not isinstance(modified, list):
        return f"{commit} (git could not say whether anything was modified)"
    if modified:
        return f"{commit}, dirty: {plural(len(modified), 'input')} modified since: {names([*map(str, modified)])}"
    return f"{commit}, clean"


def _chosen(choices: Choices) -> Iterator[str]:
    texts = {
        "-i": choices.get("inventory"),
        "-l": choices.get("limit"),
        "-u": choices.get("user"),
        "--become-user": choices.get("become_user"),
    }
    yield from (f"{flag} {text}" for flag, text in texts.items() if text)
    yield from (f"-t {tag}" for tag in choices["tags"])
    yield from (f"-e {text}" for text in choices["extra_vars"])
    if choices["prune"]:
        yield "--prune"
    if choices.get("become"):
        yield "-b"
