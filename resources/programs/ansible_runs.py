"""Ansible modules on the host: run one, in check mode or not, and read its result."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Maker
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import process
from statecfg.remote.machine.changes import Changes
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import PROBED, RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.programs import commands
from statecfg.resources.shared import records

OURS = ("changed", "failed", "diff", "invocation", "exception", "ansible_facts", "skipped")  # not part of the log
LONGEST = 64 << 10  # characters of a log
STAYS = "made by the Ansible module %s, which can't undo it: it stays"
MARK = "runs the Ansible module %s; statecfg can't undo it"
UNSEEN = "; it has no complete check mode, so whether it changes something is known after it has run"

# Runs a module in a separate process. It reads a line with the arguments, and the code, from standard input, where
# other users can't see them. The directory is for the code and for the module's own temporary files.
PROGRAM = """\
import json, os, runpy, shutil, signal, sys, tempfile
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
wanted = json.loads(sys.stdin.buffer.readline().decode())
code = sys.stdin.buffer.read()
sys.path[:] = [path for path in sys.path if path]
directory = tempfile.mkdtemp(prefix=".statecfg-")
try:
    path = os.path.join(directory, "module.zip")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(code)
    own = os.path.join(directory, "own")
    os.mkdir(own, 0o700)
    sys.path.insert(0, path)
    from ansible.module_utils import basic
    arguments = dict(wanted["arguments"], _ansible_tmpdir=own)
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    names = {"_module_fqn": wanted["entry"], "_modlib_path": path}
    runpy.run_module(wanted["entry"], names, "__main__", True)
finally:
    shutil.rmtree(directory, ignore_errors=True)
