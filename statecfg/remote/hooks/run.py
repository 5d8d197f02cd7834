"""Runs an exec hook's handler: in its own directory, JSON on stdin, bounded in time and output, nothing left behind."""

from __future__ import annotations

import json
import os
import signal

from statecfg.remote.machine import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Sequence

STDOUT = 1 << 20  # bytes a handler may write to stdout, and to stderr.
STDERR = 256 << 10
RUNNING = "STATECFG_HOOK"  # set for a handler, so that a statecfg it starts knows that it is inside a hook


class Invocation:
    """How a handler ended.

    :param exit_status: negative: the signal that ended it
    :param given: what it had on stdin
    :param reason: why it was stopped or could not be started, "" where it ran to its end
    """

    __slots__ = ("exit_status", "given", "reason", "stderr", "stdout")

    def __init__(self, exit_status: int, stdout: bytes, stderr: bytes, reason: str, given: bytes) -> None:
        self.exit_status, self.stdout, self.stderr = exit_status, stdout, stderr
        self.reason, self.given = reason, given


def handler(folder: str, event: str) -> str:
    """Return the path of a hook type's program for an event, "" where it has none."""
    path = os.path.join(os.path.abspath(folder), event)
    return path if os.path.isfile(path) else ""


def executable(path: str) -> bool:
    """Tell whether a handler may be executed."""
    return os.access(path, os.X_OK)


def serialised(given: Dict[str, Any]) -> bytes:
    """Return what a handler reads on stdin: one JSON document."""
    return json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def invoke(
    folder: str, event: str, given: Dict[str, Any], deadline: float, path: Sequence[str] = (), mark: str = ""
) -> Invocation:
    """Run the handler of `event` in a hook type's directory, without arguments.

    :param given: the value it reads on stdin as JSON, which is then closed
    :param deadline: seconds; past it the handler and all it started get TERM, and KILL 5 s later
    :param path: directories that come before the plain PATH
    :param mark: what STATECFG_HOOK is for it, the event where not given; `end_left` finds it by that
    """
    program = os.path.join(os.path.abspath(folder), event)
    data = serialised(given)
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
    return Invocation(outcome.status, outcome.output, outcome.errors, reason, data)


def missing_interpreter(program: str) -> str:
    """Return which interpreter of a script that could not be started is not there."""
    words = _start(program)[2:].split(b"\n")[0].replace(b"\t", b" ").strip(b" ").split(b" ")
    interpreter = os.fsdecode(words[0]) if _start(program).startswith(b"#!") else ""
    if not interpreter or os.path.exists(interpreter):
        return ""
    if interpreter.endswith("\r"):  # the system takes it for a part of the name
        return " (its lines end in CR LF, and must end in LF)"
    return " (its interpreter %s is missing)" % interpreter


def end_left(mark: str) -> None:
    """End the handlers of this mark that are still there because whoever ran them was killed."""
    process.kill_marked(RUNNING, mark, signal.SIGKILL)


def command(program: str) -> List[str]:
    """Return the arguments that start a program: one without `#!` is a script of the shell's, as for execvp(3)."""
    start = _start(program)
    plain = start and not start.startswith(b"#!") and b"\0" not in start
    return ["/bin/sh", program] if plain else [program]


def _start(program: str) -> bytes:
    try:
        with open(program, "rb") as stream:
            return stream.read(256)
    except OSError:
        return b""  # starting it says what is wrong
