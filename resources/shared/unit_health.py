"""Started units: check whether they still run some seconds later, and report what systemd knows about failed ones."""

from __future__ import annotations

import time

from statecfg.remote.machine.world import World

UP = ("active", "reloading", "activating", "refreshing")
LINES = 10  # lines of the journal that are shown
LONGEST = 1000  # characters; a longer line is not shown
_ASKED = (
    "ActiveState,SubState,Result,ExecMainStatus,NRestarts,ActiveEnterTimestampMonotonic,InactiveExitTimestampMonotonic,"
    "TriggeredBy,InvocationID"
)


def unit_properties(world: World, unit: str) -> dict[str, str]:
    """Return the present properties of a unit, as systemd shows them."""
    output = world.probe(["systemctl", "show", "--no-pager", "--property=" + _ASKED, "--", unit]).text
    return dict(line.partition("=")[::2] for line in output.splitlines())


def account(world: World, unit: str) -> str:
    """Return the result of a failed unit and its last lines in the journal."""
    properties = unit_properties(world, unit)
    text = f"{unit} is {properties.get('ActiveState', 'unknown')}, result: {properties.get('Result', 'unknown')}"
    if properties.get("Result") == "exit-code":
        text += f" {properties.get('ExecMainStatus')}"
    # The unit's own messages since its last start, and systemd's messages about it. If a process ends before the
    # journal has looked at it, its messages have only the name of the unit.
    run, started = properties.get("InvocationID", ""), int(properties.get("InactiveExitTimestampMonotonic") or 0)
    match = ["--unit", unit]
    if run and started:
        match = ["_SYSTEMD_INVOCATION_ID=" + run, "+", "INVOCATION_ID=" + run, "+", "_SYSTEMD_UNIT=" + unit]
        match.append(f"--since=@{int(time.time() - time.monotonic() + started / 1000000.0)}")
    # The journal may be behind: without this, the last words of a process that has just ended can be missing.
    world.probe(["journalctl", "--sync"])
    argv = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--lines={LINES}", *match]
    for line in world.probe(argv).text.splitlines()[-LINES:]:
        # A line is shown in full or omitted, because half of a secret could not be masked.
        text += "\n  %s" % (line if len(line) <= LONGEST else "(a line of %d characters)" % len(line))
    return text


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
    return f"{how}: {account(world, unit)}"