"""


class _OneAtATime(Maker):
    """The maker of the actions: modules may edit the same file, and know nothing of each other."""

    mutex = "ansible"


def command() -> list[str]:
    """Return the program that runs the module on its standard input. It writes no bytecode, as it may be a check."""
    return [sys.executable, "-B", "-c", PROGRAM]


def order(attrs: records.Attrs, check: bool) -> bytes:
    """Return what the program reads from its standard input.

    :param check: whether the module only reports what it would change
    """
    options = {
        "_ansible_check_mode": check,
        "_ansible_diff": True,
        "_ansible_module_name": attrs["module"],
        "_ansible_no_log": True,  # otherwise it writes its arguments to the log of the host
    }
    code = attrs["code"]
    wanted = {"entry": code["entry"], "arguments": {**(attrs.get("arguments") or {}), **options}}
    return json.dumps(wanted).encode() + b"\n" + Blob.of(code["content"]).read()


def answer(name: str, output: bytes, errors: bytes) -> records.Fields:
    """Return the result that a module printed.

    :param name: the name of the module, for messages
    :raises CheckError: if it printed none
    """
    for line in reversed(output.decode("utf-8", "replace").split("\n")):
        if line.lstrip().startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    last = errors.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    raise CheckError(f"the Ansible module {name} printed no result{': ' + last[:300] if last else ''}")


def failure(name: str, result: Mapping[str, object]) -> str:
    """Return why a module failed, "" if it did not."""
    if not result.get("failed"):
        return ""
    message = result.get("msg") or result.get("exception") or "it gives no reason"
    return f"the Ansible module {name} failed: {str(message).strip()}"


def log(result: Mapping[str, object]) -> str:
    """Return what a module reports besides the usual keys, as text."""
    rest = {key: value for key, value in result.items() if key not in OURS and value not in ("", None, [], {})}
    text = json.dumps(rest, indent=1, sort_keys=True, ensure_ascii=False) if rest else ""
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def check(node: HostNode, world: World) -> ActionSpec:
    """Ask the module in check mode. If it has none, its turn must come first.

    :raises CheckError: if the module fails in check mode, or the host's Python is too old for it
    """
    attrs = node.attrs
    _require_python(attrs)
    triggered = bool(node.triggers and world.triggered_by) and not world.acted
    if attrs.get("when_triggered") and not triggered:
        return ActionSpec()
    mark = MARK % attrs["module"]
    if triggered:
        return ActionSpec([action(attrs, {})], left=[mark])
    if world.acted and not (attrs.get("read_back", True) and attrs["code"]["check_mode"]):
        return ActionSpec()
    result = _asked(attrs, world) if attrs["code"]["check_mode"] else {"skipped": True}
    if result.get("skipped"):
        if world.acted:
            return ActionSpec()
        if not world.due:
            return ActionSpec(left=[mark + UNSEEN], known_after=node.provides)
        return ActionSpec([action(attrs, {})], left=[mark])
    return ActionSpec([action(attrs, result)], left=[mark]) if result.get("changed") else ActionSpec()


def _require_python(attrs: records.Attrs) -> None:
    wanted = tuple(attrs["code"]["python"])
    if sys.version_info[:2] < wanted:
        text = "the Ansible module %s needs Python %d.%d or newer on the host; %s is Python %d.%d: "
        text += "install a newer one, and set `python` of the host in the inventory"
        raise CheckError(text % (attrs["module"], *wanted, sys.executable, *sys.version_info[:2]))


def _asked(attrs: records.Attrs, world: World) -> records.Fields:
    """Return the result of a module in check mode.

    :raises CheckError: if it fails
    :raises Unknown: if a required node changes the host first
    """
    name, timeout = attrs["module"], attrs.get("timeout") or 600.0
    probe = world.probe(command(), timeout=timeout, input=order(attrs, True), user=attrs.get("user"))
    result = answer(name, probe.output, probe.errors)
    reason = failure(name, result)
    if reason:
        raise CheckError(reason)
    return result


def action(attrs: records.Attrs, foreseen: records.Fields) -> Action:
    """Return the action that runs the module of a node.

    :param foreseen: its result in check mode, which the plan shows
    """
    args = {name: attrs[name] for name in ("module", "arguments", "user") if attrs.get(name) is not None}
    return Action("run_module", args, lambda machine: _run(machine, attrs, foreseen), maker=_OneAtATime())


def _run(machine: Machine, attrs: records.Attrs, foreseen: records.Fields) -> Result:
    effect = commands.effect(attrs)

    def perform() -> Result:
        assert isinstance(machine, RealMachine)
        timeout = attrs.get("timeout") or 600.0
        given = order(attrs, False)
        outcome = process.run(
            command(), timeout, user=attrs.get("user"), input=given, apart=True, interruptible=False, kept=PROBED
        )
        machine.facets.forget(effect)
        if outcome.reason:
            return error(outcome.reason)
        try:
            result = answer(attrs["module"], outcome.output, outcome.errors)
        except CheckError as problem:
            return error(str(problem))
        reason = failure(attrs["module"], result)
        if reason:
            return error(reason, log(result))
        return {**ok(log(result)), "unchanged": not result.get("changed")}

    if isinstance(machine, Planned):
        note(machine.changes, attrs["module"], foreseen.get("diff"))
    return machine.run([attrs["module"]], effect, first=perform)


def note(changes: Changes, name: str, diff: object) -> None:
    """Add what a module reports in check mode to the changes of a plan.

    :param diff: the value of `diff` in its result: one map or a list of them
    """
    for one in diff if isinstance(diff, list) else [diff]:
        if not isinstance(one, dict):
            continue
        header = one.get("after_header") or one.get("before_header") or name
        thing, before, after = str(header).partition(" (")[0], one.get("before"), one.get("after")
        if isinstance(one.get("prepared"), str):
            changes.note(thing, "diff", None, one["prepared"])
        elif isinstance(before, str) and isinstance(after, str):
            if before != after:
                changes.note(thing, "content", Blob.of(before), Blob.of(after))
        elif isinstance(before, dict) or isinstance(after, dict):
            _fields(changes, thing, before or {}, after or {})


def _fields(changes: Changes, thing: str, before: object, after: object) -> None:
    was = before if isinstance(before, dict) else {}
    will = after if isinstance(after, dict) else {}
    for key in sorted({*was, *will}, key=str):
        if was.get(key) != will.get(key):
            changes.note(thing, str(key), was.get(key), will.get(key))


def undo(node: HostNode) -> ActionSpec:
    """Report that what the module has done stays."""
    return ActionSpec(left=[STAYS % node.attrs["module"]])
