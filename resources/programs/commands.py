"""Commands: when they must run, and the op that runs them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Stays
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.changes import secretive
from statecfg.remote.machine.world import ANYTHING, Machine, World
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    class CommandMemory(TypedDict):
        """The memory of a `command`. `done` tells whether its result existed before; None if it has no `undo`."""

        done: bool | None


FACETS = ("packages", "units", "users", "groups")
SHELL = "/bin/sh"
# Attributes whose code is in `command_attempts`, which only those hosts get whose commands use them.
RARE = ("failed_when", "retries", "script", "stdin")


@op
def run(
    machine: Machine,
    argv: list[str],
    effect: records.Effect,
    cwd: str | None = None,
    user: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 600.0,
    codes: list[int] | None = None,
) -> Result:
    """Run a program to its end."""
    return machine.run(argv, effect, cwd, env, user, timeout=timeout, codes=tuple(codes or (0,)))


def action(attrs: records.Attrs, command: list[str] | str, codes: list[int] | None = None) -> Action:
    """Return the action that runs a command in the directory, as the user and with the timeout of a node.

    :param codes: exit statuses that mean success; None: 0
    """
    options = {option: attrs.get(option) for option in ("cwd", "user", "env")}
    return run(words(command), effect(attrs), timeout=attrs.get("timeout") or 600.0, codes=codes, **options)


def wanted(node: HostNode) -> Action:
    """Return the action that runs the program of a node."""
    attrs, kept = node.attrs, node.options.get("produces")
    program = attrs.get("argv") or attrs.get("interpreter") or attrs.get("shell") or ""
    if not kept and all(attrs.get(name) is None for name in RARE):
        return action(attrs, program, attrs.get("expect"))
    from statecfg.resources.programs import command_attempts

    keep = None if not kept else "secret stdout" if node.hides else "stdout"
    return command_attempts.action(attrs, words(program), effect(attrs), keep)


def stdout(node: HostNode, world: World, said: dict[str, str]) -> str | None:
    """Return what the command printed when it ran last, without the line breaks at the end."""
    return said.get("stdout")


def guarded(attrs: records.Attrs) -> bool:
    """Return whether the command has a guard, which shows whether its result is there."""
    return any(attrs.get(name) is not None for name in ("creates", "removes", "unless", "onlyif"))


def needed(node: HostNode, world: World) -> bool:
    """Return whether the command must run, because of a trigger or its guards."""
    attrs = node.attrs
    if node.triggers and world.triggered_by:
        return True
    guards = lacking(attrs, world)
    if world.acted and not guards:  # it has run; only its exit status tells whether it worked
        return False
    if attrs.get("onlyif") is not None and all(guards):
        guards.append(succeeds(attrs["onlyif"], attrs, world))
    return all(guards) if guards else bool(attrs.get("always")) or not node.triggers


def lacking(attrs: records.Attrs, world: World) -> list[bool]:
    """Return one value per guard among `creates`, `removes` and `unless`: True if it says that the work is not done."""
    guards = []
    if attrs.get("creates") is not None:
        guards.append(world.stat(attrs["creates"]) is None)
    if attrs.get("removes") is not None:
        guards.append(world.stat(attrs["removes"]) is not None)
    if attrs.get("unless") is not None:
        guards.append(not succeeds(attrs["unless"], attrs, world))
    return guards


def succeeds(guard: list[str] | str, attrs: records.Attrs, world: World) -> bool:
    """Return whether a guard's command ends with exit status 0."""
    require_directory(attrs, world)
    options = {name: attrs[name] for name in ("cwd", "user", "env") if attrs.get(name) is not None}
    return world.probe(words(guard), **options).status == 0


def require_directory(attrs: records.Attrs, world: World) -> None:
    """Check that the working directory exists, or may still be created by a required node.

    :raises CheckError: if it does not exist
    """
    cwd = attrs.get("cwd")
    if cwd is not None and world.apparent(cwd) is None and world.is_known(cwd):
        raise CheckError(f"the working directory {cwd} does not exist; require the node that creates it")


def words(command: list[str] | str) -> list[str]:
    """Return the argument list of a command; a string is a script for the shell."""
    return [SHELL, "-c", command] if isinstance(command, str) else list(command)


def names(command: list[str] | str, variable: str) -> bool:
    """Tell whether a command mentions an environment variable."""
    return any(re.search(rf"\b{re.escape(variable)}\b", word) for word in words(command))


def effect(attrs: records.Attrs) -> records.Effect:
    """Return the declared effects in the machine's form; without a declaration, the command may change anything."""
    declared = attrs.get("effects")
    if declared is None:
        return dict(ANYTHING)
    paths = [*declared.get("files", ()), *([attrs["creates"]] if attrs.get("creates") else [])]
    return {"files": paths, "unknown": [facet for facet in FACETS if declared.get(facet)]}


def remember(node: HostNode, world: World) -> CommandMemory:
    """Record whether the result of the command existed before."""
    return {"done": not all(lacking(node.attrs, world)) if node.attrs.get("undo") is not None else None}


def undo(node: HostNode, memory: CommandMemory, world: World) -> ActionSpec:
    """Run the `undo` of a command if its guards say that its result exists.

    :raises Stays: if the undo needs a secret that the playbook no longer contains
    """
    attrs = {**node.attrs, **getattr(node, "secret_attrs", {})}
    name, left = attrs["name"], []
    if attrs.get("undo") is None:
        return ActionSpec(left=[f"the effects of the command {name} stay: it has no undo"])
    if memory["done"]:
        return ActionSpec(left=[f"the result of the command {name} existed before it: it stays"])
    missing = sorted(key for key, value in (attrs.get("env") or {}).items() if secretive(value))
    if secretive(attrs["undo"]) or any(names(attrs["undo"], variable) for variable in missing):
        text = "kept: the playbook no longer contains the secret that the undo of the command %s needs; define the "
        raise Stays((text + "command as it was and destroy the playbook, or undo its effects by hand") % name)
    if missing:
        attrs["env"] = {key: value for key, value in attrs["env"].items() if key not in missing}
        text = "the undo of the command %s runs without %s: the playbook no longer contains that secret"
        left.append(text % (name, ", ".join(missing)))
    if secretive(attrs.get("unless")):  # the guard needs the lost secret; the command is known to have run
        attrs["unless"] = None
    guards = lacking(attrs, world)
    if world.acted if not guards else all(guards):
        return ActionSpec()
    require_directory(attrs, world)
    return ActionSpec([action(attrs, attrs["undo"])], left=left)
