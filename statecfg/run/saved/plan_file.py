"""The file of a saved plan: JSON whose first line contains the format, the version of statecfg, and a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import NoReturn

from statecfg.problems import InvalidInput, StalePlan, problem
from statecfg.problems.positions import SourceLocation
from statecfg.remote.machine import durable
from statecfg.remote.wire.strict_json import loads
from statecfg.run.saved import shape
from statecfg.run.saved.model import SavedPlan

FORMAT = "statecfg plan"
VERSION = 2
LARGEST = 256 * 1024 * 1024  # bytes
_MAKE = "statecfg plan PLAYBOOK --out FILE"
_AGAIN = f"make a new one: {_MAKE}"
_OURS = re.compile(rb'\s*\{\s*"format":\s*"%b"' % FORMAT.encode())
_FIRST = re.compile(
    rb'\{"format": "%b", "version": ([0-9]{1,9}), "statecfg": "([^"\\\n]{1,100})", "sha256": "([0-9a-f]{64})",\n'
    % FORMAT.encode()
)
_EARLIER = re.compile(rb'\s*\{\s*"format":\s*"%b",\s*"version":\s*1,' % FORMAT.encode())


def text(plan: SavedPlan, statecfg: str) -> bytes:
    """Return the content of a plan's file. Its checksum is the SHA-256 of the whole content without the checksum.

    :param statecfg: the version of statecfg that made the plan
    """
    body = json.dumps(plan, indent=1).encode().removeprefix(b"{\n") + b"\n"
    first = f'{{"format": "{FORMAT}", "version": {VERSION}, "statecfg": {json.dumps(statecfg)}, "sha256": "'
    head, tail = first.encode(), b'",\n' + body
    return head + hashlib.sha256(head + tail).hexdigest().encode() + tail


def write(path: Path, content: bytes) -> None:
    """Write a plan's file with mode 0600, atomically. A pipe or a device receives the content instead.

    :raises InvalidInput: if the file can't be written
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
        else:
            durable.replace(str(path), [content])
    except OSError as error:
        raise _wrong(str(path), f"can't be written: {error.strerror}", "choose another file") from None


def is_plan(head: bytes) -> bool:
    """Return whether a file is a saved plan.

    :param head: the first bytes of the file
    """
    return _OURS.match(head) is not None


def parse(data: bytes, name: str, statecfg: str) -> SavedPlan:
    """Check the content of a plan's file, and return the plan.

    :param data: the content of the file
    :param name: the file's name in messages
    :param statecfg: this version of statecfg
    :raises StalePlan: if another version of statecfg made the plan
    :raises InvalidInput: if the file is damaged, was edited, or is not a plan
    """
    if len(data) > LARGEST:
        raise _wrong(name, f"is larger than {LARGEST:,} bytes")
    if not is_plan(data[:200]):
        help = f"to make a plan, run {_MAKE}; a playbook ends in .hy, .py, .yml or .yaml"
        raise _wrong(name, "is not a saved plan", help)
    first = _FIRST.match(data)
    if first is None:
        if _EARLIER.match(data[:200]):
            _of_another_version(name, "statecfg 0.3.0 or older", statecfg)
        raise _wrong(name, "is damaged or was edited: its first line is not as statecfg writes it")
    maker = first[2].decode("ascii", "replace")
    if maker != statecfg or int(first[1]) != VERSION:
        version = f"statecfg {maker}" + (f" (plan format {int(first[1])})" if maker == statecfg else "")
        _of_another_version(name, version, statecfg)
    head, tail = data[: first.start(3)], data[first.end(3) :]
    if hashlib.sha256(head + tail).hexdigest().encode() != first[3]:
        raise _wrong(name, "is damaged or was edited: its checksum does not match its content")
    try:
        plan = loads(data.decode(), unique=True)
    except (ValueError, RecursionError) as error:
        raise _wrong(name, f"is damaged: {error}") from None
    if wrong := shape.misshapen(plan):
        raise _wrong(name, f"is damaged: `{wrong}` is missing or wrong")
    # statecfg evaluates the playbook that the plan names, so it must be inside the project.
    for key in ("playbook", "directory"):
        if os.path.isabs(plan[key]) or ".." in Path(plan[key]).parts:
            raise _wrong(name, f"is damaged: `{key}` is outside the project")
    plan["sha256"] = first[3].decode()
    checked: SavedPlan = plan
    return checked


def _of_another_version(name: str, maker: str, ours: str) -> NoReturn:
    detail = f"{name} was made by {maker}; this is statecfg {ours}"
    help = f"plan again with statecfg {ours}, or apply it with the version that made it"
    raise StalePlan([problem("SC0432", detail, help)])


def _wrong(name: str, what: str, help: str = _AGAIN) -> InvalidInput:
    return InvalidInput([problem("SC0430", f"{name} {what}", help, SourceLocation(name, 0))])
