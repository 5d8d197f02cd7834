"""A plan, for people: symbols, differences, reasons, and a last line to grep for."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from statecfg.remote.graph.names import PLAN_FAILS, HostStatus, Outcome
from statecfg.run.report_model import Action, HostData, Node, Report
from statecfg.views import hosts as host_lines
from statecfg.views import left_hosts, units
from statecfg.views.changes import change_lines
from statecfg.views.lines import BLANK, Line, Span, Style, make
from statecfg.views.tally import (
    SYMBOLS,
    Effect,
    EqualHosts,
    Fate,
    cause,
    count,
    fates,
    fold,
    names,
    nodes,
    plural,
    sentence,
    unresolved,
)

NOT_STARTED = f"not started: {PLAN_FAILS}"
STYLES: dict[Effect, Style] = {
    "add": "add",
    "change": "change",
    "destroy": "remove",
    "replace": "change",
    "forget": "remove",
    Outcome.UNCHANGED: "dim",
    "excluded": "skip",
    Outcome.UNKNOWN: "unknown",
    Outcome.FAILED: "remove",
    Outcome.SKIPPED: "skip",
}


def removal_word(node: Node, what: Effect) -> str:
    """Return in a word what happens to a removal: "restored", "removed" or "forgotten"; "" if not known yet."""
    if what == "destroy":
        # The resource had a state before statecfg managed it, and gets this state back.
        changes = node.get("changes") or []
        own = [change for change in changes if change["object"] == node["name"].partition(":")[2]] or changes
        back = own and all(change.get("after") is not None for change in own)
        return "restored" if back else "removed"
    return "forgotten" if what == "forget" else ""


class Detail(NamedTuple):
    """How much to show.

    :param verbose: whether to show unchanged nodes and actions, too
    :param full: whether to show diffs and lists of any length
    :param done: whether to show what an apply changed, for users who did not see the plan
    """

    verbose: bool = False
    full: bool = False
    done: bool = False


BRIEF = Detail()


def plan_lines(report: Report, detail: Detail = BRIEF, dry: bool = True, saved: bool = False) -> Iterator[Line]:
    """Yield the lines that show a plan.

    :param report: the masked report in format 1
    :param detail: how much to show
    :param dry: whether this is a dry run; then the first line and a line at the end state it
    :param saved: whether this is a saved plan, which is only displayed
    """
    dry = dry and not saved
    if dry:
        yield make(("Dry run: nothing is changed on any host.", "skip"))
    for group in fold(report):
        yield BLANK
        yield from _group(group, detail)
    yield from left_hosts.lines(report)
    yield BLANK
    yield from _ending(report, dry)


def _ending(report: Report, dry: bool) -> Iterator[Line]:
    hosts = report["hosts"]
    counts = count(hosts.values())
    if counts[Outcome.UNKNOWN]:
        more = plural(counts[Outcome.UNKNOWN], "more resource")
        yield make((f"{more} can only be determined during the apply (known after …).", "unknown"))
    left = sum(1 for host in hosts.values() for _ in nodes(host, "left"))
    if left:
        them = "stays: apply --prune removes it" if left == 1 else "stay: apply --prune removes them"
        yield make((f"{plural(left, 'resource')} left the definition and {them}.", "skip"))
    failing = [name for name in sorted(hosts) if host_lines.not_started(hosts[name])]
    if failing:
        why = "its plan fails" if len(failing) == 1 else "their plans fail"
        yield make((f"Nothing will be changed on {names(failing)} because {why}.", "remove"))
    broken = [name for name in sorted(hosts) if hosts[name]["status"] != HostStatus.OK and name not in failing]
    if broken:
        yield make((f"No usable plan for {len(broken)} of {plural(len(hosts), 'host')}: {names(broken)}", "remove"))
    if dry:
        yield make(("Dry run: nothing was changed.", "skip"))
    failed: Span = (f", {counts[Outcome.FAILED]} failed", "remove") if counts[Outcome.FAILED] else ("", "")
    due = sum(map(units.due, hosts.values()))
    hooks = f", {plural(due, 'unit hook')} to run" if due else ""
    yield make(("Plan:", "bold"), f" {sentence(counts)}{hooks}", failed, ".")


def _group(group: EqualHosts, detail: Detail) -> Iterator[Line]:
    yield host_lines.heading(group)
    yield from host_lines.or_nothing(group.host, _host(group.host, detail))


def _host(host: HostData, detail: Detail) -> Iterator[Line]:
    """Yield a host's plan, below its heading."""
    yield from host_lines.trouble(host)
    stopped = host.get("shutdown") or []
    # A single shutdown-first action appears below its node. Several are listed here to show their order.
    for action in stopped if len(stopped) > 1 else ():
        about = f"{action['node']}  " if action.get("node") else ""
        yield make(("  ! ", "change"), "first: ", about, action_text(action), hang=11)
    listed = list(fates(host))
    waiting = [] if detail.verbose else [fate.node["name"] for fate in listed if _not_started(fate, host)]
    for fate in listed:
        if fate.node["name"] in waiting:
            continue
        if fate.effect != Outcome.UNCHANGED or detail.verbose or unresolved(fate.node) or fate.node.get("leaves"):
            yield from node_lines(fate, detail)
    if waiting:
        yield make((f"  · not started: {plural(len(waiting), 'resource')}: ", "skip"), names(waiting), hang=4)
    for node in nodes(host, "left"):
        yield from left_lines(node, detail)
    yield from host_lines.owed(host)
    yield from hook_lines(host)
    yield from units.due_lines(host, bool(detail.verbose))
    counts = Counter(fate.effect for fate in listed)
    if listed and counts[Outcome.UNCHANGED] + counts["excluded"] == len(listed) and not units.due(host):
        yield make(("  ✓ ", "add"), f"Nothing to do: {plural(counts[Outcome.UNCHANGED], 'resource')} as defined.")
    elif counts[Outcome.UNCHANGED] and not detail.verbose:
        yield make((f"    {counts['unchanged']:,} unchanged", "dim"))


