"""Packages as they were before a node came: what goes again, what comes back, and at which version."""

from __future__ import annotations

import posixpath

from statecfg.remote.model import ActionSpec, CheckError, Unknown
from statecfg.remote.ops import op
from statecfg.resources import _apt, _before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

    from statecfg.remote.model import Action, Blob, Result
    from statecfg.remote.world import Machine, World


@op
def put_back(
    machine: Machine, path: str, content: Blob, mode: Optional[int], owner: Optional[str], group: Optional[str]
) -> Result:
    """Put a configuration file back that went with its package; the package brings the directory."""
    made = machine.mkdir(posixpath.dirname(path), parents=True)
    return made if made["status"] != "ok" else machine.write(path, content, mode, owner, group)


def newcomer_undone(world: World, name: str, memory: Mapping[str, Any], leaving: Iterable[str]) -> ActionSpec:
    """Return what purges a package that was not there, and those that came for it and that nothing else needs.

    :param leaving: the packages of all nodes that go in this run
    """
    before = set(memory["context"].read().decode().split("\n"))
    real = _apt.really_installed(world)
    # What goes in the same run keeps neither this package here nor what came along for both.
    mine = {each for each in leaving if each not in before and each.partition(":")[0] in real}
    going = _apt.removable(world, {name, *mine})
    if name not in going:
        others = sorted(set(_apt.simulate(world, ["purge", "--", name])) - {name})
        return ActionSpec(left=["%s stays: %s by now needs it" % (name, " or ".join(others))])
    along = sorted(other for other in _apt.unneeded(world, going) if other not in before)
    items: List[Dict[str, Any]] = [{"name": each, "purge": True, "others": []} for each in along]
    items.append({"name": name, "purge": memory["entry"] is None, "others": []})
    return ActionSpec([*_apt.first(world), _apt.remove(items)])


def brought_back(world: World, name: str, memory: Mapping[str, Any]) -> ActionSpec:
    """Return what installs again what a node removed, with the configuration that it purged."""
    was = memory["entry"] or {}
    gone = memory.get("gone") or ([(name, was["version"])] if "version" in was else [])
    automatic = memory.get("automatic") or ([name] if memory["auto"] else [])
    spec = installed_again(world, gone, automatic)
    for path, entry in sorted((memory.get("files") or {}).items()):
        if entry is None or "content" not in entry:
            continue
        now, content = world.stat(path), entry["content"]
        if now is None or now.kind == "file":
            undoing = _before.Undoing(world, {})
            if now is None or now.size != content.size or world.digest(path) != content.sha256:
                spec.actions.append(put_back(path, content, entry["mode"], entry["owner"], entry["group"]))
            else:
                undoing.attributes(path, now, entry, ("mode", "owner", "group"))
                spec.actions.extend(undoing.actions)
    spec.left.extend(memory.get("lost") or ())
    return spec


def installed_again(world: World, wanted: Sequence[Sequence[str]], automatic: Sequence[str]) -> ActionSpec:
    """Return what brings packages back to versions; where apt has one no more, a missing package gets the newest.

    :param wanted: pairs of name and version
    :param automatic: those that were there only for others
    """
    items: List[Dict[str, Any]] = []
    left: List[str] = []
    for name, version in wanted:
        now = world.entry("packages", name) or {}
        there = now.get("version") if not now.get("state") else None
        if there == version:
            continue
        item, why = _item(world, name, version, there)
        if why:
            left.append(why)
        if item is not None:
            items.append(item)
    actions: List[Action] = [*_apt.first(world), _apt.install(items)] if items else []
    changing = {item["name"] for item in items}
    for name in automatic:
        there = (world.entry("packages", name) or {}).get("version") is not None
        if name in changing or (there and world.entry("automatic", name) is None):
            actions.append(_apt.mark_automatic(name))
    return ActionSpec(actions, left=left)


def _item(world: World, name: str, version: str, there: Optional[str]) -> Tuple[Optional[Dict[str, Any]], str]:
    """Return what to install, and what to say about it where it is not the version that was."""
    try:
        return _apt.choice(world, name, version, None), ""
    except Unknown:
        return {"name": name, "version": version, "others": {}}, ""
    except CheckError as problem:
        why = "%s was at version %s, which can't be had any more" % (name, version)
        if there is not None:
            return None, "%s: it stays at %s" % (why, there)
        try:
            return _apt.choice(world, name, None, None), "%s: it gets the newest" % why
        except CheckError:
            return None, "%s: it does not come back: %s" % (why, problem)
