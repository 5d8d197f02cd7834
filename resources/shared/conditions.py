"""Conditions on the host that `wait_for` and `assertion` share: a path, a port, an HTTP response, a unit, a command."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, Node, error, ok, required
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine import process
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import commands, records, systemd

KINDS = ("path", "port", "url", "unit", "command")
LONGEST = 300  # characters of a line of output that a reason shows
ATTEMPT = 10.0  # seconds for one connection
BODY = 1 << 20  # bytes of a response that are searched

# Runs on the host. It prints why the port does not accept connections, or why the response is not the wanted one.
_ASK = """\
import json, re, socket, sys
wanted = json.loads(sys.argv[1])
try:
    if "port" in wanted:
        socket.create_connection((wanted["address"], wanted["port"]), wanted["seconds"]).close()
        sys.exit(0)
    import ssl, urllib.error, urllib.request
    context = ssl.create_default_context()
    if not wanted["verify"]:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments): return None
    opener = urllib.request.build_opener(Stay, urllib.request.HTTPSHandler(context=context))
    try:
        response = opener.open(wanted["url"], timeout=wanted["seconds"])
    except urllib.error.HTTPError as problem:
        response = problem
    if response.getcode() not in wanted["status"]:
        sys.exit("the response has status %d" % response.getcode())
    body = response.read(wanted["body"]).decode("utf-8", "replace")
    if wanted["contains"] is not None and not re.search(wanted["contains"], body, re.M):
        sys.exit("the response does not contain the text")
except OSError as problem:
    sys.exit(str(getattr(problem, "reason", problem)))
"""


def unmet(attrs: records.Attrs, world: World) -> str:
    """Return why the condition of a node does not hold, "" if it holds.

    :raises Unknown: if a required node changes the host first
    """
    if attrs.get("path") is not None:
        return _path(attrs, world)
    if attrs.get("unit") is not None:
        unit = systemd.unit_name(attrs["unit"])
        state = world.probe(["systemctl", "is-active", "--", unit]).text.strip() or "unknown"
        return "" if state == "active" else "%s is %s" % (unit, state)
    if attrs.get("command") is not None:
        probe = world.probe(commands.words(attrs["command"]))
        ended = "the command ends with exit status %d" % probe.status
        return "" if probe.status == 0 else ended + _shown(probe.errors or probe.output)
    wanted: records.Fields = {"seconds": ATTEMPT, "contains": attrs.get("contains"), "body": BODY}
    if attrs.get("port") is not None:
        what = "port %d of %s" % (attrs["port"], attrs.get("address") or "127.0.0.1")
        wanted.update(port=attrs["port"], address=attrs.get("address") or "127.0.0.1")
    else:
        what = attrs["url"]
        verify = attrs.get("verify_certificate", True)
        wanted.update(url=what, status=list(attrs.get("status") or (200,)), verify=verify)
    probe = world.probe([sys.executable, "-I", "-S", "-c", _ASK, json.dumps(wanted)])
    return "" if probe.status == 0 else what + (_shown(probe.errors) or " does not answer")


def _shown(output: bytes) -> str:
    """Return the last line of output for a reason. A long one is left out: half of a secret could not be masked."""
    line = output.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return ": " + line if 0 < len(line) <= LONGEST else ""


def _path(attrs: records.Attrs, world: World) -> str:
    path, contains = attrs["path"], attrs.get("contains")
    stat = world.stat(path)
    if attrs.get("gone"):
        return "%s exists" % path if stat is not None else ""
    if stat is None:
        return "%s does not exist" % path
    if contains is None:
        return ""
    try:
        text = world.read(path).decode("utf-8", "replace")
    except OSError as problem:
        return "%s: %s" % (path, problem.strerror)
    return "" if re.search(contains, text, re.M) else "%s does not contain the text" % path


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
                return error("after %g seconds: %s" % (timeout, reason))
            if not process.waited(interval):
                return error("%s; the run was stopped" % reason)
            reason = unmet(condition, machine)
        return ok()

    # A plan runs nothing: it knows that the condition holds after this action, or the action fails.
    return machine.run(["wait"], {}, first=perform)


def described(attrs: records.Attrs) -> records.Fields:
    """Return the attributes that describe the condition of a node."""
    names = (*KINDS, "address", "contains", "gone", "status", "verify_certificate")
    return {name: attrs[name] for name in names if attrs.get(name) not in (None, False) or name == "verify_certificate"}


def nothing() -> list[Action]:
    """Return no actions for the undo: these nodes change nothing."""
    return []


def waiting(node: Node, nodes: Mapping[str, Node], actions: list[Mapping[str, object]], world: World) -> list[Action]:
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
