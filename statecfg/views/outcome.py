"""The outcome of an apply, for people: failures with causes, skipped nodes, and a last line to grep for."""

from __future__ import annotations

from collections.abc import Iterator

from statecfg.remote.graph.names import ActionStatus, HookStatus, HostStatus, Mode, Outcome
from statecfg.run.report_model import Action, HostData, Report
from statecfg.views import hosts as host_lines
from statecfg.views import left_hosts, safe, shutdown, units
from statecfg.views.changes import change_lines
from statecfg.views.lines import BLANK, Line, Span, Style, make
from statecfg.views.plan import BRIEF, Detail, action_text, left_lines, leftovers, reasons, removal_word, where
from statecfg.views.tally import Effect, Fate, count, done_word, fates, fold, names, nodes, plural, touched, unresolved

LOG_LINES = 12
_SIGNS: dict[str, tuple[str, Style]] = {
    Outcome.CHANGED: ("✓", "change"),
    Outcome.UNCHANGED: (" ", "dim"),
    Outcome.FAILED: ("✗", "remove"),
    Outcome.SKIPPED: ("·", "skip"),
    Outcome.UNKNOWN: ("?", "unknown"),
}


# Status of a hook → sign, style, and its meaning for the run.
HOOK_ENDS: dict[str, tuple[str, Style, str]] = {
    HookStatus.OK: ("✓", "dim", "done"),
    HookStatus.FAILED: ("✗", "remove", "failed"),
    HookStatus.CONTINUED: ("!", "change", "failed; the run continued"),
    HookStatus.OWED: ("!", "change", "failed; a later run retries it"),
}


def outcome_lines(report: Report, detail: Detail = BRIEF, seconds: float | None = None) -> Iterator[Line]:
    """Yield the lines that show the outcome of an apply.

    :param report: the masked report in format 1
    :param detail: how much to show
    :param seconds: how long the run took, None to leave it out
    """
    for group in fold(report):
        yield BLANK
        yield host_lines.heading(group)
        if report.get("mode") in Mode.REMOVING and group.host["status"] == HostStatus.OK and not any(fates(group.host)):
            yield from _host(group.host, detail)
            yield make(("  ✓ ", "add"), "Nothing to remove.")
        else:
            yield from host_lines.or_nothing(group.host, _host(group.host, detail))
    yield from left_hosts.lines(report)
    yield BLANK
    yield from _next(report)
    yield _summary(report, seconds)


def _next(report: Report) -> Iterator[Line]:
    """Yield what the user should do next, if something is left to do."""
    hosts = report["hosts"].values()
    verb = report["mode"] if report.get("mode") in Mode.REMOVING else Mode.APPLY
    if any(host["status"] == HostStatus.UNKNOWN for host in hosts):
        text = f"Run {verb} again. Each host has recorded its progress and checks interrupted steps again."
    elif any(fate.effect == Outcome.FAILED for host in hosts if touched(host) for fate in fates(host)):
        text = f"Fix the cause and run {verb} again. It checks every resource again."
    elif any(host_lines.stopped(host) for host in hosts):
        text = f"Run {verb} again to continue. It checks every resource again."
    else:
        return
    yield make(("Next: ", "skip"), text, hang=6)


def _summary(report: Report, seconds: float | None) -> Line:
    hosts = report["hosts"].values()
    counts = count((host for host in hosts if touched(host)), done=True)
    added, destroyed = counts["add"] + counts["replace"], counts["destroy"] + counts["replace"]
    parts = [
        f"{added} added",
        f"{counts['change']} changed",
        f"{destroyed} destroyed",
        f"{counts['unchanged']:,} unchanged",
    ]
    removing = report.get("mode") in Mode.REMOVING
    parts = parts[1 if counts["change"] else 2 : 3] if removing else parts
    parts += [f"{counts['forget']} forgotten"] if counts["forget"] else []
    hooks = sum(map(units.ran, hosts))
    ran = f", {plural(hooks, 'unit hook')} run" if hooks else ""
    bad: list[tuple[str, Style]] = []
    troubles: tuple[tuple[Effect, Style], ...] = (
        (Outcome.FAILED, "remove"),
        (Outcome.SKIPPED, "skip"),
        (Outcome.UNKNOWN, "unknown"),
    )
    for what, style in troubles:
        if counts[what]:
            bad.append((f", {counts[what]} {what}", style))
    lost = sum(not touched(host) for host in hosts)
    where: Span = (f" on {plural(len(hosts), 'host')}", "")
    if lost:
        where = f" on {len(hosts) - lost:,} of {plural(len(hosts), 'host')}", "remove"
    took = f" in {duration(seconds)}" if seconds is not None else ""
    return make(("Removed:" if removing else "Applied:", "bold"), " " + ", ".join(parts), *bad, ran, where, took, ".")


