"""Services of hosts that do not run systemd, but OpenRC or the init scripts of System V.

Only hosts whose definition has services get this module (see `PARTS` in `statecfg/run/host_modules.py`). `systemd` and
`unit_steps` call it in place of their own functions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import unit_health, unit_states
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class ScriptMemory(TypedDict, total=False):
        """What the memory of a `service` needs on hosts without systemd. It is empty if there was no such unit."""

        active: str | None
        enabled: str | None
        level: str


Steps = Callable[[Mapping[str, Any], unit_states.ServiceState, bool], "list[Action]"]
OPENRC, SYSV = "OpenRC", "System V"
SCRIPTS = "/etc/init.d"
RUNLEVELS = tuple(f"/etc/rc{level}.d" for level in "S2345")
ALL_RUNLEVELS = (*RUNLEVELS, *(f"/etc/rc{level}.d" for level in "016"))
SUFFIX = ".service"
NO_LINKS = "none"  # in place of a runlevel: before its node, the service had no links
NO_SERVICES = ("README", "functions", "functions.sh", "rc", "rcS", "skeleton")
_RELOADS = re.compile(r"^\s*(extra_(started_)?commands|opts)=(\"[^\"]*|'[^']*|\S*)\breload\b", re.M)
# The exit statuses of `rc-service NAME status`; others mean that it is stopped. Source: openrc-run of OpenRC.
STATES = {0: "active", 8: "activating", 32: "failed"}


def system(world: World) -> str:
    """Return which program starts the host's services."""
    return OPENRC if world.apparent(unit_states.OPENRC) is not None else SYSV


def units(host: World) -> dict[str, records.Fields]:
    """Load the services, with the names that systemd units have: name → `enabled`, with OpenRC also `level`.

    Whether a service runs is asked only for those that a node manages (see `active`), because each script is a program.
    """
    levels = _levels(host)
    loaded: dict[str, records.Fields] = {}
    for name in host.listdir(SCRIPTS):
        stat = host.stat(posixpath.join(SCRIPTS, name))
        program = stat is not None and (stat.file_type == "symlink" or (stat.file_type == "file" and stat.mode & 0o111))
        if not program or name in NO_SERVICES or name.startswith("."):
            continue
        more = {"level": levels[name]} if levels.get(name) else {}
        loaded[name + SUFFIX] = {"enabled": "enabled" if name in levels else "disabled", **more}
    return loaded


def _levels(host: World) -> dict[str, str]:
    """Return the services that start at boot: name → the runlevel of OpenRC, "" with System V."""
    if system(host) == OPENRC:
        rows = [row.split("|") for row in host.probe(["rc-update", "show"]).text.splitlines()]
        return {row[0].strip(): row[1].split()[0] for row in rows if len(row) == 2 and row[1].split()}
    return dict.fromkeys(linked(host), "")


def linked(host: World) -> set[str]:
    """Return the names of the scripts that links of System V start at boot."""
    links = [name for level in RUNLEVELS if host.stat(level) is not None for name in host.listdir(level)]
    return {name[3:] for name in links if name.startswith("S")}


def has_links(world: World, unit: str) -> bool:
    """Return whether a service has links of System V, with which it starts at boot, or stops at shutdown."""
    levels = (level for level in ALL_RUNLEVELS if world.stat(level) is not None)
    return any(link[3:] == unit[: -len(SUFFIX)] for level in levels for link in world.listdir(level))


def find(world: World, name: str) -> unit_states.ServiceState | None:
    """Return the state of a service, or None if it does not exist.

    :raises CheckError: if its script can't tell whether it runs
    :raises Unknown: if a required node may still create it, or change its state
    """
    entry = world.entry("units", name)
    if entry is not None:
        now = entry["active"] if "active" in entry else active(world, name)
        return unit_states.ServiceState(name, now, entry.get("enabled"))
    if name.endswith(SUFFIX) and world.apparent(posixpath.join(SCRIPTS, name[: -len(SUFFIX)])) is not None:
        return unit_states.ServiceState(name, "inactive", "disabled")
    return None


def active(world: World, unit: str) -> str:
    """Return whether a service runs, in the words of systemd; "unknown" for another unit.

    :raises CheckError: if its script can't tell
    :raises Unknown: if a required node may change it first
    """
    if not unit.endswith(SUFFIX):
        return "unknown"
    name = unit[: -len(SUFFIX)]
    path = posixpath.join(SCRIPTS, name)
    argv = ["rc-service" if system(world) == OPENRC else "service", name, "status"]
    probe = world.probe(argv, inputs=("units", [path]))
    if system(world) == OPENRC:
        return STATES.get(probe.status, "inactive")
    if b"usage:" in (probe.output + probe.errors).lower():
        raise CheckError(f"{path} does not know the action status, so statecfg can't see whether it runs")
    return "active" if probe.status == 0 else "inactive"


