"""Hooks and their log, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.names import HookStatus
from statecfg.views import safe
from statecfg.views.changes import value_text
from statecfg.views.host_records import pairs, when
from statecfg.views.lines import BLANK, Line, Style, make
from statecfg.views.tally import plural

if TYPE_CHECKING:
    from statecfg.hooks.exec.types import HookType
    from statecfg.hooks.registration.model import Registration
    from statecfg.problems import Problem
    from statecfg.store.hooks.records import HookObject, LoggedEvent, Queued
    from statecfg.store.objects import Owed

_STYLES: Mapping[str, Style] = {"info": "", "warn": "change", "error": "remove"}
_SHOWN = 20  # maximum number of lines of a message


def hook_data(hook: HookObject) -> Mapping[str, Any]:
    """Return a hook as JSON data."""
    fields = {key: value for key, value in asdict(hook).items() if key != "folder"}
    if not hook.spec.declared:
        del fields["spec"]["declared"]
    return fields


def called_lines(fired: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the result of an owed call of an HTTP hook: hook, event, host, playbook, status and error."""
    style: Style = "" if fired["status"] == HookStatus.OK else "remove"
    about = f"  {fired['event']} of {fired['playbook']} on {fired['host']}: {fired['status']}"
    yield make((str(fired["hook"]), style or "bold"), about, hang=4)
    for text in safe.block(str(fired["error"])) if fired.get("error") else ():
        yield make("    ", text, hang=4)


def declared_data(hook: Registration) -> Mapping[str, Any]:
    """Return a hook that a project declares and that is not in the store, as JSON data."""
    address = hook.http.uri if hook.http is not None else ""
    fields = {
        "name": hook.name,
        "protocol": hook.protocol,
        "type": hook.exec.type,
        "uri": address,
        "events": hook.events,
    }
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items() if value}


def one_declared(hook: Registration, owed: Sequence[Owed]) -> Iterator[Line]:
    """Yield the details of an HTTP hook that a project declares, and its owed calls."""
    yield make(("── ", "dim"), (hook.name, "bold"), right=hook.protocol, rule=True)
    address = (hook.http.uri or "by reference") if hook.http is not None else ""
    select = hook.select
    yield from pairs(
        {
            "address": address,
            "events": ", ".join(hook.events) or "none",
            "hosts": select.hosts or "all",
            "types": ", ".join(select.types) or "all",
            "order": str(hook.order),
            "on failure": hook.on_failure,
            "declared": str(hook.position),
        }
    )
    yield from pending_lines((), owed)


def owed_data(owed: Owed) -> Mapping[str, Any]:
    """Return an owed call of an HTTP hook as JSON data."""
    return asdict(owed)


def pending_data(item: Queued) -> Mapping[str, Any]:
    """Return a queued invocation as JSON data."""
    node = item.hook_input.get("node")
    host = None if node is None else node["name"]
    return {"hook": item.hook.name, "event": item.event, "host": host, "playbook": item.playbook}


def pending_lines(queued: Sequence[Queued], owed: Sequence[Owed]) -> Iterator[Line]:
    """Yield a line for each queued invocation, and for each owed call of an HTTP hook."""
    for item in map(pending_data, queued):
        about = "  ".join(filter(None, (item["event"], item["host"], item["playbook"])))
        yield make(("queued  ", "change"), (item["hook"], "bold"), f"  {about}", hang=8)
    for call in owed:
        tried = f"tried {plural(call.attempts, 'time')}, next from {when(call.next)}"
        about = f"  {call.phase}  {call.host}  {call.playbook}  {tried}: {call.error}"
        yield make(("owed    ", "change"), (call.hook, "bold"), about, hang=8)


def hook_table(hooks: Sequence[HookObject], declared: Sequence[Registration], waiting: int) -> Iterator[Line]:
    """Yield a line for each hook in the store and in the project, and the number of hooks and queued invocations.

    :param hooks: the hooks in the store
    :param declared: the hooks that only the project declares
    :param waiting: number of queued invocations
    """
    heads = ("HOOK", "TYPE", "CONFIGURATION")
    rows = [(hook.name, hook.type, value_text(hook.configuration)) for hook in hooks]
    for registration in declared:
        about = (
            (registration.http.uri or "by reference")
            if registration.http is not None
            else value_text(dict(registration.exec.configuration))
        )
        rows.append((registration.name, registration.exec.type or registration.protocol, about))
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(2)]
    if rows:
        yield make((f"{heads[0]:<{widths[0]}}  {heads[1]:<{widths[1]}}  {heads[2]}", "dim"))
    for name, type_name, configuration in rows:
        yield make(
            (f"{name:<{widths[0]}}", "bold"), f"  {type_name:<{widths[1]}}  {configuration}", hang=sum(widths) + 4
        )
    queued = f", {plural(waiting, 'invocation')} queued: `statecfg hook retry` runs them" if waiting else ""
    yield make((f"{plural(len(rows), 'hook')}{queued}", "dim"))


