"""Started units: check whether they still run some seconds later, and report what systemd knows about failed ones."""

from __future__ import annotations

import time

from statecfg.remote.machine.world import World

UP = ("active", "reloading", "activating", "refreshing")
LINES = 10  # lines of the journal that are shown
LONGEST_START = 300.0  # seconds for an action
LONGEST = 1000  # characters; a longer line is not shown
_ASKED = (
    "Id,ActiveState,SubState,Result,ExecMainStatus,NRestarts,ActiveEnterTimestampMonotonic,"
    "InactiveExitTimestampMonotonic,TriggeredBy"
)
_NEEDS = "Requires,Requisite,BindsTo"


def unit_properties(world: World, unit: str) -> dict[str, str]:
    """Return the present properties of a unit, as systemd shows them."""
    output = world.probe(["systemctl", "show", "--no-pager", "--property=" + _ASKED, "--", unit]).text
    return dict(line.partition("=")[::2] for line in output.splitlines())


def account(world: World, unit: str, since: float) -> str:
    """Return the result of a failed unit and its last lines in the journal.

    :param since: when the action began, from `time.monotonic()`; older lines are about something else
    """
    properties = unit_properties(world, unit)
    name, result = properties.get("Id") or unit, properties.get("Result", "unknown")
    text = f"{unit} is {properties.get('ActiveState', 'unknown')}, result: {result}"
    if result == "exit-code" and properties.get("ExecMainStatus", "0") != "0":
        text += f" {properties['ExecMainStatus']}"
    # The journal may be behind: without this, the last words of a process that has just ended can be missing.
    world.probe(["journalctl", "--sync"])
    began = time.time() - time.monotonic() + since
    # Together with --since, --lines means the first lines, unless the order is reversed.
    argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--since=@{began:.6f}", "--reverse"]
    lines = world.probe([*argv, f"--lines={LINES}", "--unit", name]).text.splitlines()
    for line in reversed(lines[:LINES]):
        # A line is shown in full or omitted, because half of a secret could not be masked.
        text += "\n  %s" % (line if len(line) <= LONGEST else "(a line of %d characters)" % len(line))
    return text


def failed_needs(world: World, unit: str) -> list[str]:
    """Return the failed units without which a unit can't start."""
    shown = world.probe(["systemctl", "show", "--no-pager", f"--property={_NEEDS}", "--", unit]).text
    names = [name for line in shown.splitlines() for name in line.partition("=")[2].split()]
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
    # If it began long ago, its action was a reload; if later, systemd has started it again.
    return f"{how}: {account(world, unit, begun if since - LONGEST_START < begun <= since else since)}"
