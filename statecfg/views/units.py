"""Units in plans and outcomes: the hooks that would run, that ran, and that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from statecfg.remote.graph.names import HookStatus
from statecfg.run.report_model import HostData, Unit, UnitHook
from statecfg.views import safe, states
from statecfg.views.lines import Line, Style, make
from statecfg.views.tally import plural, touched

_ENDS: dict[str, tuple[str, Style, str]] = {
    HookStatus.OK: ("✓", "add", ""),
    "missing": ("·", "dim", "the charm has no such hook"),
    HookStatus.FAILED: ("✗", "remove", "failed"),
}


def hook_text(hook: UnitHook) -> str:
    """Return a hook with its remote unit or relation, such as `db-relation-changed (db/0)`."""
    about = hook.get("remote") or hook.get("relation")
    return f"{hook['hook']} ({about})" if about else str(hook["hook"])


def due_of(unit: Unit, verbose: bool = False) -> list[UnitHook]:
    """Return the due hooks of a unit in a plan; with `verbose`, also those that its charm does not have."""
    return [hook for hook in unit.get("due") or () if verbose or not hook.get("missing")]


def due(host: HostData) -> int:
    """Return the number of due hooks of units in a host's plan."""
    return sum(len(due_of(unit)) for unit in host.get("units") or ())


def due_lines(host: HostData, verbose: bool) -> Iterator[Line]:
    """Yield the hooks of units that an apply would run, as far as known before units change their settings."""
    for unit in host.get("units") or ():
        yield from _change_lines(unit, _PLANNED)
        due = due_of(unit, verbose)
        hooks = [hook_text(hook) + (" [not in the charm]" if hook.get("missing") else "") for hook in due]
        if hooks:
            yield make(("  ⚑ ", "change"), (str(unit["unit"]), "bold"), f"  {', '.join(hooks)}", hang=6)
    yield from _at_rest(host, "due", verbose)


_PLANNED = {
    "remove": "removed, with its directory and all data in it",
    "upgrade": "its charm is upgraded: changes of the charm's files on the host are lost",
}
_DONE = {"remove": "removed, with its directory", "upgrade": "its charm was upgraded"}
_SIGNS: dict[str, tuple[str, Style]] = {"remove": ("-", "remove"), "upgrade": ("~", "change")}


def _change_lines(unit: Unit, words: dict[str, str]) -> Iterator[Line]:
    """Yield the changes of a unit besides its hooks."""
    if "change" in unit:
        sign, style = _SIGNS[unit["change"]]
        yield make((f"  {sign} ", style), (str(unit["unit"]), style), (f"  {words[unit['change']]}", "dim"), hang=6)


def change_text(unit: Unit) -> str:
    """Return what happens or happened to a unit besides its hooks, with a sign."""
    return f"`{_SIGNS[unit['change']][0]}` {(_DONE if 'hooks' in unit else _PLANNED)[unit['change']]}"


def _at_rest(host: HostData, part: Literal["due", "hooks"], verbose: bool) -> Iterator[Line]:
    """Yield how many units have no hooks to show in a part of a host's report."""
    if not touched(host):  # the due hooks did not run
        return
    here = [unit for unit in host.get("units") or () if part in unit and not unit.get("error") and "change" not in unit]
    hooks = [unit.get("due", []) if part == "due" else unit.get("hooks", []) for unit in here]
    still = [listed for listed in hooks if not any(verbose or not _not_there(hook) for hook in listed)]
    if still:
        why = "no hook due" if not any(still) else "due hooks that the charm does not have"
        yield make(("  ✓ ", "add"), f"Nothing to do: {plural(len(still), 'unit')} with {why}.")


def _not_there(hook: UnitHook) -> bool:
    """Return whether a unit's charm lacks a hook that is or was due."""
    return bool(hook.get("missing")) or hook.get("status") == "missing"


def ran(host: HostData) -> int:
    """Return how many hooks of units succeeded on a host."""
    hooks = (hook for unit in host.get("units") or () for hook in unit.get("hooks") or ())
    return sum(hook["status"] == HookStatus.OK for hook in hooks)


def done_lines(host: HostData, verbose: bool) -> Iterator[Line]:
    """Yield the results of a host's units. Successful hooks are counted; `verbose` also lists them."""
    for unit in host.get("units") or ():
        hooks = unit.get("hooks") or ()
        failed = bool(unit.get("error"))
        if "hooks" in unit:
            yield from _change_lines(unit, _DONE)
        if not (failed or any(hook["status"] == HookStatus.OK for hook in hooks) or (verbose and hooks)):
            continue
        sign = "✗" if failed else "✓"
        style: Style = "remove" if failed else "add"
        ran = plural(sum(hook["status"] == HookStatus.OK for hook in hooks), "hook")
        note = f"  {states.of_unit(unit.get('state', ''))}  {ran} ran"
        yield make((f"  {sign} ", style), (str(unit["unit"]), style), (note, "dim"), hang=6)
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