def one_hook(hook: HookObject, handled: Sequence[str]) -> Iterator[Line]:
    """Yield the details of a hook.

    :param handled: the events for which its type has programs
    """
    spec = hook.spec
    yield make(("── ", "dim"), (hook.name, "bold"), right=hook.type, rule=True)
    details = {
        "events": ", ".join(spec.events or handled) or "none",
        "hosts": spec.hosts or "all",
        "types": ", ".join(spec.types) or "all",
        "names": ", ".join(spec.names) or "all",
        "tags": ", ".join(spec.tags) or "all",
        "where": spec.where,
        "order": str(spec.order),
        "deadline": spec.deadline,
        "on failure": spec.on_failure,
        "full control": ", ".join(hook.access) or "no users",
        "created": when(hook.created),
    }
    yield from pairs(details)
    if hook.configuration:
        yield BLANK
        yield make(("  configuration", "dim"))
        yield from pairs({key: value_text(value) for key, value in hook.configuration.items()})


def type_data(hook_type: HookType) -> Mapping[str, Any]:
    """Return a hook type as JSON data."""
    return {
        "name": hook_type.name,
        "folder": str(hook_type.folder),
        "events": hook_type.events(),
        "configuration": hook_type.schema,
    }


def type_lines(hook_type: HookType) -> Iterator[Line]:
    """Yield the events and the configuration of a hook type."""
    yield make(
        (hook_type.name, "bold"), f"  {', '.join(hook_type.events()) or 'no events'}", right=str(hook_type.folder)
    )
    for key, described in hook_type.schema.items():
        default = f" (default: {value_text(described['default'])})" if "default" in described else ""
        required = " (required)" if described.get("required") and not default else ""
        yield make("    ", (key, "skip"), f"{default}{required}  {described.get('description') or ''}", hang=8)


def refused_lines(name: str, problems: Sequence[Problem]) -> Iterator[Line]:
    """Yield why a hook type can't be used."""
    yield make((name, "bold"), ("  can't be used", "remove"))
    for problem in problems:
        yield make("    ", (f"{problem.summary}: {problem.detail}", "remove"), hang=8)
        if problem.help:
            yield make(("    help: ", "skip"), problem.help, hang=10)


def event_data(event: LoggedEvent) -> Mapping[str, Any]:
    """Return an entry of the log as JSON data, in the form of Razor's API, with the detail that Razor leaves out."""
    fields = {
        "timestamp": datetime.fromtimestamp(event.at, UTC).isoformat(timespec="seconds"),
        "hook": event.hook,
        "node": event.host,
        "policy": event.playbook,
        "severity": event.severity,
        **event.entry,
    }
    return {**fields, "detail": event.detail} if event.detail else fields


def event_lines(event: LoggedEvent) -> Iterator[Line]:
    """Yield an entry of the log."""
    entry = dict(event.entry)
    name = event.hook or entry.pop("hook", None) or "(deleted)"
    parts = [str(entry.pop("event", "")), str(name), event.host or "", event.playbook or ""]
    about = "  ".join(filter(None, parts))
    status = entry.pop("exit_status", None)
    ended = f"  exit {status}" if status else ""
    yield make(
        (when(event.at), "dim"), (f"  {event.severity:<5}", _STYLES[event.severity]), f"  {about}{ended}", hang=8
    )
    fields = {**entry, "detail": event.detail} if event.detail else entry
    for key in sorted(fields, key=_order):
        value = fields[key]
        lines = safe.block(value) if isinstance(value, str) else [value_text(value, 1000)]
        for number, text in enumerate(lines[:_SHOWN]):
            yield make(("    ", "dim"), (f"{key if not number else '':<9}", "skip"), text, hang=13)
        if len(lines) > _SHOWN:
            yield make((f"            … {len(lines) - _SHOWN} more lines", "dim"))


def _order(key: str) -> int:
    keys = ("error", "detail", "actions", "msg", "input", "output")
    return keys.index(key) if key in keys else len(keys)
