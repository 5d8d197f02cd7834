"""Commands with `failed_when`, `retries`, `script` or `stdin`. Only hosts whose commands use them get this module."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from statecfg.remote.graph.model import Action
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine import files, process
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine
from statecfg.resources.programs import pauses
from statecfg.resources.shared import records

Script = dict[str, Any]  # its name and its content

DELAY = 5.0  # seconds before an attempt is repeated, without `retry_delay`
DIRECTORY = "/run"  # of root's scripts: interpreters load code from there, and every user can put code in /tmp
LARGEST = 65536  # bytes of output that another node can use
SECRET = "secret stdout"  # noqa: S105  # a mode, not a secret
SHOWN = 300  # characters of a line of output in a reason


@op(name="run")
def run_attempts(
    machine: Machine,
    argv: list[str],
    effect: records.Effect,
    cwd: str | None = None,
    user: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 600.0,
    codes: list[int] | None = None,
    script: Script | None = None,
    stdin: str | None = None,
    failed_when: dict[str, Any] | None = None,
    retries: int | None = None,
    retry_delay: list[float] | None = None,
    keep: str | None = None,
) -> Result:
    """Run a program to its end, and again after a failure if there are retries left."""

    def perform() -> Result:
        assert isinstance(machine, RealMachine)
        command = RetriedCommand(machine, argv, failed_when or {}, codes, {"cwd": cwd, "user": user, "env": env}, keep)
        try:
            with sent(machine, script, user) as path:
                command.put(path)
                return command.run(timeout, stdin, retries or 0, retry_delay or ())
        except LookupError as problem:
            return error(str(problem))
        finally:
            machine.facets.forget(effect)

    return machine.run(argv, effect, first=perform)


def action(attrs: records.Attrs, argv: list[str], effect: records.Effect, keep: str | None = None) -> Action:
    """Return the action that runs a command with rare attributes.

    :param argv: the program and its arguments; of a script, its interpreter
    :param effect: what the command changes
    :param keep: "stdout" if another node uses what the command prints, "secret stdout" if that is secret
    """
    delays = attrs.get("retry_delay")
    options = {name: attrs.get(name) for name in ("cwd", "user", "env", "script", "stdin", "failed_when", "retries")}
    return run_attempts(
        [*argv, attrs["script"]["name"]] if attrs.get("script") is not None else argv,
        effect,
        timeout=attrs.get("timeout") or 600.0,
        codes=attrs.get("expect"),
        retry_delay=[delays] if isinstance(delays, (int, float)) else delays,
        keep=keep,
        **options,
    )


@contextmanager
def sent(machine: RealMachine, script: Script | None, user: str | None) -> Iterator[str]:
    """Write a script to a new file that only its user may read, and yield the path; "" without a script.

    Without root's rights, the file is in the home directory.

    :raises LookupError: if the host does not know the user
    :raises OSError: if the file can't be written
    """
    if script is None:
        yield ""
        return
    uid = files.ids(user, None)[0]
    place = DIRECTORY if os.geteuid() == 0 else os.path.expanduser("~")
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    name = files.temporary_name()
    try:
        files.sweep(directory, machine.facets.began)
        files.fill(name, directory, script["content"], lambda opened: os.fchown(opened, uid, -1))
        yield os.path.join(place, name)
    finally:
        files.unlink(name, directory)
        os.close(directory)


class Log:
    """The output of all attempts in the order of its arrival; of long output, the newest part.

    :param listen: receives each piece at once
    :ivar path: a path to replace in the output, "" for none
    :ivar name: the text that replaces it
    """

    def __init__(self, listen: Callable[[bytes], None] | None) -> None:
        self.listen = listen
        self.data, self.cut = bytearray(), 0
        self.path = self.name = ""

    def add(self, piece: bytes) -> None:
        """Add output."""
        if self.path:
            piece = piece.replace(self.path.encode(), self.name.encode())
        self.data += piece
        if len(self.data) > 2 * process.KEPT:
            self._shorten()
        if self.listen is not None:
            self.listen(piece)

    def note(self, text: str) -> None:
        """Add a line about the attempts."""
        start = "\n" if self.data and not self.data.endswith(b"\n") else ""
        self.add(f"{start}[{text}]\n".encode())

    def text(self) -> str:
        """Return the output."""
        self._shorten()
        return (f"[{self.cut} bytes cut]\n" if self.cut else "") + self.data.decode("utf-8", "replace")

    def _shorten(self) -> None:
        surplus = max(0, len(self.data) - process.KEPT)
        self.cut += surplus
        del self.data[:surplus]


class RetriedCommand:
    """One command, which runs until it succeeds or no retry is left.

    :param argv: the program and its arguments
    :param failed_when: see the node type
    :param codes: exit statuses that mean success, None if the node does not list them
    :param options: `cwd`, `user` and `env`
    :param keep: see `action`
    """

    def __init__(
        self,
        machine: RealMachine,
        argv: Sequence[str],
        failed_when: Mapping[str, Any],
        codes: Sequence[int] | None,
        options: Mapping[str, Any],
        keep: str | None = None,
    ) -> None:
        self.argv, self.options, self.log, self.keep = list(argv), options, Log(machine.listen), keep
        self.failing: Sequence[int] = failed_when.get("exit") or ()
        self.patterns = {stream: failed_when[stream] for stream in ("stdout", "stderr") if stream in failed_when}
        self.codes = codes if codes is not None or self.failing else (0,)

    def put(self, path: str) -> None:
        """Replace the name of the script by its path on this host."""
        if path:
            self.log.path, self.log.name, self.argv[-1] = path, self.argv[-1], path

    def run(self, timeout: float, stdin: str | None, retries: int, delays: Sequence[float]) -> Result:
        """Run the command until it succeeds.

        :param timeout: seconds for each attempt
        :param retries: how often it is repeated
        :param delays: seconds before each repetition; the last one applies to all further ones
        """
        given = stdin.encode("utf-8", "surrogateescape") if stdin is not None else None
        attempt, last = 1, retries + 1
        while True:
            start = len(self.log.data) + self.log.cut
            outcome = process.run(
                self.argv,
                timeout,
                input=given,
                listen=None if self.keep == SECRET else self.log.add,
                apart=bool(self.patterns or self.keep),
                **self.options,
            )
            if self.keep == SECRET:
                self.log.add(outcome.errors)
            why = self._failure(outcome, start) or self._unusable(outcome)
            if retries:
                self.log.note(f"attempt {attempt} of {last}: {why or 'succeeded'}")
            if not why:
                result = ok(self.log.text())
                return {**result, "said": {"stdout": outcome.output.decode().rstrip("\n")}} if self.keep else result
            if attempt == last:
                break
            delay = delays[min(attempt, len(delays)) - 1] if delays else DELAY
            self.log.note(f"the next attempt starts in {delay:g} s")
            if not pauses.waited(delay):
                self.log.note("the run was stopped")
                return error(f"{self._name()}: {why}; not repeated: the run was stopped", self.log.text())
            attempt += 1
        count = f" (attempt {attempt} of {last})" if retries else ""
        return error(f"{self._name()}: {why}{count}", self.log.text())

    def _unusable(self, outcome: process.ProcessResult) -> str:
        """Return why another node can't use the output, "" if it can or if none does."""
        if not self.keep:
            return ""
        if len(outcome.output) > LARGEST:
            return f"it prints more than {LARGEST} bytes, and another node uses them"
        try:
            outcome.output.decode()
        except UnicodeDecodeError:
            return "it prints bytes that are not text in UTF-8, and another node uses them"
        return ""

    def _name(self) -> str:
        return self.log.name or self.argv[0]

    def _failure(self, outcome: process.ProcessResult, start: int) -> str:
        """Return why an attempt failed, "" if it succeeded.

        :param start: the size of the log before the attempt
        """
        if outcome.reason:
            return outcome.reason
        status = outcome.status
        if status < 0:
            return "ended by signal %d" % -status
        if status in self.failing or (self.codes is not None and status not in self.codes):
            output = bytes(self.log.data[max(0, start - self.log.cut) :]).decode("utf-8", "replace").strip()
            return "exit status %d%s" % (status, shown(output.rsplit("\n", 1)[-1]))
        for stream, pattern in self.patterns.items():
            text = (outcome.output if stream == "stdout" else outcome.errors).decode("utf-8", "replace")
            found = re.search(pattern, text, re.MULTILINE)
            if found:
                line = text[text.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
                line = "" if self.keep == SECRET and stream == "stdout" else line
                return f"{stream} matches failed_when{shown(line.strip())}"
        return ""


def shown(line: str) -> str:
    """Return a line of output for a reason. A long one is left out, because half of a secret could not be masked."""
    return ": " + line if 0 < len(line) <= SHOWN else ""
