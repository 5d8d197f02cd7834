"""Files that are part of a configuration: a write after which its program refuses the whole is taken back."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine

LINES = 12  # lines of the program's output that an error shows


def write(
    machine: Machine,
    path: str,
    content: Blob,
    mode: int | None,
    owner: str | None,
    group: str | None,
    validate: list[str] | None,
    refusal: Callable[[RealMachine], list[str]],
    who: str,
) -> Result:
    """Write a file. If the program refuses the whole configuration then, restore the former file.

    What the program already refused before does not count.

    :param refusal: asks the program, and returns its complaints
    :param who: the program, for messages
    """
    if not isinstance(machine, RealMachine):  # a plan: the program accepts it, or the action fails
        return machine.write(path, content, mode, owner, group, None, validate)
    stat, before = machine.stat(path), refusal(machine)
    former = machine.read(path) if stat is not None else b""
    result = machine.write(path, content, mode, owner, group, None, validate)
    if result["status"] != "ok":
        return result
    new = [line for line in refusal(machine) if line not in before]
    if not new:
        return result
    if stat is None:
        undone = machine.remove(path)
    else:
        undone = machine.write(path, former, stat.mode, stat.owner, stat.group)
    restored = "restored" if undone["status"] == "ok" else f"not restored ({undone['reason']})"
    said = "\n".join(new[:LINES])
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
