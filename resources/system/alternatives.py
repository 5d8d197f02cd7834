"""Alternatives: what is registered, the ops of update-alternatives, and the undo."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
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
    """Load the alternatives: name → `mode` (auto or manual), `path`, `choices`, `link`, `linked` and `slaves`.

    `choices` is a map of program → priority, `linked` tells whether the link leads to the alternatives, and `slaves` is
    a map of program → [link, name, path] of each further link.

    Source of the format: update-alternatives.c of dpkg. Each file has the mode, the link, two lines for each slave, an
    empty line, and then for each program its path, its priority and one line for each slave.
    """
    loaded: dict[str, records.Fields] = {}
    for name in host.listdir(REGISTERED) if host.stat(REGISTERED) is not None else ():
        lines = host.read(posixpath.join(REGISTERED, name)).decode("utf-8", "surrogateescape").split("\n")
        end = lines.index("", 2)
        names, at = list(zip(lines[3:end:2], lines[2:end:2])), end + 1
        choices: dict[str, int] = {}
        slaves: dict[str, list[list[str]]] = {}
        while at + 1 < len(lines) and lines[at]:
            choices[lines[at]] = int(lines[at + 1])
            targets = lines[at + 2 : at + 2 + len(names)]
            slaves[lines[at]] = [[link, slave, path] for (link, slave), path in zip(names, targets) if path]
            at += 2 + len(names)
        chosen, link = host.stat(posixpath.join(CHOSEN, name)), host.stat(lines[1])
        loaded[name] = {
            "mode": lines[0],
            "path": chosen.target if chosen is not None else "",
            "choices": choices,
            "link": lines[1],
            "linked": link is not None and link.target == posixpath.join(CHOSEN, name),
            "slaves": slaves,
        }
    return loaded


def _run(machine: Machine, name: str, arguments: list[str], fields: records.Fields | None) -> Result:
    effect = {"alternative": {name: fields}, "files": [posixpath.join(CHOSEN, name)]}
    return machine.run(["update-alternatives", *arguments], effect)


@op(mutex="alternatives")
def register(
    machine: Machine,
    name: str,
    link: str,
    path: str,
    priority: int,
    after: records.Fields,
    slaves: Sequence[Sequence[str]] = (),
) -> Result:
    """Register a program for a name.

    :param after: the fields of the name after it, for the plan
    :param slaves: [link, name, path] of each further link that the program has
    """
    more = [text for slave in slaves for text in ("--slave", *slave)]
    return _run(machine, name, ["--install", link, name, path, str(priority), *more], after)


@op(mutex="alternatives")
def choose(machine: Machine, name: str, path: str) -> Result:
    """Select a program for a name, regardless of its priority."""
    return _run(machine, name, ["--set", name, path], {"mode": "manual", "path": path, "linked": True})


@op(mutex="alternatives")
def automatic(machine: Machine, name: str, best: str) -> Result:
    """Select the program with the highest priority for a name.

    :param best: this program, for the plan
    """
    return _run(machine, name, ["--auto", name], {"mode": "auto", "path": best, "linked": True})


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
    """Compare the mode, the choice and the link of the name with the wanted ones.

    :raises CheckError: if the name or the program is not registered, or something is in the way of the link
    """
    attrs, name = node.attrs, node.attrs["name"]
    entry, path, link = _entry(world, name), attrs.get("path"), attrs.get("link")
    actions: list[Action] = []
    if entry is None and link is None:
        near = paths.nearest(name, world.facet("alternative"))
        raise CheckError(f"this host has no alternatives named {name}{near}; link and priority register them")
    linked = _linked(name, entry, link, world)
    if path is None:
        assert entry is not None
        best = _best(entry["choices"])
        return [] if entry["mode"] == "auto" and linked else [automatic(name, best)]
    registered = dict((entry or {}).get("choices") or {})
    if (path in registered or link is not None) and world.apparent(path) is None and world.is_known(path):
        raise CheckError(f"{path} does not exist on this host; require the node that creates it")
    if link is not None and (registered.get(path), (entry or {}).get("link", link)) != (attrs["priority"], link):
        registered[path] = attrs["priority"]
        chosen = _best(registered) if entry is None or entry["mode"] == "auto" else entry["path"]
        slaves = ((entry or {}).get("slaves") or {}).get(path, ())
        entry = {"mode": (entry or {}).get("mode", "auto"), "path": chosen, "choices": registered, "link": link}
        actions.append(register(name, link, path, attrs["priority"], {**entry, "linked": True}, slaves))
        linked = True
    if path not in registered:
        text = "%s is not registered for %s%s; link and priority register it"
        raise CheckError(text % (path, name, paths.nearest(path, registered)))
    if entry is None or (entry["mode"], entry["path"], linked) != ("manual", path, True):
        actions.append(choose(name, path))
    return actions


def _linked(name: str, entry: records.Fields | None, link: str | None, world: World) -> bool:
    """Return whether the link of a name leads to the alternatives, so that users get the chosen program.

    :raises CheckError: if it can't lead there
    """
    wanted = link or (entry or {}).get("link")
    found = world.stat(wanted) if wanted is not None and world.is_known(wanted) else None
    if found is not None and found.file_type != "symlink":
        raise CheckError(f"{wanted} is not a link, and update-alternatives does not replace it; remove it")
    return entry is None or bool(entry.get("linked", True))


def remember(node: HostNode, world: World) -> AlternativeMemory:
    """Record the fields of the name."""
    return {"entry": world.entry("alternative", node.attrs["name"])}


def undo(node: HostNode, memory: AlternativeMemory, world: World) -> ActionSpec:
    """Restore mode, choice, link and priority, and remove the program that the node registered."""
    attrs, was = node.attrs, memory["entry"]
    name, now = attrs["name"], world.entry("alternative", attrs["name"])
    if now is None:
        return ActionSpec()
    actions: list[Action] = []
    left: list[str] = []
    path, choices = attrs.get("path"), dict(now["choices"])
    if path in choices and attrs.get("link") is not None and path not in (was or {"choices": ()})["choices"]:
        del choices[path]
        stays = {"mode": "auto", "path": _best(choices), "choices": choices} if choices else None
        actions.append(unregister(name, path, stays))
        if stays is None:
            return ActionSpec(actions)
        # dpkg returns to automatic mode when the chosen program is removed.
        now = {**stays, **({} if now["path"] == path else {"mode": now["mode"], "path": now["path"]})}
    elif path in choices and attrs.get("link") is not None and was is not None:
        present = (now.get("link", attrs["link"]), choices[path])
        former = (was.get("link", attrs["link"]), was["choices"][path])
        if present not in (former, (attrs["link"], attrs["priority"])):
            left.append(undoing.stays(f"the link of the alternative {name}", "%s with priority %s" % present))
        elif present != former:
            choices[path] = former[1]
            chosen = _best(choices) if now["mode"] == "auto" else now["path"]
            now = {**now, "path": chosen, "choices": choices, "link": former[0]}
            actions.append(register(name, former[0], path, former[1], now, (now.get("slaves") or {}).get(path, ())))
    if was is None or (now["mode"], now["path"]) == (was["mode"], was["path"]):
        return ActionSpec(actions, left=left)
    made = ("auto", _best(choices)) if path is None else ("manual", path)
    if path in (None, *choices) and (now["mode"], now["path"]) != made:
        left.append(undoing.stays(f"the alternative {name}", f"{now['path']} ({now['mode']})"))
    elif was["mode"] == "auto":
        actions += [automatic(name, _best(choices))] if now["mode"] != "auto" else []
    elif was["path"] not in choices:
        left.append(f"{name} is not restored: its former choice {was['path']} is not registered")
    else:
        actions.append(choose(name, was["path"]))
    return ActionSpec(actions, left=left)
