"""Containers: their check, the ops that change them, and the undo."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.containers import engines, images
from statecfg.resources.containers.engines import key
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import TypedDict

    Step = tuple[list[str], records.Effect]  # a program, and what it changes

    class ContainerMemory(TypedDict):
        """The memory of a `container`.

        :ivar state: `running` or `stopped`; None if there was none
        :ivar foreign: whether statecfg had not created it
        """

        state: str | None
        foreign: bool


# The options that the label of a container has. A container whose options differ is recreated.
OPTIONS = (
    "image", "command", "entrypoint", "env", "ports", "volumes", "network", "restart", "labels", "user", "workdir",
    "hostname", "arguments",
)  # fmt: skip
_FLAGS = {"entrypoint": "entrypoint", "network": "network", "restart": "restart", "user": "user", "workdir": "workdir"}
_FLAGS.update(hostname="hostname", ports="publish", volumes="volume")
NEW, ASIDE = "-statecfg-new", "-before-statecfg"  # ends of the names of other containers


def options(attrs: records.Attrs) -> records.Fields:
    """Return the options of a node, with only the names of variables: nothing of it is secret."""
    given = {option: attrs[option] for option in OPTIONS if attrs.get(option) not in (None, [], {})}
    if "env" in given:
        given["env"] = sorted(given["env"])
    return given


def command(engine: str, name: str, wanted: records.Fields, label: str) -> list[str]:
    """Return the command that creates a container. It reads the variables from its standard input."""
    words = [engine, "create", "--pull=never", "--name=" + name, f"--label={engines.LABEL}={label}"]
    for option, flag in _FLAGS.items():
        values = wanted.get(option) or []
        words += [f"--{flag}={value}" for value in ([values] if isinstance(values, str) else values)]
    words += ["--label=%s=%s" % item for item in sorted((wanted.get("labels") or {}).items())]
    words += ["--env-file=/dev/stdin"] if wanted.get("env") else []
    return [*words, *(wanted.get("arguments") or []), "--", wanted["image"], *(wanted.get("command") or [])]


def _create(
    machine: Machine,
    engine: str,
    name: str,
    temporary: str,
    wanted: records.Fields,
    env: Mapping[str, str] | None,
    effect: records.Effect,
) -> Result:
    """Create a container under a temporary name."""
    # The random number tells this container from one whose image was made from it, with its labels.
    label = {"name": name, "options": wanted, "number": os.urandom(8).hex()}
    lines = "".join("%s=%s\n" % item for item in sorted((env or {}).items()))
    argv = command(engine, temporary, wanted, json.dumps(label, sort_keys=True))
    return machine.run(argv, effect, input=lines.encode())


def _effect(engine: str, name: str, fields: Mapping[str, object] | None) -> records.Effect:
    return {engines.CONTAINERS: {key(engine, name): dict(fields) if fields is not None else None}}


def _all(machine: Machine, steps: Sequence[Step]) -> Result:
    """Run programs one after another, until one fails."""
    result: Result = {"status": "ok"}
    for argv, effect in steps:
        result = machine.run(argv, effect)
        if result["status"] != "ok":
            break
    return result


@op(mutex="containers")
def create(
    machine: Machine,
    engine: str,
    name: str,
    wanted: records.Fields,
    env: dict[str, str] | None = None,
    new_values: list[str] | None = None,
    image_id: str | None = None,
    running: bool = True,
    drop: list[str] | None = None,
    stop_timeout: int = 10,
    dropped: list[str] | None = None,
) -> Result:
    """Create a container, or recreate it: the former one is removed as soon as the new one exists.

    :param wanted: its options
    :param new_values: the variables whose values change
    :param drop: containers to remove: the former one, and what an interrupted run left
    :param dropped: options that the former one has
    """
    fields = {**dict.fromkeys(dropped or []), **wanted, "image_id": image_id, "new_values": new_values or None}
    former, temporary = name in (drop or ()), name
    first = [([engine, "rm", "--force", "--", old], _effect(engine, old, None)) for old in drop or () if old != name]
    steps: list[Step] = []
    if former:
        temporary = name + NEW
        steps.append(([engine, "stop", "-t", str(stop_timeout), "--", name], {}))
        steps.append(([engine, "rm", "--", name], {}))
        steps.append(([engine, "rename", temporary, name], _effect(engine, name, {**fields, "state": "stopped"})))
    if running:
        steps.append(([engine, "start", "--", name], _effect(engine, name, {"state": "running"})))
    result = _all(machine, first)
    if result["status"] != "ok":
        return result
    known = {field: value for field, value in fields.items() if value is not None}
    made: records.Effect = {} if former else _effect(engine, name, {**known, "state": "stopped"})
    result = _create(machine, engine, name, temporary, wanted, env, made)
    return _all(machine, steps) if result["status"] == "ok" and steps else result


@op(mutex="containers")
def start(machine: Machine, engine: str, name: str) -> Result:
    """Start a container."""
    return machine.run([engine, "start", "--", name], _effect(engine, name, {"state": "running"}))


@op(mutex="containers")
def stop(machine: Machine, engine: str, name: str, stop_timeout: int = 10) -> Result:
    """Stop a container."""
    argv = [engine, "stop", "-t", str(stop_timeout), "--", name]
    return machine.run(argv, _effect(engine, name, {"state": "stopped"}))


@op(mutex="containers")
def restart(machine: Machine, engine: str, name: str, stop_timeout: int = 10) -> Result:
    """Restart a container."""
    return machine.run([engine, "restart", "-t", str(stop_timeout), "--", name], {})


@op(mutex="containers")
def remove_container(machine: Machine, engine: str, name: str, stop_timeout: int = 10) -> Result:
    """Stop a container and remove it. Its volumes stay."""
    stopping = [engine, "stop", "-t", str(stop_timeout), "--", name]
    return _all(machine, [(stopping, {}), ([engine, "rm", "--", name], _effect(engine, name, None))])


@op(mutex="containers")
def rename(machine: Machine, engine: str, name: str, new: str, running: bool, stop_timeout: int = 10) -> Result:
    """Stop a container and rename it, or rename it and start it.

    :param running: whether it runs afterwards
    """
    state = {"state": "running" if running else "stopped", "foreign": True}
    effect = {engines.CONTAINERS: {key(engine, name): None, key(engine, new): state}}
    naming: Step = ([engine, "rename", name, new], effect)
    if running:
        return _all(machine, [naming, ([engine, "start", "--", new], {})])
    return _all(machine, [([engine, "stop", "-t", str(stop_timeout), "--", name], {}), naming])


def _new_values(attrs: records.Attrs, now: records.Fields | None, world: World) -> list[str]:
    """Return the variables whose values a container lacks.

    :raises CheckError: if its variables can't be read
    """
    env: Mapping[str, str] = attrs.get("env") or {}
    if now is None:
        return sorted(env)
    compared = [name for name in sorted(env) if name not in (now.get("new_values") or ())]
    values = world.entry(engines.ENVIRONMENTS, key(attrs["engine"], attrs["name"])) if compared else {}
    if values is None:
        raise CheckError(f"the variables of the container {attrs['name']} can't be read; try again")
    return [name for name in compared if values.get(name) != env[name]]


def _create_action(
    attrs: records.Attrs, now: records.Fields | None, image_id: str | None, world: World
) -> Action | None:
    """Return the action that creates or recreates a container; None if it is as wanted."""
    engine, name, wanted, values = attrs["engine"], attrs["name"], options(attrs), _new_values(attrs, now, world)
    same = now is not None and all(now.get(option) == wanted.get(option) for option in OPTIONS)
    if now is not None and same and not values and now.get("image_id") == image_id:
        return None
    half = world.entry(engines.CONTAINERS, key(engine, name + NEW))
    drop = [name + NEW] if half is not None and half.get("intended") == name else []
    drop += [name] if now is not None else []
    dropped = [option for option in OPTIONS if now is not None and now.get(option) is not None]
    times: tuple[bool, list[str], int] = (attrs["running"], drop, attrs["stop_timeout"])
    return create(engine, name, wanted, attrs.get("env") or None, values, image_id, *times, dropped)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a container with the wanted one.

    :raises CheckError: if the engine can't be read, the image is missing, or the container is not ours
    """
    attrs = node.attrs
    engine, name = attrs["engine"], attrs["name"]
    now = engines.container(world, engine, name)
    if now is not None and now.get("foreign") and not attrs.get("replace"):
        text = "statecfg did not create the container %s; remove it, or write replace: true"
        raise CheckError(text % name)
    if attrs.get("absent"):
        return [remove_container(engine, name, attrs["stop_timeout"])] if now is not None else []
    image = images.require(world, engine, attrs["image"], node, nodes)
    actions: list[Action] = []
    if now is not None and now.get("foreign"):
        if world.entry(engines.CONTAINERS, key(engine, name + ASIDE)) is not None:
            raise CheckError(f"the container {name + ASIDE} is in the way of replace; remove it")
        actions.append(rename(engine, name, name + ASIDE, False, attrs["stop_timeout"]))
        now = None
    creating = _create_action(attrs, now, image.get("id"), world)
    if creating is not None or now is None:
        return [*actions, *([creating] if creating is not None else [])]
    if attrs["running"] != (now["state"] == "running"):
        return [start(engine, name) if attrs["running"] else stop(engine, name, attrs["stop_timeout"])]
    triggered = bool(node.triggers and world.triggered_by) and not world.acted
    return [restart(engine, name, attrs["stop_timeout"])] if triggered and attrs["running"] else []