def _not_started(fate: Fate, host: HostData) -> bool:
    """Return whether a node would change something and is skipped because the plan of its host fails."""
    skipped = fate.effect == Outcome.SKIPPED and host_lines.not_started(host)
    return skipped and fate.node.get("reason") == NOT_STARTED


def node_lines(fate: Fate, detail: Detail) -> Iterator[Line]:
    """Yield the lines for one node of a plan: what happens to it, why, and every difference."""
    node, what, removed = fate
    symbol = f"{SYMBOLS[what]:>3} "
    after: Span = (f"  known after {cause(node)}", "unknown") if node.get("known_after") else ("", "")
    state: Span = (f"  {unresolved(node)}", "unknown") if unresolved(node) else ("", "")
    done: Span = (f"  {removal_word(node, what) or 'to be removed'}", STYLES[what]) if removed else (steps(node), "dim")
    title: tuple[Span, ...] = (symbol, STYLES[what]), (node["name"], STYLES[what]), done, after, state
    yield make(*title, hang=6, right=node.get("position") or "")
    text = declared_text(node)
    if text:
        yield make(("      = ", "dim"), text, hang=8)
    yield from reasons(node)
    yield from leftovers(node)
    if node.get("shutdown_first"):
        yield make(("      ! ", "change"), "stopped first: ", action_text(node["shutdown_first"]), hang=8)
    yield from change_lines(node, detail.full)
    if detail.verbose or (what == "change" and not node.get("changes")):
        for action in node.get("actions") or []:
            yield make(("      · ", "dim"), action_text(action), hang=8)


def declared_text(node: Node) -> str:
    """Return the declared attributes of a node whose actions are not known yet, "" for other nodes."""
    from statecfg.views.changes import value_text

    declared = dict(node.get("declared") or {})
    if isinstance(declared.get("mode"), int):
        declared["mode"] = f"{declared['mode']:04o}"
    own = node["name"].partition(":")[2]
    pairs = [f"{name}: {value_text(value, 60)}" for name, value in declared.items() if value != own]
    text = ", ".join(pairs)
    return text if len(text) <= 400 else f"{text[:399]}…"


def left_lines(node: Node, detail: Detail) -> Iterator[Line]:
    """Yield the lines for an orphan that this run does not remove."""
    text = "  left the definition, stays (apply --prune removes it)"
    yield make(("  - ", "skip"), (node["name"], "skip"), (text, "dim"), hang=6, right=node.get("position") or "")
    if detail.verbose:
        yield from reasons(node)
        yield from leftovers(node)
        yield from change_lines(node, detail.full)


