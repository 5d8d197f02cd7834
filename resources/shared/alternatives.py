"""Alternatives: what is registered, the ops of update-alternatives, and the undo."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records

if TYPE_CHECKING:
    from typing import TypedDict

    class AlternativeMemory(TypedDict):
        """The memory of an `alternative`."""

        entry: records.Fields | None


REGISTERED = "/var/lib/dpkg/alternatives"
CHOSEN = "/etc/alternatives"


@facet("alternative")
def alternatives(host: World) -> dict[str, records.Fields]:
    """Load the alternatives: name → `mode` (auto or manual), `path`, and `choices`, a map of program → priority.

    Source of the format: update-alternatives.c of dpkg. Each file has the mode, the link, two lines for each slave, an
    empty line, and then for each program its path, its priority and one line for each slave.
    """
    loaded: dict[str, records.Fields] = {}
    for name in host.listdir(REGISTERED) if host.stat(REGISTERED) is not None else ():
        lines = host.read(posixpath.join(REGISTERED, name)).decode("utf-8", "surrogateescape").split("\n")
        end = lines.index("", 2)
        slaves, at = (end - 2) // 2, end + 1
        choices: dict[str, int] = {}
        while at + 1 < len(lines) and lines[at]:
            choices[lines[at]] = int(lines[at + 1])
            at += 2 + slaves
        chosen = host.stat(posixpath.join(CHOSEN, name))
        loaded[name] = {"mode": lines[0], "path": chosen.target if chosen is not None else "", "choices": choices}
    return loaded


def _run(machine: Machine, name: str, arguments: list[str], fields: records.Fields | None) -> Result:
    effect = {"alternative": {name: fields}, "files": [posixpath.join(CHOSEN, name)]}
    return machine.run(["update-alternatives", *arguments], effect)


@op(mutex="alternatives")
def register(machine: Machine, name: str, link: str, path: str, priority: int, after: records.Fields) -> Result:
    """Register a program for a name.

    :param after: the fields of the name after it, for the plan
    """
    return _run(machine, name, ["--install", link, name, path, str(priority)], after)


@op(mutex="alternatives")
def choose(machine: Machine, name: str, path: str) -> Result:
    """Select a program for a name, regardless of its priority."""
    return _run(machine, name, ["--set", name, path], {"mode": "manual", "path": path})


@op(mutex="alternatives")
def automatic(machine: Machine, name: str, best: str) -> Result:
    """Select the program with the highest priority for a name.

    :param best: this program, for the plan
    """
    return _run(machine, name, ["--auto", name], {"mode": "auto", "path": best})


@op(mutex="alternatives")
def unregister(machine: Machine, name: str, path: str, after: records.Fields | None = None) -> Result:
    """Remove a program from a name.

    :param after: the fields of the name after it, for the plan; None: it was the only program
    """
    return _run(machine, name, ["--remove", name, path], after)


def _best(choices: Mapping[str, int]) -> str:
    return max(choices, key=lambda path: choices[path])


def _entry(world: World, name: str) -> records.Fields | None:
    """Return the fields of a name.

    :raises Unknown: if a required package may register other programs
    """
    world.stat(posixpath.join(REGISTERED, name))
    return world.entry("alternative", name)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the mode and the choice of the name with the wanted ones.

    :raises CheckError: if the name or the program is not registered
    """
    attrs, name = node.attrs, node.attrs["name"]
    entry, path = _entry(world, name), attrs.get("path")
    actions: list[Action] = []
    if entry is None and attrs.get("link") is None:
        near = paths.nearest(name, world.facet("alternative"))
        raise CheckError(f"this host has no alternatives named {name}{near}; link and priority register them")
    if path is None:
        assert entry is not None
        best = _best(entry["choices"])
        return [] if entry["mode"] == "auto" else [automatic(name, best)]
    registered = dict((entry or {}).get("choices") or {})
    if attrs.get("link") is not None and registered.get(path) != attrs["priority"]:
        if world.apparent(path) is None and world.is_known(path):
            raise CheckError(f"{path} does not exist on this host; require the node that creates it")
        registered[path] = attrs["priority"]
        chosen = _best(registered) if entry is None or entry["mode"] == "auto" else entry["path"]
        entry = {"mode": (entry or {}).get("mode", "auto"), "path": chosen, "choices": registered}
        actions.append(register(name, attrs["link"], path, attrs["priority"], entry))
    if path not in registered:
        text = "%s is not registered for %s%s; link and priority register it"
        raise CheckError(text % (path, name, paths.nearest(path, registered)))
    if entry is None or (entry["mode"], entry["path"]) != ("manual", path):
        actions.append(choose(name, path))
    return actions


def remember(node: HostNode, world: World) -> AlternativeMemory:
    """Record the fields of the name."""
    return {"entry": world.entry("alternative", node.attrs["name"])}


def undo(node: HostNode, memory: AlternativeMemory, world: World) -> ActionSpec:
    """Restore mode and choice, and remove the program that the node registered."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("alternative", attrs["name"])
    if now is None:
        return ActionSpec()
    actions: list[Action] = []
    path, choices = attrs.get("path"), dict(now["choices"])
    if path in choices and attrs.get("link") is not None and path not in (was or {"choices": ()})["choices"]:
        del choices[path]
        stays = {"mode": "auto", "path": _best(choices), "choices": choices} if choices else None
        actions.append(unregister(name, path, stays))
        if stays is None:
            return ActionSpec(actions)
        # dpkg returns to automatic mode when the chosen program is removed.
        now = {**stays, **({} if now["path"] == path else {"mode": now["mode"], "path": now["path"]})}
    if was is None or (now["mode"], now["path"]) == (was["mode"], was["path"]):
        return ActionSpec(actions)
    made = ("auto", _best(choices)) if path is None else ("manual", path)
    if not actions and (now["mode"], now["path"]) != made:
        return ActionSpec(left=[undoing.stays(f"the alternative {name}", f"{now['path']} ({now['mode']})")])
    if was["mode"] == "auto":
        return ActionSpec([*actions, automatic(name, _best(choices))] if now["mode"] != "auto" else actions)
    if was["path"] not in choices:
        return ActionSpec(actions, left=[f"{name} is not restored: its former choice {was['path']} is not registered"])
    return ActionSpec([*actions, choose(name, was["path"])])
