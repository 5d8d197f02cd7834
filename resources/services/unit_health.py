"""Started units: check whether they still run some seconds later, and report what systemd knows about failed ones."""

from __future__ import annotations

import time

from statecfg.remote.machine.world import World
from statecfg.resources.services import unit_managers, unit_states

UP = unit_states.UP
FORGOTTEN = 5.0  # seconds before the end of an action: lines of a unit of which systemd has forgotten the start
LINES = 10  # lines of the journal that are shown
LONGEST = 1000  # characters; a longer line is not shown
_ASKED = (
    "Id,ActiveState,SubState,Result,ExecMainPID,ExecMainStatus,NRestarts,ActiveEnterTimestampMonotonic,"
    "InactiveExitTimestampMonotonic,TriggeredBy,ConditionResult,ConditionTimestampMonotonic,Type,RemainAfterExit"
)
_NEEDS = "Requires,Requisite,BindsTo"


def unit_properties(world: World, unit: str) -> dict[str, str]:
    """Return the present properties of a unit, as systemd shows them."""
    return dict(line.partition("=")[::2] for line in shown(world, unit, _ASKED).splitlines())


def shown(world: World, name: str, properties: str) -> str:
    """Return properties of a unit as systemd shows them.

    :param properties: their names with commas
    """
    user, unit = unit_managers.split(name)
    argv, options = unit_managers.call(world, user, ["show", "--no-pager", f"--property={properties}", "--", unit])
    return world.probe(argv, **options).text


def account(world: World, unit: str, since: float) -> str:
    """Return the result of a failed unit and its last lines in the journal.

    :param since: when the action began, from `time.monotonic()`; older lines are about something else
    """
    properties = unit_properties(world, unit)
    name, result = properties.get("Id") or unit_managers.split(unit)[1], properties.get("Result", "unknown")
    text = f"{unit_managers.called(unit)} is {properties.get('ActiveState', 'unknown')}, result: {result}"
    if result == "exit-code" and properties.get("ExecMainStatus", "0") != "0":
        text += f" {properties['ExecMainStatus']}"
    # The journal may be behind: without this, the last words of a process that has just ended can be missing.
    world.probe(["journalctl", "--sync"])
    began = time.time() - time.monotonic() + since
    # Together with --since, --lines means the first lines, unless the order is reversed.
    argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--since=@{began:.6f}", "--reverse"]
    user = unit_managers.split(unit)[0]
    uid = f"_UID={unit_managers.fields(world, user).get('uid')}"
    # Not --user-unit: it means the units of the user who asks, and that user may not be allowed to read the journal.
    # The process counts, too: if it ends at once, the journal does not know its unit.
    process = f"_PID={properties.get('ExecMainPID')}"
    of_user = [f"_SYSTEMD_USER_UNIT={name}", uid, "+", f"USER_UNIT={name}", uid, "+", process, uid]
    which = of_user if user else ["--unit", name]
    lines = world.probe([*argv, f"--lines={LINES}", *which]).text.splitlines()
    for line in reversed(lines[:LINES]):
        # A line is shown in full or omitted, because half of a secret could not be masked.
        text += "\n  %s" % (line if len(line) <= LONGEST else "(a line of %d characters)" % len(line))
    return text


def failed_needs(world: World, unit: str) -> list[str]:
    """Return the failed units without which a unit can't start."""
    user, lines = unit_managers.split(unit)[0], shown(world, unit, _NEEDS).splitlines()
    names = [unit_managers.joined(user, name) for line in lines for name in line.partition("=")[2].split()]
    return [name for name in names if unit_properties(world, name).get("ActiveState") == "failed"]


def died(world: World, unit: str, since: float, wanted: bool) -> str:
    """Return why a started unit no longer runs, "" if it runs.

    :param since: the time of its start, from `time.monotonic()`
    :param wanted: whether the node wants it to run. If not, a successful end is fine
    """
    properties = unit_properties(world, unit)
    up = properties.get("ActiveState") in UP and properties.get("SubState") != "auto-restart"
    came_up = int(properties.get("ActiveEnterTimestampMonotonic") or 0) / 1e6
    again = int(properties.get("NRestarts") or 0) > 0 and came_up > since
    on_demand = any(name.endswith(".socket") for name in properties.get("TriggeredBy", "").split())
    if (up and not again) or (not up and properties.get("Result") == "success" and (on_demand or not wanted)):
        return ""
    how = "it started and ended, and systemd started it again" if up else "it started and then ended"
    begun = int(properties.get("InactiveExitTimestampMonotonic") or 0) / 1e6
    tested = int(properties.get("ConditionTimestampMonotonic") or 0) / 1e6
    if not up and properties.get("ConditionResult") == "no" and tested > begun:
        how, begun = "it did not start, because a condition of the unit does not hold", tested
    elif not up and not begun:  # systemd unloads units that don't run, and forgets their times
        how, begun = "it does not run after its start", since - FORGOTTEN
    if not up and (properties.get("Type"), properties.get("RemainAfterExit")) == ("oneshot", "no"):
        how += " (Type=oneshot without RemainAfterExit=true)"
    # If it began long ago, its action was a reload; if later, systemd has started it again.
    return f"{how}: {account(world, unit, begun if since - unit_states.TIMEOUT < begun <= since else since)}"
