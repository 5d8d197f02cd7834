"""Units in plans and outcomes: which hooks would run, which ran, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.names import HookStatus
from statecfg.views import safe
from statecfg.views.lines import Line, Style, make
from statecfg.views.tally import plural, touched

_ENDS: dict[str, tuple[str, Style, str]] = {
    HookStatus.OK: ("✓", "add", ""),
    "missing": ("·", "dim", "the charm has no such hook"),
    HookStatus.FAILED: ("✗", "remove", "failed"),
}


def hook_text(hook: Mapping[str, Any]) -> str:
    """Return a hook with what it is about: `db-relation-changed (db/0)`."""
    about = hook.get("remote") or hook.get("relation")
    return f"{hook['hook']} ({about})" if about else str(hook["hook"])


def due_of(unit: Mapping[str, Any], verbose: bool = False) -> list[Mapping[str, Any]]:
    """Return the hooks of a unit that a plan says are due; those that its charm does not have only where verbose."""
    return [hook for hook in unit.get("due") or () if verbose or not hook.get("missing")]


def due(host: Mapping[str, Any]) -> int:
    """Return how many hooks of units are due on a host, as its plan says."""
    return sum(len(due_of(unit)) for unit in host.get("units") or ())


def due_lines(host: Mapping[str, Any], verbose: bool) -> Iterator[Line]:
    """Yield the hooks of units that an apply would run, as far as can be known before their settings are."""
    for unit in host.get("units") or ():
        due = due_of(unit, verbose)
        hooks = [hook_text(hook) + (" [not in the charm]" if hook.get("missing") else "") for hook in due]
        if hooks:
            yield make(("  ⚑ ", "change"), (str(unit["unit"]), "bold"), f"  {', '.join(hooks)}", hang=6)
    yield from _at_rest(host, "due", verbose)


def _at_rest(host: Mapping[str, Any], part: str, verbose: bool) -> Iterator[Line]:
    """Yield how many units have no hooks in a part of a host's report, or none to be shown."""
    if not touched(host):  # hooks that are due have had no turn
        return
    here = [unit for unit in host.get("units") or () if part in unit and not unit.get("error")]
    still = [unit for unit in here if not any(verbose or not _not_there(hook) for hook in unit[part])]
    if still:
        why = "no hook due" if not any(unit[part] for unit in still) else "no hook for what is due"
        yield make(("  ✓ ", "add"), f"Nothing to do: {plural(len(still), 'unit')} with {why}.")


def _not_there(hook: Mapping[str, Any]) -> bool:
    """Tell whether a unit's charm does not have a hook that is due or was."""
    return bool(hook.get("missing")) or hook.get("status") == "missing"


def ran(host: Mapping[str, Any]) -> int:
    """Return how many hooks of units ran on a host to a good end."""
    hooks = (hook for unit in host.get("units") or () for hook in unit.get("hooks") or ())
    return sum(hook["status"] == HookStatus.OK for hook in hooks)


def done_lines(host: Mapping[str, Any], verbose: bool) -> Iterator[Line]:
    """Yield what became of a host's units; hooks that went well are counted, and shown where all is to be shown."""
    for unit in host.get("units") or ():
        hooks = unit.get("hooks") or ()
        failed = bool(unit.get("error"))
        if not (failed or any(hook["status"] == HookStatus.OK for hook in hooks) or (verbose and hooks)):
            continue
        sign = "✗" if failed else "✓"
        style: Style = "remove" if failed else "add"
        told = (
            f"  {unit.get('state', '')}  {plural(sum(hook['status'] == HookStatus.OK for hook in hooks), 'hook')} ran"
        )
        yield make((f"  {sign} ", style), (str(unit["unit"]), style), (told, "dim"), hang=6)
        for hook in hooks:
            mark, colour, meaning = _ENDS.get(str(hook["status"]), ("?", "unknown", str(hook["status"])))
            if verbose or hook["status"] == HookStatus.FAILED:
                text = f" {hook_text(hook)}{': ' + meaning if meaning else ''}"
                yield make((f"      {mark}", colour), text, hang=8)
        if failed and not any(
            hook["status"] == HookStatus.FAILED and hook.get("error") == unit["error"] for hook in hooks
        ):
            yield make("      ", (str(unit["error"]), "remove"), hang=6)
        for hook in hooks:
            for text in safe.block(str(hook["error"])) if hook.get("error") else ():
                yield make("        ", (text, "remove"), hang=8)
    yield from _at_rest(host, "hooks", verbose)
