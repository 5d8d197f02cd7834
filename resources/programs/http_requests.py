"""HTTP requests from the host: send one, and compare its response with the expected one."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, Conflict, HostNode, Stays
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.programs import commands
from statecfg.resources.shared import records

SECONDS = 10.0  # for one request, by default
LONGEST = 300  # characters of a line of output that a reason shows
ANSWERED = 1  # exit status of the program if the response is not the expected one; another status: no response

# A separate process sends the request, because checks must not open connections. It reads the request from standard
# input, where other users can't see its headers. It ends with status 0 if the response is the expected one. It checks
# the URL once more, because it may have contained a secret, of which an error must not show a part.
PROGRAM = """\
import http.client, json, re, signal, ssl, sys, urllib.error, urllib.parse, urllib.request
wanted = json.load(sys.stdin)
def late(*arguments): raise TimeoutError("no complete response after %g seconds" % wanted["seconds"])
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, wanted["seconds"])
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments): return None
def wrong(text, body=b""):
    line = body[:2000].decode("utf-8", "replace").strip()
    print(text + (": " + line if 0 < len(line) <= 200 and len(line.splitlines()) == 1 else ""), file=sys.stderr)
    sys.exit(1)
try:
    parts = urllib.parse.urlsplit(wanted["url"])
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        raise ValueError("the URL must begin with http:// or https://, without a user or a password")
    context = ssl.create_default_context(cafile=wanted.get("ca"))
    if not wanted["verify"]:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    https = urllib.request.HTTPSHandler(context=context)
    opener = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}), https)
    body = wanted.get("body")
    request = urllib.request.Request(wanted["url"], None if body is None else body.encode(), wanted["headers"])
    request.get_method = lambda: wanted["method"]
    try:
        response = opener.open(request, timeout=wanted["seconds"])
    except urllib.error.HTTPError as problem:
        response = problem
    status, body = response.getcode(), response.read(1 << 20)
except http.client.InvalidURL:
    print("the URL is not valid", file=sys.stderr)
    sys.exit(2)
except (OSError, ValueError, http.client.HTTPException) as problem:
    text = str(getattr(problem, "reason", None) or problem or type(problem).__name__)
    print(text.replace("\\n", " "), file=sys.stderr)
    sys.exit(2)
if status not in (wanted["status"] or range(200, 300)):
    wrong("the response has status %d" % status, body)
if wanted.get("contains") is not None and not re.search(wanted["contains"], body.decode("utf-8", "replace"), re.M):
    wrong("the response does not contain the text")
print("the response has status %d" % status)
"""


def command() -> list[str]:
    """Return the program that sends the request on its standard input."""
    return [sys.executable, "-I", "-S", "-c", PROGRAM]


def order(wanted: Mapping[str, object]) -> bytes:
    """Return what the program reads from its standard input."""
    return json.dumps(wanted).encode()


def request(attrs: records.Attrs, own: records.Attrs | None = None) -> records.Fields:
    """Return a request as the program reads it.

    :param attrs: the attributes of the node
    :param own: the values in its `unless` or `undo` that override them; None: the request of the node itself
    """
    written = attrs if own is None else own
    headers = written.get("headers") if written.get("headers") is not None else attrs.get("headers")
    headers, body = dict(headers or {}), written.get("body")
    if written.get("json") is not None:
        body = json.dumps(written["json"])
        headers = {"Content-Type": "application/json", **headers}
    return {
        "url": written["url"],
        "method": written.get("method") or "GET",
        "headers": {"User-Agent": "statecfg", **headers},
        "body": body,
        "status": list(written.get("status") or ()),
        "contains": written.get("contains"),
        "verify": attrs.get("verify_certificate", True),
        "ca": attrs.get("ca"),
        "seconds": attrs.get("timeout") or SECONDS,
    }


def ask(wanted: records.Fields, world: World) -> Probe:
    """Send a request that changes nothing.

    :raises Unknown: if a required node changes the host first
    """
    return world.probe(command(), timeout=3 * wanted["seconds"] + 10, input=order(wanted))


def reason(probe: Probe) -> str:
    """Return the reason that the program printed. A long line is left out: half of a secret could not be masked."""
    line = probe.errors.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return line if 0 < len(line) <= LONGEST else "no response"


def require(attrs: records.Attrs, world: World) -> None:
    """Check that the response to a request that only reads is the expected one.

    :raises Conflict: if it is not, or if no response
    """
    probe = ask(request(attrs), world)
    if probe.status:
        raise Conflict(f"{attrs['url']}: {reason(probe)}")


def done(attrs: records.Attrs, world: World) -> bool:
    """Return whether the guard says that the request is no longer needed.

    :raises CheckError: if the server does not answer, so that the guard can't tell
    """
    guard = request(attrs, attrs["unless"])
    probe = ask(guard, world)
    if probe.status not in (0, ANSWERED):
        text = "unless: %s: %s; require the node that starts the server, or a wait_for"
        raise CheckError(text % (guard["url"], reason(probe)))
    return probe.status == 0


@op
def send(machine: Machine, request: records.Fields, effect: records.Effect) -> Result:
    """Send a request, and fail if the response is not the expected one."""
    result = machine.run(command(), effect, input=order(request), timeout=3 * request["seconds"] + 10)
    lines = (result.get("log") or "").strip().splitlines()
    if result["status"] == "ok" or not lines:
        return result
    return error(f"{request['method']} {request['url']}: {lines[-1]}", result["log"])


def check(node: HostNode, world: World) -> list[Action]:
    """Return the request if its guard or a trigger says that it is needed. Check the response of one that reads.

    :raises CheckError: if the response is not the expected one
    """
    attrs = node.attrs
    if not attrs.get("changes"):
        require(attrs, world)
        return []
    triggered = bool(node.triggers and world.triggered_by) and not world.acted
    if not triggered and (attrs.get("unless") is None or done(attrs, world)):
        return []
    return [send(request(attrs), effect(attrs))]


def effect(attrs: records.Attrs) -> records.Effect:
    """Return what the request changes. Without a declaration, it changes none of these."""
    return commands.effect({"effects": attrs.get("effects") or {}})


def remember(node: HostNode, world: World) -> commands.CommandMemory:
    """Record whether the guard said before that the request was not needed."""
    attrs = node.attrs
    if attrs.get("undo") is None or attrs.get("unless") is None:
        return {"done": None}
    try:
        return {"done": done(attrs, world)}
    except CheckError:  # the check fails too, so the node never acts
        return {"done": None}


def undo(node: HostNode, memory: commands.CommandMemory, world: World) -> ActionSpec:
    """Send the request that reverts, if the guard says that the result exists.

    :raises Stays: if it needs a secret that the playbook no longer contains
    """
    attrs = {**node.attrs, **getattr(node, "secret_attrs", {})}
    name = attrs["name"]
    if not attrs.get("changes"):
        return ActionSpec()
    if attrs.get("undo") is None:
        return ActionSpec(left=[f"the effects of the request {name} stay: it has no undo"])
    if memory["done"]:
        return ActionSpec(left=[f"the result of the request {name} existed before it: it stays"])
    back = request(attrs, attrs["undo"])
    guard = request(attrs, attrs["unless"]) if attrs.get("unless") is not None else None
    if secretive(back) or secretive(guard):
        text = "kept: the playbook no longer contains the secret that the undo of the request %s needs; define the "
        raise Stays((text + "request as it was and destroy the playbook, or undo its effects by hand") % name)
    if world.acted if guard is None else not done(attrs, world):
        return ActionSpec()
    return ActionSpec([send(back, effect(attrs))])