def leftovers(node: Node) -> Iterator[Line]:
    """Yield what remains after a removal, and why."""
    for text in node.get("leaves") or []:
        yield make(("      ↳ ", "dim"), text, hang=8)


def hook_lines(host: HostData) -> Iterator[Line]:
    """Yield the hooks that an apply would call: each event of each hook, and its resources."""
    hooks = hooks_by_event(host)
    if hooks:
        yield make(("  hooks that would fire:", "dim"), hang=4)
    for (hook, event, location), about in hooks.items():
        many = about[0] if len(about) == 1 else plural(len(about), "resource")
        yield make(("    ⚑ ", "dim"), (hook, "bold"), f"  {event}  {many}", (f"  {location}", "dim"), hang=6)


def hooks_by_event(host: HostData) -> dict[tuple[str, str, str], list[str]]:
    """Return (hook, event, where it runs) → the names of the resources for which it would be called."""
    events: dict[tuple[str, str, str], list[str]] = {}
    for call in host.get("hooks") or []:
        key = str(call["hook"]), str(call["event"]), where(call) + _answer(call)
        whole = "the host" if str(call["event"]).startswith("node-") else "the playbook"
        events.setdefault(key, []).append(str(call["name"] or whole))
    return events


def _answer(call: Mapping[str, Any]) -> str:
    """Return the answer of an HTTP hook that a plan uses, in words, with a comma before them; "" for another hook."""
    if call.get("answer") == "last":
        return f"; this plan uses its last answer, of {host_lines.moment(call.get('at'))}"
    texts = {
        "dry-run": "; this plan uses its answer to a dry run",
        "unknown": "; no answer of it is known yet, so this plan does not know what it adds or keeps",
        "failed": "; its last answer does not fit this definition",
    }
    return texts.get(str(call.get("answer")), "")


def where(hook: Mapping[str, Any]) -> str:
    """Return where a hook runs, in words."""
    return "on the host" if hook.get("where") == "host" else "here"


def steps(node: Node) -> str:
    """Return the names of a node's actions in order, as text to append to its name; "" if there are none."""
    ops = [str(action["op"]) for action in node.get("actions") or ()]
    return f"  {', '.join(ops)}" if ops else ""


def reasons(node: Node, shown: Sequence[str] = ()) -> Iterator[Line]:
    """Yield why a node changes, fails or is excluded, as far as the report contains it.

    :param shown: reasons that are shown with an action and need no repetition
    """
    triggered = node.get("triggered_by") or []
    if triggered:
        what = "is removed" if node.get("stays") else "changes"
        yield make(("      ↳ ", "dim"), f"because {names(list(triggered))} {what}", hang=8)
    if node.get("excluded"):
        yield make(("      ↳ ", "dim"), node["excluded"], hang=8)
    if node.get("reason") and not any(text in str(node["reason"]) for text in shown):
        style: Style = "remove" if node["outcome"] == Outcome.FAILED else ""
        for number, text in enumerate(str(node["reason"]).splitlines() or [""]):
            yield make(("      ↳ " if number == 0 else "        ", "dim"), (text, style), hang=8)


def action_text(action: Action) -> str:
    """Return an action as `op(key: value, …)`, with long values cut."""
    from statecfg.views.changes import value_text

    arguments = dict(action.get("args") or {})
    if isinstance(arguments.get("argv"), list):
        # Show a command as in a shell. Its effects and its time limit are only in the JSON report.
        argv = [str(word) for word in arguments["argv"]]
        text = argv[2] if argv[:2] == ["/bin/sh", "-c"] and len(argv) == 3 else shlex.join(argv)
        return f"{action['op']}: {text}" if len(text) <= 400 else f"{action['op']}: {text[:399]}…"
    if isinstance(arguments.get("mode"), int):
        arguments["mode"] = f"{arguments['mode']:04o}"
    args = ", ".join(f"{key}: {value_text(value, 60)}" for key, value in arguments.items())
    return f"{action['op']}({args})" if len(args) <= 400 else f"{action['op']}({args[:399]}…)"