def duration(seconds: float) -> str:
    """Return a duration in words, such as `0.4 s`, `12 s` or `3 min 5 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _host(host: HostData, detail: Detail) -> Iterator[Line]:
    """Yield the outcome of a host, below its heading."""
    yield from host_lines.trouble(host)
    if host.get("refusal"):
        yield from _refused(host)
    listed = list(fates(host)) if touched(host) else []
    yield from shutdown.lines(host)
    skipped = [fate.node for fate in listed if fate.effect == Outcome.SKIPPED]
    for fate in listed:
        if fate.effect not in (Outcome.UNCHANGED, Outcome.SKIPPED) or detail.verbose or unresolved(fate.node):
            yield from _node(fate, detail)
    for node in nodes(host, "left") if touched(host) else ():
        yield from left_lines(node, BRIEF)
    if skipped and not detail.verbose:
        lead = f"  · not attempted: {plural(len(skipped), 'resource')}: "
        yield make((lead, "skip"), names([str(node["name"]) for node in skipped]), hang=4)
    if any(fate.effect == Outcome.FAILED and not fate.is_removal for fate in listed):
        yield _progress(host)
    if host_lines.login(host):
        yield make(("  · ", "dim"), host_lines.login(host), hang=4)
    yield from _fired(host, detail)
    for failure in host.get("host_hooks") or ():
        lead = f"hook {failure['hook']} failed at {failure['event']}: "
        first = next(iter(str(failure["error"]).splitlines()), "")
        yield make(("  ! ", "change"), lead, first, (f"  (statecfg hook log {failure['hook']})", "dim"), hang=4)
    yield from units.done_lines(host, detail.verbose)
    yield from host_lines.owed(host, {fate.node["name"] for fate in listed if fate.node["outcome"] in Outcome.SOUND})
    unchanged, excluded = (sum(fate.effect == what for fate in listed) for what in (Outcome.UNCHANGED, "excluded"))
    if listed and unchanged + excluded == len(listed):
        yield make(("  ✓ ", "add"), f"Nothing to do: {plural(unchanged, 'resource')} as defined.")
    elif unchanged and not detail.verbose:
        yield make((f"    {unchanged:,} unchanged", "dim"))


def _progress(host: HostData) -> Line:
    done = 0
    for layer in host["layers"]:
        if any(node["outcome"] not in Outcome.SOUND for node in layer):
            break
        done += 1
    return make((f"    layers done: {done} of {len(host['layers'])}", "dim"))


def _refused(host: HostData) -> Iterator[Line]:
    """Yield the removals that a host refused."""
    to_remove = [str(node["name"]) for node in nodes(host, "removals")]
    yield make(("  · would be removed: ", "skip"), names(to_remove, 20), hang=4)


def _fired(host: HostData, detail: Detail) -> Iterator[Line]:
    """Yield the hooks that failed, and what that means; with `detail.verbose`, also the other hooks."""
    for fired in host.get("fired") or []:
        sign, style, meaning = HOOK_ENDS.get(str(fired["status"]), ("?", "unknown", str(fired["status"])))
        if fired["status"] == HookStatus.OK and not detail.verbose:
            continue
        about = f"  {fired['event']} of {fired['name'] or 'the playbook'}, {where(fired)}: {meaning}"
        yield make((f"  {sign} ", style), ("hook ", "dim"), (str(fired["hook"]), style), about, hang=6)
        for text in safe.block(str(fired["error"])) if fired.get("error") else ():
            yield make("      ", text, hang=6)


def _node(fate: Fate, detail: Detail) -> Iterator[Line]:
    node = fate.node
    sign, style = _SIGNS.get(node["outcome"], ("?", "unknown")) if fate.effect != "excluded" else ("·", "skip")
    effect = removal_word(node, fate.effect) if fate.is_removal else done_word(node, fate.effect)
    right = node.get("position") or "" if node["outcome"] != Outcome.CHANGED else ""
    unsure = unresolved(node) if node["outcome"] != Outcome.CHANGED else ""
    state: Span = (f"  {unsure}", "unknown") if unsure else ("", "")
    done: Span = (f"  {effect}" if effect else "", "dim")
    yield make((f"  {sign} ", style), (node["name"], style), done, state, hang=6, right=right)
    yield from leftovers(node)
    causes = [str(action["reason"]) for action in node.get("actions") or [] if action.get("reason")]
    yield from reasons(node, shown=causes)
    for action in node.get("actions") or []:
        if action.get("status") in (ActionStatus.ERROR, ActionStatus.NOT_ATTEMPTED, ActionStatus.UNKNOWN):
            yield from _action(action)
        elif detail.verbose:
            yield make(("      · ", "dim"), action_text(action), hang=8)
            yield from _log(action)
    if detail.full or detail.done or node["outcome"] != Outcome.CHANGED:
        yield from change_lines(node, detail.full)


def _action(action: Action) -> Iterator[Line]:
    status = action["status"]
    if status == ActionStatus.NOT_ATTEMPTED:
        yield make(("      · not attempted: ", "skip"), action_text(action), hang=8)
        return
    style: Style = "remove" if status == ActionStatus.ERROR else "unknown"
    word = "failed: " if status == ActionStatus.ERROR else "result unknown: "
    yield make(("      ✗ ", style), (word, style), action_text(action), hang=8)
    for text in safe.block(str(action["reason"])) if action.get("reason") else ():
        yield make("        ", (text, style), hang=8)
    yield from _log(action)


def _log(action: Action) -> Iterator[Line]:
    lines = safe.block(str(action["log"])) if action.get("log") else []
    if len(lines) > LOG_LINES:
        yield make((f"        │ … {plural(len(lines) - LOG_LINES, 'earlier line')}", "dim"), hang=10)
    for text in lines[-LOG_LINES:]:
        yield make(("        │ ", "dim"), text, hang=10)