def died(world: World, unit: str, since: float, wanted: bool) -> str:
    """Return why a started service no longer runs, "" if it runs (see `unit_health.died`)."""
    runs = not wanted or active(world, unit) in unit_health.UP
    return "" if runs else "it started and then ended: see the log files of the service"


def change(machine: Machine, verb: str, unit: str, fields: records.Fields) -> Result:
    """Do what a command of systemctl does.

    :param fields: the fields of the unit that differ after it, for the plan
    """
    if verb not in ("enable", "disable", "start", "stop", "restart", "reload-or-restart"):
        return error(f"masked needs systemd, and this host runs {system(machine)}")
    name = unit[: -len(SUFFIX)]
    codes: tuple[int, ...] = (0,)
    if system(machine) == OPENRC:
        if verb == "enable":
            argv = ["rc-update", "add", name, "default"]
        elif verb == "disable":
            # Status 1 means that the service is not in every runlevel.
            argv, codes = ["rc-update", "--all", "delete", name], (0, 1)
        else:
            again = "reload" if _can_reload(machine, name) else "restart"
            argv = ["rc-service", name, again if verb == "reload-or-restart" else verb]
    elif verb in ("enable", "disable"):
        # Without links, the second command does nothing; with links, the first one.
        result = machine.run(["update-rc.d", name, "defaults"], {}, timeout=unit_states.TIMEOUT)
        if result["status"] != "ok":
            return result
        argv = ["update-rc.d", name, verb]
    else:
        argv = ["service", name, "force-reload" if verb == "reload-or-restart" else verb]
    return machine.run(argv, {"units": {unit: fields}}, timeout=unit_states.TIMEOUT, codes=codes)


def _can_reload(world: World, name: str) -> bool:
    """Return whether a script of OpenRC has an action `reload`. Source: openrc-run(8)."""
    try:
        text = world.read(posixpath.join(SCRIPTS, name)).decode("utf-8", "replace")
    except (OSError, Unknown):
        return False
    return _RELOADS.search(text) is not None


@op(name="enable")
def enable_in(machine: Machine, unit: str, level: str) -> Result:
    """Make the service start in a runlevel of OpenRC."""
    argv = ["rc-update", "add", unit[: -len(SUFFIX)], level]
    return machine.run(argv, {"units": {unit: {"enabled": "enabled", "level": level}}}, timeout=unit_states.TIMEOUT)


@op(name="disable")
def drop_links(machine: Machine, unit: str, level: str) -> Result:
    """Remove all links of System V that start and stop the service.

    :param level: for reports
    """
    argv = ["update-rc.d", "-f", unit[: -len(SUFFIX)], "remove"]
    return machine.run(argv, {"units": {unit: {"enabled": "disabled"}}}, timeout=unit_states.TIMEOUT)


def remember(world: World, unit: str) -> ScriptMemory:
    """Return what `unit_steps.remember` can't: the runlevel of OpenRC, or that System V links do not exist."""
    level = (world.entry("units", unit) or {}).get("level")
    if level is None and system(world) == SYSV and not has_links(world, unit):
        level = NO_LINKS
    return {"level": level} if level is not None else {}


def undo(
    attrs: records.Attrs, memory: ScriptMemory, world: World, state: unit_states.ServiceState, steps: Steps
) -> ActionSpec:
    """Restore a service's state, as far as the node sets it.

    :param memory: the state before the node; empty if there was no such service
    :param steps: `unit_steps.steps`
    """
    wanted: dict[str, bool] = {}
    if memory and attrs.get("running") is not None:
        wanted["running"] = memory["active"] in unit_health.UP
    if memory and attrs.get("enabled") is not None:
        wanted["enabled"] = memory["enabled"] == "enabled"
    level: Any = memory.get("level")
    if level == NO_LINKS and wanted.pop("enabled", None) is False:
        dropped = [drop_links(state.name, level)] if has_links(world, state.name) else []
        return ActionSpec([*dropped, *steps(wanted, state, False)])
    actions: list[Action] = steps(wanted, state, False)
    if level is not None:
        actions = [enable_in(state.name, level) if action.op == "enable" else action for action in actions]
    return ActionSpec(actions)
