"""Files that are part of a configuration: a write after which its program refuses the whole is taken back."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.ops import Op, op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, Stat

LINES = 12  # lines of the program's output that an error shows


def writer(
    who: str, mutex: str, refusal: Callable[[RealMachine], list[str]], reader: Sequence[str] = (), mark: str = ""
) -> Op:
    """Return the op that writes a file, and restores the former one if the program refuses the whole then.

    What the program already refused before does not count. The op has the parameters of `files.write`.

    :param who: the program, for messages
    :param refusal: asks the program, and returns its complaints
    :param reader: a program that only reads and fails if it refuses the whole; plans run it on the planned files
    :param mark: what the relevant lines of its output contain
    """

    @op(name="write", mutex=mutex)
    def write(
        machine: Machine,
        path: str,
        content: Blob,
        mode: int | None = None,
        owner: str | None = None,
        group: str | None = None,
        backup: str | None = None,
        validate: list[str] | None = None,
    ) -> Result:
        if not isinstance(machine, RealMachine):
            planned = machine.write(path, content, mode, owner, group, None, validate)
            return _tried(machine) if reader and planned["status"] == "ok" else planned
        stat, before = machine.stat(path), refusal(machine)
        former = machine.read(path) if stat is not None else b""
        result = machine.write(path, content, mode, owner, group, None, validate)
        if result["status"] != "ok":
            return result
        new = [line for line in refusal(machine) if line not in before]
        return taken_back(machine, path, stat, former, who, "\n".join(new[:LINES])) if new else result

    def _tried(machine: Any) -> Result:
        """Let the program read the planned files; without it, only the apply can tell."""
        tried = machine.run(reader, {}, reads=True)
        if tried["status"] == "ok":
            return ok()
        before = refusal(machine.base)
        new = [line for line in _lines(tried.get("log", "").encode(), mark) if line not in before]
        return error(f"{who} refuses the new configuration: " + "\n".join(new[:LINES])) if new else ok()

    return write


def taken_back(machine: Machine, path: str, stat: Stat | None, former: bytes, who: str, said: str) -> Result:
    """Restore a file because a program refuses the new configuration; return the error.

    :param stat: the former file, None if there was none
    :param former: its content
    :param said: the complaints of the program
    """
    undone = machine.remove(path) if stat is None else machine.write(path, former, stat.mode, stat.owner, stat.group)
    restored = "restored" if undone["status"] == "ok" else f"not restored ({undone['reason']})"
    return error(f"{who} refuses the new configuration, and the former one is {restored}: {said}")


def complaints(machine: RealMachine, *argv: str, mark: str = "") -> list[str]:
    """Run a program that only reads; return the lines that it prints if it fails.

    :param mark: what the relevant lines contain
    """
    probe = machine.probe(list(argv), timeout=60.0)
    return _lines(probe.errors.strip() or probe.output, mark) if probe.status else []


def errors(
    machine: RealMachine, *argv: str, mark: str = "", failed: Container[int] | None = None, **options: Any
) -> list[str]:
    """Run a program that only reads; return the lines of its error output, whether it fails or not.

    :param mark: what the relevant lines contain
    :param failed: return the lines only with such a status
    :param options: see `RealMachine.probe`
    """
    probe = machine.probe(list(argv), timeout=60.0, **options)
    return _lines(probe.errors, mark) if failed is None or probe.status in failed else []


def _lines(text: bytes, mark: str) -> list[str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return [line for line in lines if line.strip() and mark in line]
