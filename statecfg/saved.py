"""Saved plans: what was planned, host by host, and all that it takes to see whether it still holds."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.positions import Place
from statecfg.problems import InvalidInput, problem

if TYPE_CHECKING:
    from statecfg.fleet import Job

FORMAT = "statecfg plan"
VERSION = 1
_LARGEST = 256 * 1024 * 1024
_HEAD = 200


def make(
    report: Mapping[str, Any], digests: Mapping[str, Mapping[str, str]], playbook: Path, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a plan as data to be saved.

    Parameters: `report` of the plan, redacted; `digests` for each host "definition" and "executor"; `playbook` the
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
    if plan.get("version") != VERSION:
        raise _wrong(path, f"is of version {plan.get('version')}, and this statecfg knows version {VERSION}")
    wrong = [key for key, kind in _SHAPE.items() if not isinstance(plan.get(key), kind)]
    if wrong:
        raise _wrong(path, f"is damaged: {wrong[0]} is missing or wrong")
    return dict(plan)


_SHAPE: Mapping[str, type] = {"playbook": str, "directory": str, "choices": dict, "hosts": dict}


def digests(jobs: Iterable[Job]) -> dict[str, dict[str, str]]:
    """Return for each host the digests of its definition and of the executor that all of them share."""
    from statecfg import bundle

    listed = list(jobs)
    executor = bundle.build({name for job in listed for name in job.definition.types}).sha256
    return {job.host.name: {"definition": job.definition.digest, "executor": executor} for job in listed}


def refused(plan: Mapping[str, Any], now: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the planned hosts that can't be applied as planned, each with what differs."""
    found: dict[str, list[str]] = {}
    for name, host in plan["hosts"].items():
        if name not in now:
            found[name] = ["the playbook no longer names this host"]
            continue
        wrong = [key for key in ("definition", "executor") if host.get(key) != now[name][key]]
        if wrong:
            found[name] = [f"{key}: {str(host.get(key))[:12]} planned, {now[name][key][:12]} now" for key in wrong]
        elif host["report"].get("status") != "ok":
            found[name] = [f"its plan was no plan: {host['report'].get('status')}"]
    return found


def expected(plan: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return for each host the fingerprint of what each node would do."""
    return {name: host["report"].get("fingerprints") or {} for name, host in plan["hosts"].items()}


def refusal(differs: Sequence[str]) -> dict[str, Any]:
    """Return the report of a host that was refused without a visit."""
    error = {"summary": "this is not what was planned; nothing was done", "detail": "", "hint": "plan again"}
    return {"status": "refused", "layers": [], "summary": {}, "error": error, "differs": list(differs)}


def _wrong(path: Path, what: str) -> InvalidInput:
    help_text = "make another one: statecfg plan PLAYBOOK --out FILE"
    return InvalidInput([problem("SC0430", f"{path} {what}", help_text, Place(str(path), 1))])
