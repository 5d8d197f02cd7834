"""A report as Markdown for a pull request: equal hosts grouped, differences collapsible, stable for the same plan."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from statecfg.remote.graph.names import HookStatus, HostStatus, Mode, Outcome
from statecfg.run.report_model import HostError, Node, Report
from statecfg.views import left_hosts, safe, shutdown, units
from statecfg.views.changes import by_object, diff_of, names_itself, says_nothing, value_text
from statecfg.views.hosts import login, status_text
from statecfg.views.plan import action_text, declared_text, hooks_by_event, removal_word, where
from statecfg.views.tally import (
    SYMBOLS,
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

# GitHub allows 65,535 characters in a comment, and other tools may add text to it.
LIMIT = 60_000
# The maximum number of characters in a diff, so that one diff leaves room for others.
_DIFF = 12_000


def text(report: Report, limit: int = LIMIT) -> str:
    """Return the report as GitHub-flavored Markdown of at most `limit` characters.

    The text contains no times, run ids or other data that differs between equal plans. If the limit cuts it, the text
    says how many resources were left out.
    """
    head = "\n".join(_head(report)) + "\n"
    parts: list[str] = [head]
    used, left, hosts_left = len(head), 0, 0
    for group in fold(report):
        changed = [fate for fate in fates(group.host) if fate.effect != Outcome.UNCHANGED or unresolved(fate.node)]
        opening, closing = _opening(group), "\n</details>\n"
        blocks = [*map(_node, changed), *map(_left, nodes(group.host, "left"))]
        if used + len(opening) + len(closing) + _NOTE > limit:
            left, hosts_left = left + len(blocks), hosts_left + len(group.names)
            continue
        parts.append(opening)
        used += len(opening) + len(closing)
        for block in blocks:
            if used + len(block) + _NOTE > limit:
                left += 1
                continue
            parts.append(block)
            used += len(block)
        parts.append(closing)
    if left or hosts_left:
        parts.append(_cut(left, hosts_left, limit))
    return "".join(parts)


_NOTE = 200


def _cut(left: int, hosts: int, limit: int) -> str:
    whole = f" and {plural(hosts, 'whole host')}" if hosts else ""
    what = f"{plural(left, 'resource')} that would be listed{whole}"
    return f"\n> **Cut at {limit:,} characters**: {what} left out. `statecfg plan` shows all.\n"


def _head(report: Report) -> Iterator[str]:
    hosts = report["hosts"]
    counts = count(hosts.values())
    applied = report.get("mode") in Mode.ACTING
    title = (
        f"Plan: {sentence(counts)}"
        if not applied
        else "Applied: "
        + sentence(counts)
        .replace(" to add", " added")
        .replace(" to change", " changed")
        .replace(" to destroy", " destroyed")
        .replace(" to forget", " forgotten")
    )
    yield f"### {title}"
    yield ""
    dry_run = "" if applied else " · a dry run: nothing was changed"
    yield (
        f"{code(report['playbook'])} · {plural(len(hosts), 'host')}{dry_run}"
        if report.get("playbook")
        else f"{plural(len(hosts), 'host')}{dry_run}"
    )
    if counts[Outcome.UNKNOWN]:
        yield ""
        yield f"{plural(counts['unknown'], 'resource')} can only be determined during the apply (known after …)."
    bad = [name for name in sorted(hosts) if hosts[name]["status"] != HostStatus.OK]
    if bad:
        yield ""
        yield f"**{plural(len(bad), 'host')} not ok**: {code(names(bad, 20))}"
    left = report.get("left_hosts") or ()
    if left:
        yield ""
        yield f"{plural(len(left), 'host')} left the playbook; its resources there stay:"
        yield ""
    for left_host in left:
        remove = f"; to remove it: {code(left_host['command'])}" if left_host["command"] else "; not in the inventory"
        yield f"- {code(left_host['host'])}: {code(left_hosts.what(left_host))}{remove}"


def _opening(group: EqualHosts) -> str:
    host = group.host
    counts = count([host])
    meaning = status_text(host)
    status = f" — <b>{html.escape(meaning)}</b>" if meaning else ""
    shared = f" ({len(group.names)} hosts)" if len(group.names) > 1 else ""
    title = f"{html_code(names(group.names, 12))}{shared} — {sentence(counts)}{status}"
    lines = [f"\n<details><summary>{title}</summary>\n\n"]
    error = host.get("error")
    if error:
        lines.append(f"{fenced(_error(error))}\n")
    lines.extend(f"> warning: {code(str(text))}\n" for text in host.get("warnings") or [])
    for node, action, how in shutdown.done(host):
        whose = f"{code(node)} " if node else ""
        lines.append(f"- stopped first: {whose}{code(action_text(action))}{f' — {how}' if how else ''}\n")
    lines.extend(f"- **down**: {code(name)}: {why}\n" for name, why in shutdown.down(host))
    lines += [f"- {code(login(host))}\n"] if login(host) else []
    for debt in host.get("owed") or []:
        lines.append(
            f"- owed by an earlier run: {code(str(debt['node']))} because {code(str(debt['cause']))} changed\n"
        )
    for (hook, event, location), about in hooks_by_event(host).items():
        many = code(about[0]) if len(about) == 1 else plural(len(about), "resource")
        lines.append(f"- hook {code(hook)} would fire: {code(event)} of {many}, {location}\n")
    for unit in host.get("units") or []:
        due = ", ".join(units.hook_text(hook) for hook in units.due_of(unit))
        state = f" would run {code(due)}" if due else f" {code(str(unit['state']))}" if unit.get("state") else ""
        wrong = f": {code(str(unit['error']))}" if unit.get("error") else ""
        change = f" {units.change_text(unit)}" if "change" in unit else ""
        lines.append(f"- unit {code(str(unit['unit']))}{change}{state}{wrong}\n")
    for fired in host.get("fired") or []:
        if fired["status"] != HookStatus.OK:
            why = f": {code(str(fired['error']))}" if fired.get("error") else ""
            what = f"{code(str(fired['event']))} of {code(str(fired['name'] or 'the playbook'))}, {where(fired)}"
            lines.append(f"- hook {code(str(fired['hook']))} ({what}): {code(str(fired['status']))}{why}\n")
    for failure in host.get("host_hooks") or []:
        named = f"{code(str(failure['hook']))} failed at {code(str(failure['event']))}"
        lines.append(f"- hook {named}: {code(str(failure['error']))}\n")
    if counts[Outcome.UNCHANGED]:
        lines.append(f"{counts['unchanged']:,} unchanged.\n\n")
    return "".join(lines)


def _error(error: HostError) -> str:
    return "\n".join(str(error[key]) for key in ("summary", "detail", "hint") if error.get(key))


def _left(node: Node) -> str:
    return f"- `-` **{code(node['name'])}** left the definition, stays (apply --prune removes it){_position(node)}\n"


def _position(node: Node) -> str:
    return f" · {code(node['position'])}" if node.get("position") else ""


def _node(fate: Fate) -> str:
    node, what, is_removal = fate
    known_after = f" — known after {code(cause(node))}" if node.get("known_after") else ""
    ops = ", ".join(str(action["op"]) for action in node.get("actions") or ())
    did = f" {removal_word(node, what) or 'to be removed'}" if is_removal else f" {code(ops)}" if ops else ""
    state = f" — {code(unresolved(node))}" if unresolved(node) else ""
    out = [f"- `{SYMBOLS[what].strip() or '='}` **{code(node['name'])}**{did}{known_after}{state}{_position(node)}\n"]
    text = declared_text(node)
    out += [f"  {code(text)}\n"] if text else []
    if node.get("triggered_by"):
        does = "is removed" if node.get("stays") else "changes"
        out.append(f"  because {code(names(list(node['triggered_by'])))} {does}\n")
    out += [f"  {code(str(node[key]))}\n" for key in ("excluded", "reason") if node.get(key)]
    out.extend(f"  {code(str(text))}\n" for text in node.get("leaves") or ())
    if node.get("shutdown_first"):
        out.append(f"  - stopped first: {code(action_text(node['shutdown_first']))}\n")
    changes = node.get("changes") or []
    if not changes:
        out.extend(f"  - {code(action_text(action))}\n" for action in node.get("actions") or [])
    objects = by_object(changes)
    for name, of_object in objects.items():
        if len(objects) > 1 or not names_itself(node, name):
            out.append(f"  - {code(name)}\n")
        out.extend(_change(change) for change in of_object if len(of_object) == 1 or not says_nothing(change))
    return "".join(out)


def _change(change: Any) -> str:
    field, diff = str(change.get("field") or "content"), diff_of(change)
    if diff is None:
        before, after = change.get("before"), change.get("after")
        sides = [code(value_text(value)) for value in (before, after) if value is not None]
        removed = " removed" if after is None else ""
        return f"  - {code(field)} {' → '.join(sides)}{removed}\n"
    body, left = "\n".join(diff).removesuffix("\n"), 0
    if len(body) > _DIFF:
        left = body.count("\n", _DIFF) + 1
        body = body[:_DIFF]
    note = f"\n  {plural(left, 'more line')} left out\n" if left else ""
    counts = Counter(text[:1] for text in diff)
    title = f"{html_code(field)} (+{counts['+']} −{counts['-']} lines)"
    return f"\n  <details><summary>{title}</summary>\n\n{indented(fenced(body, 'diff'))}{note}\n  </details>\n\n"


def indented(text: str) -> str:
    """Return `text` indented by two columns, so that it belongs to its list item."""
    return "".join(f"  {one}\n" for one in text.splitlines())


# Text from hosts, playbooks and inventories appears only as code. There, Markdown, HTML and the additions of sites such
# as GitHub (@mentions, #123, bare addresses) have no effect.


def html_code(text: str) -> str:
    """Return one line of text as an HTML code element, for use inside HTML."""
    return f"<code>{html.escape(safe.line(text))}</code>"


def code(text: str) -> str:
    """Return one line of text as an inline code span that backticks in the text can't close."""
    content = safe.line(text)
    ticks = "`" * (_longest_run(content) + 1)
    # Markdown strips a space from both sides of a code span if both have one, and doesn't allow empty code spans.
    pad = " " if content[:1] in ("`", " ") or content[-1:] in ("`", " ") or not content else ""
    return f"{ticks}{pad}{content}{pad}{ticks}"


def fenced(text: str, language: str = "") -> str:
    """Return text as a fenced block that backticks in the text can't close."""
    content = "\n".join(safe.block(text))
    fence = "`" * max(3, _longest_run(content) + 1)
    return f"{fence}{language}\n{content}\n{fence}\n"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
