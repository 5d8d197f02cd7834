"""Conditions on the host that `wait_for` and `assertion` share: a path, a port, an HTTP response, a unit, a command."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode, required
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.programs import commands, http_requests, pauses
from statecfg.resources.services import systemd, unit_managers
from statecfg.resources.shared import records

TARGETS = ("path", "port", "url", "unit", "command")
# Runs on the host. It prints why the port does not accept connections.
_CONNECT = """\
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
except OSError as problem:
    sys.exit(str(problem))
"""


def unmet(attrs: records.Attrs, world: World) -> str:
    """Return why the condition of a node does not hold, "" if it holds.

    :raises Unknown: if a required node changes the host first
    """
    if attrs.get("path") is not None:
        return _path(attrs, world)
    if attrs.get("unit") is not None:
        unit, user = systemd.unit_name(attrs["unit"]), attrs.get("user") or ""
        if systemd.scripts(world) and not user:
            state = systemd.scripts(world).active(world, unit)
        else:
            argv, options = unit_managers.call(world, user, ["is-active", "--", unit])
            state = world.probe(argv, **options).text.strip() or "unknown"
        return "" if state == "active" else f"{unit_managers.called(unit_managers.joined(user, unit))} is {state}"
    if attrs.get("command") is not None:
        options = {"user": attrs["user"]} if attrs.get("user") is not None else {}
        probe = world.probe(commands.words(attrs["command"]), **options)
        ended = f"the command ends with exit status {probe.status}"
        return "" if probe.status == 0 else ended + _shown(probe.errors or probe.output)
    if attrs.get("url") is not None:
        probe = http_requests.ask(http_requests.request({**attrs, "timeout": None}), world)
        return f"{attrs['url']}: {http_requests.reason(probe)}" if probe.status else ""
    address, port = attrs.get("address") or "127.0.0.1", attrs["port"]
    probe = world.probe([sys.executable, "-I", "-S", "-c", _CONNECT, address, str(port), str(http_requests.SECONDS)])
    return f"port {port} of {address}{_shown(probe.errors) or ' does not answer'}" if probe.status else ""


def _shown(output: bytes) -> str:
    """Return the last line of output for a reason. A long one is left out: half of a secret could not be masked."""
    line = output.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return ": " + line if 0 < len(line) <= http_requests.LONGEST else ""


def _path(attrs: records.Attrs, world: World) -> str:
    path, contains = attrs["path"], attrs.get("contains")
    stat = world.stat(path)
    if attrs.get("gone"):
        return f"{path} exists" if stat is not None else ""
    if stat is None:
        return f"{path} does not exist"
    if contains is None:
        return ""
    try:
        text = world.read(path).decode("utf-8", "replace")
    except OSError as problem:
        return f"{path}: {problem.strerror}"
    return "" if re.search(contains, text, re.M) else f"{path} does not contain the text"


@op
def wait(machine: Machine, condition: Mapping[str, object], timeout: float, interval: float) -> Result:
    """Wait until a condition holds.

    :param condition: the attributes that describe it
    :param timeout: seconds
    :param interval: seconds between two attempts
    """

    def perform() -> Result:
        assert isinstance(machine, RealMachine)
        end = time.monotonic() + timeout
        reason = unmet(condition, machine)
        while reason:
            if time.monotonic() + interval > end:
                return error(f"after {timeout:g} seconds: {reason}")
            if not pauses.waited(interval):
                return error(f"{reason}; the run was stopped")
            reason = unmet(condition, machine)
        return ok()

    # A plan runs nothing: it knows that the condition holds after this action, or the action fails.
    return machine.run(["wait"], {}, first=perform)


def described(attrs: records.Attrs) -> records.Fields:
    """Return the attributes that describe the condition of a node."""
    names = (*TARGETS, "address", "ca", "contains", "gone", "headers", "status", "user", "verify_certificate")
    return {name: attrs[name] for name in names if attrs.get(name) not in (None, False) or name == "verify_certificate"}


def never(attrs: records.Attrs) -> bool:
    """Return False: nothing on the host says whether it waited."""
    return False


def nothing() -> list[Action]:
    """Return no actions for the undo: these nodes change nothing."""
    return []


def waiting(
    node: HostNode, nodes: Mapping[str, HostNode], actions: list[Mapping[str, object]], world: World
) -> list[Action]:
    """Return the wait if the condition does not hold, or if a required node changes something in this run.

    What holds now may end when a required node acts, such as a service that restarts. So the plan has the wait then.
    """
    attrs = node.attrs
    if world.acted:
        return []
    before = required(node, nodes)
    changing = any(layer.get(name) for layer in actions for name in before)
    if not changing and not unmet(attrs, world):
        return []
    return [wait(described(attrs), attrs.get("timeout", 60.0), attrs.get("interval", 1.0))]
