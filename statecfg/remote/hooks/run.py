"""Runs the program of an exec hook: in its own directory, with JSON on stdin, and limits on time and output."""

from __future__ import annotations

import json
import os
import signal
from typing import Any, Dict, List, Mapping, Sequence

from statecfg.remote.machine import process

STDOUT = 1 << 20  # bytes that a program may write to stdout
STDERR = 256 << 10
RUNNING = "STATECFG_HOOK"  # set for the program: a statecfg that it starts knows that it runs inside a hook


class Ended:
    """How a program of a hook ended.

    :param exit_status: negative: the signal that ended it
    :param reason: why it was stopped or could not be started; "" if it ran to its end
    :param given: its input
    """

    __slots__ = ("exit_status", "given", "reason", "stderr", "stdout")

    def __init__(self, exit_status: int, stdout: bytes, stderr: bytes, reason: str = "", given: bytes = b"") -> None:
        self.exit_status, self.stdout, self.stderr = exit_status, stdout, stderr
        self.reason, self.given = reason, given


def handler(folder: str, event: str) -> str:
    """Return the path of a hook type's program for an event; "" if it has none."""
    path = os.path.join(os.path.abspath(folder), event)
    return path if os.path.isfile(path) else ""


def executable(path: str) -> bool:
    """Return whether a program is executable."""
    return os.access(path, os.X_OK)


def serialised(document: Mapping[str, Any]) -> bytes:
    """Return the input of a program: one JSON document."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def invoke(
    folder: str, event: str, document: Dict[str, Any], deadline: float, path: Sequence[str] = (), mark: str = ""
) -> Ended:
    """Run the program of an event in a hook type's directory, without arguments.

    :param document: the input, which the program reads on stdin as JSON
    :param deadline: seconds; then the program and its children get TERM, and KILL 5 s later
    :param path: directories before the plain PATH
    :param mark: value of STATECFG_HOOK, by which `end_left` finds the program; by default the event
    """
    program = os.path.join(os.path.abspath(folder), event)
    data = serialised(document)
    extra = {RUNNING: mark or event, "PATH": os.pathsep.join([*path, process.PATH])}
    outcome = process.run(
        command(program),
        deadline,
        cwd=os.path.abspath(folder),
        env=extra,
        input=data,
        apart=True,
        kept=max(STDOUT, STDERR),
        most=(STDOUT, STDERR),
        last=True,
    )
    reason = (
        outcome.reason + missing_interpreter(program) if outcome.status == 127 and outcome.reason else outcome.reason
    )
    return Ended(outcome.status, outcome.output, outcome.errors, reason, data)


def missing_interpreter(program: str) -> str:
    """Return the missing interpreter of a script that could not be started; "" if it is not missing."""
    words = _start(program)[2:].split(b"\n")[0].replace(b"\t", b" ").strip(b" ").split(b" ")
    interpreter = os.fsdecode(words[0]) if _start(program).startswith(b"#!") else ""
    if not interpreter or os.path.exists(interpreter):
        return ""
    if interpreter.endswith("\r"):  # the system treats it as a part of the name
        return " (its lines end in CR LF, and must end in LF)"
    return f" (its interpreter {interpreter} is missing)"


def end_left(mark: str) -> None:
    """End the programs with this mark that were left running by a killed process."""
    process.kill_marked(RUNNING, mark, signal.SIGKILL)


def command(program: str) -> List[str]:
    """Return the arguments that start a program. Without `#!`, it is a shell script, as for execvp(3)."""
    start = _start(program)
    plain = start and not start.startswith(b"#!") and b"\0" not in start
    return ["/bin/sh", program] if plain else [program]


def _start(program: str) -> bytes:
    try:
        with open(program, "rb") as stream:
            return stream.read(256)
    except OSError:
        return b""  # the start of the program reports the error
