"""Runs a fact of the project on the host: in a separate process, read-only, and with a time limit."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

from statecfg.remote.machine.guard import reading_only
from statecfg.remote.machine.real import RealMachine

SECONDS = 10.0  # time limit of one fact
LARGEST = 64 << 10  # bytes of its value as JSON


def run(file: str, source: str) -> Any:
    """Return the value of a fact.

    :param file: its file, for messages
    :param source: Python source that defines `fact()` or `fact(world)`
    :raises OSError: the fact failed, took too long, or its value is not JSON or too large
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _child(file, source, writing)
    os.close(writing)
    try:
        answer = _received(reading)
    finally:
        os.close(reading)
        try:
            os.killpg(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            os.kill(child, signal.SIGKILL)  # it had no time to become the leader of its group
        os.waitpid(child, 0)
    if not answer:
        raise OSError(f"{file} ended without a value")
    told = json.loads(answer)
    if "error" in told:
        raise OSError(told["error"])
    return told["value"]


def _received(reading: int) -> bytes:
    """Return what the child wrote.

    :raises OSError: it took too long or wrote too much
    """
    end, answer = time.monotonic() + SECONDS, b""
    while True:
        if not select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            raise OSError(f"it took more than {int(SECONDS)} s")
        piece = os.read(reading, 1 << 16)
        if not piece:
            return answer
        answer += piece
        if len(answer) > LARGEST:
            raise OSError(f"its value has more than {LARGEST} bytes")


def _child(file: str, source: str, writing: int) -> None:
    """Compute the value, write it as JSON, and end this process."""
    try:
        os.setsid()
        # Descriptors 0 to 2 may be the connection to the controller.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            told = {"value": _value(file, source)}
            text = json.dumps(told, allow_nan=False)
        except BaseException as problem:
            text = json.dumps({"error": f"{_location(problem, file)}: {type(problem).__name__}: {problem}"})
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


def _value(file: str, source: str) -> Any:
    names = {"__name__": "fact", "__file__": file}
    # As in a check, writing and starting programs is an error; `world.probe` runs read-only programs.
    with reading_only():
        exec(compile(source, file, "exec", dont_inherit=True), names)  # noqa: S102  # a file of the project
        function: Any = names["fact"]
        return function(*[RealMachine()][: function.__code__.co_argcount])


def _location(problem: BaseException, file: str) -> str:
    """Return FILE:LINE where the fact raised an exception."""
    line, trace = 0, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line}" if line else file