def remember(node: HostNode, world: World) -> ContainerMemory:
    """Record which container has the name."""
    now = engines.container(world, node.attrs["engine"], node.attrs["name"])
    return {"state": now["state"] if now is not None else None, "foreign": bool(now and now.get("foreign"))}


def undo(node: HostNode, memory: ContainerMemory, world: World) -> ActionSpec:
    """Remove a container that the node created; bring back one that it replaced."""
    attrs, was = node.attrs, memory["state"]
    engine, name, seconds = attrs["engine"], attrs["name"], attrs.get("stop_timeout") or 10
    now = engines.container(world, engine, name)
    if attrs.get("absent"):
        return ActionSpec(left=[f"the container {name} is not restored"] if was and now is None else [])
    if now is not None and now.get("foreign"):
        return ActionSpec(left=[f"the container {name} stays: others created it"] if not memory["foreign"] else [])
    if was is not None and not memory["foreign"]:
        text = "the container %s stays: it existed before"
        return ActionSpec(left=[text % name] if now is not None else [])
    actions: list[Action] = [remove_container(engine, name, seconds)] if now is not None else []
    left: list[str] = []
    if memory["foreign"]:
        if world.entry(engines.CONTAINERS, key(engine, name + ASIDE)) is not None:
            actions.append(rename(engine, name + ASIDE, name, was == "running"))
        elif now is not None:
            left.append(f"the former container {name} is not restored: others have removed {name + ASIDE}")
    return ActionSpec(actions, left=left)
