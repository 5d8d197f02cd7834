"""Run programs that print inventories. Their output is reused for a short time, because one run reads it often."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

from statecfg.playbook import trust
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem

REUSED = 30.0  # seconds
LARGEST = 64 * 1024 * 1024  # bytes
_LINES = 10  # of standard error, in messages
_LAST = 5.0  # seconds to read the last output of a program that was killed

PASSED = "STATECFG_INVENTORY_ENV"  # the names of further variables that programs get, with commas between them
_NAMES = (
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "PYTHONPATH", "SHELL", "SSH_AUTH_SOCK", "TERM", "TMPDIR", "TZ",
    "USER", "VIRTUAL_ENV",
)  # fmt: skip
_PREFIXES = ("ANSIBLE_", "LC_", "STATECFG_", "XDG_")

_outputs: dict[tuple[tuple[str, ...], str], tuple[float, str]] = {}
_lock = threading.Lock()


def output(argv: Sequence[str], directory: str, timeout: float, location: SourceLocation) -> str:
    """Return what a program prints to its standard output.

    :param argv: the program and its arguments; no shell interprets them
    :param directory: its working directory
    :param timeout: in seconds
    :param location: the source location that names the program
    :raises InvalidInput: the program can't be started, fails, takes too long or prints too much
    """
    key = tuple(argv), directory
    with _lock:
        when, text = _outputs.get(key, (float("-inf"), ""))
        if time.monotonic() - when > REUSED:
            text = _run(argv, directory, timeout, location)
            _outputs[key] = time.monotonic(), text
    return text


def environment() -> dict[str, str]:
    """Return the environment of programs: not the user's whole one, which may contain secrets of other programs."""
    passed = {name.strip() for name in os.environ.get(PASSED, "").split(",")}
    return {
        name: value
        for name, value in os.environ.items()
        if name in _NAMES or name in passed or name.startswith(_PREFIXES)
    }


def shown(argv: Sequence[str]) -> str:
    """Return a program and its arguments for messages."""
    return f"`{shlex.join(argv)}`"


def refuse_untrusted(path: str, location: SourceLocation) -> None:
    """Refuse a file that statecfg would execute, if another user could change it.

    :raises InvalidInput: another user could change the file or its directory
    """
    from pathlib import Path

    found = [trust.others_could_change(Path(one)) for one in (path, os.path.dirname(os.path.abspath(path)))]
    problems = [item for item in found if item is not None]
    if problems:
        raise InvalidInput([problem("SC0601", item.detail, item.help, location, *item.locations) for item in problems])


def _run(argv: Sequence[str], directory: str, timeout: float, location: SourceLocation) -> str:
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment(),
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        help_text = "check the path of the program; a script starts with the line #!/PATH/OF/ITS/INTERPRETER"
        raise InvalidInput([_problem(argv, f"can't be started: {reason}", help_text, location)]) from None
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        detail = f"took longer than {timeout:g} seconds{_quoted(_end(process))}"
        raise InvalidInput([_problem(argv, detail, "make it faster, or set a longer `timeout:`", location)]) from None
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        status = process.returncode
        ended = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        help_text = "run it yourself to see what it needs"
        raise InvalidInput([_problem(argv, f"{ended}{_quoted(err)}", help_text, location)])
    if len(out) > LARGEST:
        detail = f"printed {len(out):,} bytes; the maximum is {LARGEST:,}"
        raise InvalidInput([_problem(argv, detail, "print fewer hosts or variables", location)])
    return out.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> bytes:
    """End a program and the processes that it started, and return its standard error.

    They have a separate session. A process that left it can keep the pipes open, so this does not wait for it.
    """
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return process.communicate(timeout=_LAST)[1]
    except subprocess.TimeoutExpired as waited:
        return waited.stderr or b""


def _problem(argv: Sequence[str], what: str, help_text: str, location: SourceLocation) -> Problem:
    return problem("SC0416", f"{shown(argv)} {what}", help_text, location)


def _quoted(data: bytes) -> str:
    """Return the end of a program's standard error for a message; "" if it is empty."""
    lines = data.decode("utf-8", "replace").strip().splitlines()[-_LINES:]
    clean = ["".join(letter if letter.isprintable() else "?" for letter in line)[:300] for line in lines]
    return "; it printed:\n" + "\n".join(f"  {line}" for line in clean) if clean else ""
