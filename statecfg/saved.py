"""Saved plans: what was planned, host by host, and all that it takes to see whether it still holds."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.compile import digest
from statecfg.positions import Place
from statecfg.problems import InvalidInput, problem
from statecfg.remote.redact import Redactor

if TYPE_CHECKING:
    from statecfg.fleet import Job

FORMAT = "statecfg plan"
VERSION = 1
_LARGEST = 256 * 1024 * 1024
_HEAD = 200


def make(
    report: Mapping[str, Any], digests: Mapping[str, Mapping[str, Any]], playbook: Path, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a plan as data to be saved.

    Parameters: `report` of the plan, redacted; `digests` of each host; `playbook` the
    file; `choices` what else is needed to compile the same again (inventory, limit, tags, extra_vars, become …).
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "playbook": str(playbook.resolve()),
        "directory": str(Path.cwd()),
        "choices": dict(choices),
        "run": report.get("run", ""),
        "hosts": {name: {**digests[name], "report": host} for name, host in report["hosts"].items() if name in digests},
    }


def write(path: Path, plan: Mapping[str, Any]) -> None:
    """Write a plan, readable by nobody else: the whole file or none of it. Raises InvalidInput."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _wrong(path, f"can't be written: {error.strerror}") from None
    try:
        # mkstemp opened it with mode 0600, and it stays that way.
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(plan, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise _wrong(path, f"can't be written: {error.strerror}") from None


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def is_plan(path: Path) -> bool:
    """Say whether a file is a saved plan, by its content: JSON text that names our format."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise _wrong(path, f"can't be read: {error.strerror}") from None
    return re.match(rb'\s*\{\s*"format": "%b"' % FORMAT.encode(), head) is not None


def read(path: Path) -> dict[str, Any]:
    """Return a saved plan. Raises InvalidInput where it is damaged, too large, or of another version."""
    try:
        if path.stat().st_size > _LARGEST:
            raise _wrong(path, f"is larger than {_LARGEST:,} bytes")
        plan = json.loads(path.read_bytes())
    except OSError as error:
        raise _wrong(path, f"can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"is damaged: {error}") from None
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise _wrong(path, "is no saved plan")
    if plan.get("version") != VERSION:
        raise _wrong(path, f"is of version {plan.get('version')}, and this statecfg knows version {VERSION}")
    wrong = _misshapen(plan, _SHAPE)
    for name, host in () if wrong else plan["hosts"].items():
        wrong = wrong or _misshapen(host, _HOST, f"hosts.{name}.")
    if wrong := wrong or _misshapen(plan["choices"], _CHOICES, "choices."):
        raise _wrong(path, f"is damaged: {wrong} is missing or wrong")
    return dict(plan)


_SHAPE: Mapping[str, type] = {"playbook": str, "directory": str, "choices": dict, "hosts": dict}
_CHOICES: Mapping[str, type] = {"selection": dict}
_HOST: Mapping[str, type] = {"definition": str, "executor": str, "nodes": dict, "report": dict}


def _misshapen(value: Any, shape: Mapping[str, type], where: str = "") -> str:
    """Return the name of the first part that is not there or of the wrong type, or ""."""
    if not isinstance(value, dict):
        return where.removesuffix(".") or "all of it"
    return next((where + key for key, kind in shape.items() if not isinstance(value.get(key), kind)), "")


def digests(jobs: Iterable[Job], secrets: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return for each host the digests of its definition, of its nodes, and of the executor that all of them share.

    Parameters: `secrets` by name: a node's digest is one of the node without them, as it is there to be looked at.
    """
    from statecfg import bundle

    listed = list(jobs)
    executor = bundle.build({name for job in listed for name in job.definition.types}).sha256
    redactor = Redactor(secrets)
    return {
        job.host.name: {
            "definition": job.definition.digest,
            "executor": executor,
            "nodes": {node["provides"]: _of_node(node, redactor) for layer in job.definition.layers for node in layer},
        }
        for job in listed
    }


def _of_node(node: Mapping[str, Any], redactor: Redactor) -> str:
    """Return the digest of a node as it may be seen: one with a secret in it gives no chance to guess that."""
    shown = {**node, "position": ""}
    masked = redactor.value(shown)
    if masked != shown:
        masked = json.loads(_HEX.sub("", json.dumps(masked)))
    return digest([[masked]])[:16]


_HEX = re.compile(r"\b[0-9a-f]{64}\b")


def refused(plan: Mapping[str, Any], now: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the planned hosts that can't be applied as planned, each with what differs."""
    found: dict[str, list[str]] = {}
    for name, host in plan["hosts"].items():
        status = host["report"].get("status")
        if name not in now:
            found[name] = ["the playbook no longer names this host"]
        elif status != "ok":
            found[name] = [_NO_PLAN.get(status, f"when the plan was made, its outcome was `{status}`")]
        elif differs := [*_definition(host, now[name]), *_executor(host, now[name])]:
            found[name] = differs
    return found


_NO_PLAN = {
    "unreachable": "it could not be reached when the plan was made",
    "failed": "a check failed on it when the plan was made",
    "locked": "another run held it when the plan was made",
}


def _definition(planned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    if planned.get("definition") == now["definition"]:
        return []
    before, after = planned.get("nodes") or {}, now["nodes"]
    found = [
        f"{name}: its definition is another one now" for name in before if before[name] != after.get(name, before[name])
    ]
    found += [f"{name}: is not defined any more" for name in before if name not in after]
    found += [f"{name}: was not defined when the plan was made" for name in after if name not in before]
    return found or ["a secret has another value now, or resources stand elsewhere in the playbook"]


def _executor(planned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    before, after = str(planned.get("executor")), str(now["executor"])
    if before == after:
        return []
    return [
        f"statecfg or the code of a node type is another one now (executor {before[:12]} planned, {after[:12]} now)"
    ]


def compared(planned: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how a host that refused differs from its plan, node by node.

    Parameters: `planned` its report in the plan; `now` its report with `differs`, the names of the nodes.
    """
    before, after = _by_name(planned), _by_name(now)
    went, goes = _going(planned), _going(now)
    return [
        "units: the hooks that are due are others now, or their charms or settings are"
        if name == "units"
        else f"{name}: {_moved(before.get(name), after.get(name), (name in went, name in goes))}"
        for name in now.get("differs") or []
    ]


def _by_name(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    layers = (*(report.get("removals") or ()), *(report.get("layers") or ()))
    return {node["name"]: node for layer in layers for node in layer}


def _going(report: Mapping[str, Any]) -> set[str]:
    return {node["name"] for layer in report.get("removals") or () for node in layer}


def _moved(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, goes: tuple[bool, bool]) -> str:
    was, now = _deed(before, goes[0]), _deed(after, goes[1])
    if was != now:
        return f"planned: {was}; now: {now}"
    return f"planned and now: {was}, but from another state or to another one"


def _deed(node: Mapping[str, Any] | None, goes: bool) -> str:
    """Return in a few words what would be done to a node; `goes` says that it is to be removed."""
    if node is None:
        return "not there"
    if goes:
        ops = ", ".join(str(action["op"]) for action in node.get("actions") or ())
        return f"removed ({ops})" if ops else "forgotten"
    fields: dict[str, None] = dict.fromkeys(str(change.get("field")) for change in node.get("changes") or ())
    ops = ", ".join(str(action["op"]) for action in node.get("actions") or ())
    if not ops:
        return "nothing to do"
    absent = all(change.get("before") is None for change in node.get("changes") or ())
    return f"{ops} ({'it is not there' if absent else ', '.join(fields)})" if fields else ops


def expected(plan: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return for each host the fingerprint of what each node would do."""
    return {name: host["report"].get("fingerprints") or {} for name, host in plan["hosts"].items()}


def refusal(differs: Sequence[str]) -> dict[str, Any]:
    """Return the report of a host that was refused without a visit."""
    return {"status": "refused", "layers": [], "summary": {}, "error": dict(STALE), "differs": list(differs)}


STALE = {
    "summary": "this is not what was planned; nothing was done",
    "detail": "",
    "hint": "Plan again, look at it, and apply the new plan: statecfg plan PLAYBOOK --out FILE",
}


def _wrong(path: Path, what: str) -> InvalidInput:
    help_text = "make another one: statecfg plan PLAYBOOK --out FILE"
    return InvalidInput([problem("SC0430", f"{path} {what}", help_text, Place(str(path), 1))])
