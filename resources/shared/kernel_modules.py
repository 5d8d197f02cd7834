"""Modules of the kernel: which ones are loaded, the ops that load and unload one, their files, and the undo."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import drop_ins, files, paths, records

if TYPE_CHECKING:
    from typing import TypedDict

    class KernelModuleMemory(TypedDict):
        """The memory of a `kernel_module`: whether it was loaded, and its two files."""

        loaded: bool
        boot: files.FileMemory
        options: files.FileMemory


BOOT, OPTIONS = "/etc/modules-load.d/%s.conf", "/etc/modprobe.d/%s.conf"
HEADER = "# Managed by statecfg.\n"
LOADED = "/proc/modules"  # a kernel without support for modules does not have this file
RELEASE = "/proc/sys/kernel/osrelease"


def key(name: str) -> str:
    """Return a module's name as the kernel lists it. Source: modprobe(8)."""
    return name.replace("-", "_")


@facet("module")
def modules(host: World) -> dict[str, records.Fields]:
    """Load the modules of the running kernel: name → `loaded` or `built_in`."""
    found: dict[str, records.Fields] = {name: {"built_in": True} for name in _names(host, "modules.builtin")}
    if host.stat(LOADED) is not None:
        rows = host.read(LOADED).decode("utf-8", "replace").splitlines()
        found.update((row.split()[0], {"loaded": True}) for row in rows if row)
    return found


def _names(world: World, index: str) -> list[str]:
    """Return the names of the modules that an index lists. Each of its lines begins with the path of a module."""
    path = posixpath.join("/lib/modules", _release(world), index)
    if world.stat(path) is None:
        return []
    rows = world.read(path).decode("utf-8", "replace").splitlines()
    return [key(posixpath.basename(row.partition(":")[0]).partition(".ko")[0]) for row in rows if row]


def _release(world: World) -> str:
    return world.read(RELEASE).decode("utf-8", "replace").strip()


@op(mutex="modules")
def load(machine: Machine, name: str) -> Result:
    """Load a module, with the parameters of /etc/modprobe.d."""
    return machine.run(["modprobe", "--", name], {"module": {key(name): {"loaded": True}}})


@op(mutex="modules")
def unload(machine: Machine, name: str) -> Result:
    """Unload a module."""
    return machine.run(["modprobe", "--remove", "--", name], {"module": {key(name): None}})


def _file(node: HostNode, path: str, text: str | None) -> HostNode:
    """Return one of the two files as `drop_ins` and `files` need it. Without a string, it must not exist."""
    attrs: dict[str, Any] = {"path": path % node.attrs["name"], "absent": text is None}
    if text is not None:
        attrs.update(content=HEADER + text, mode=0o644, owner="root", group="root")
    return HostNode(node.provides, node.type, node.requires, attrs)


def _files(node: HostNode) -> dict[str, HostNode]:
    """Return the files that the node manages: `boot`, `options`, or both."""
    attrs, name = node.attrs, node.attrs["name"]
    if attrs.get("absent"):
        return {"boot": _file(node, BOOT, None), "options": _file(node, OPTIONS, None)}
    if attrs.get("blocked"):
        # `blacklist` alone prevents only that the kernel asks for it by an alias. Source: modprobe.d(5).
        text = f"blacklist {name}\ninstall {name} /bin/false\n"
        return {"boot": _file(node, BOOT, None), "options": _file(node, OPTIONS, text)}
    managed = {"boot": _file(node, BOOT, name + "\n")} if attrs.get("at_boot", True) else {}
    parameters = attrs.get("parameters")
    if parameters:
        settings = " ".join(f"{parameter}={parameters[parameter]}" for parameter in sorted(parameters))
        managed["options"] = _file(node, OPTIONS, f"options {name} {settings}\n")
    return managed


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the files and the running kernel with what is wanted.

    :raises CheckError: if the kernel does not have the module, or can't unload it
    """
    attrs, name = node.attrs, node.attrs["name"]
    actions = [action for file in _files(node).values() for action in drop_ins.check(file, nodes, world)]
    state = world.entry("module", key(name))
    if not attrs.get("absent") and not attrs.get("blocked"):
        if state is None:
            _require(world, name)
            actions.append(load(name))
        return actions
    if state is None:
        return actions
    if state.get("built_in"):
        raise CheckError(f"{name} is built into the kernel, so it can't be unloaded")
    users = _users(world, name)
    if users:
        raise CheckError(f"{name} is in use ({users}): it can't be unloaded")
    return [*actions, unload(name)]


def _require(world: World, name: str) -> None:
    """Check that the running kernel has a module.

    :raises CheckError: if it does not
    """
    names = _names(world, "modules.dep")
    if key(name) not in names:
        near = paths.nearest(key(name), names)
        text = "the running kernel %s has no module %s%s; /lib/modules lists its modules"
        raise CheckError(text % (_release(world), name, near))


def _users(world: World, name: str) -> str:
    """Return what uses a loaded module: other modules, or how often it is in use. Source: proc_modules(5)."""
    for row in world.read(LOADED).decode("utf-8", "replace").splitlines():
        fields = row.split()
        if fields and fields[0] == key(name):
            others = fields[3].strip(",-").replace(",", ", ")
            return others or ("" if fields[2] in ("0", "-") else f"{fields[2]} times")
    return ""


def remember(node: HostNode, world: World) -> KernelModuleMemory:
    """Record both files, and whether the module is loaded."""
    return {
        "loaded": world.entry("module", key(node.attrs["name"])) is not None,
        "boot": files.remember(_file(node, BOOT, ""), world),
        "options": files.remember(_file(node, OPTIONS, ""), world),
    }


def undo(node: HostNode, memory: KernelModuleMemory, world: World) -> ActionSpec:
    """Restore the files, and unload or load the module."""
    attrs, name = node.attrs, node.attrs["name"]
    actions: list[Action] = []
    left: list[str] = []
    was: Mapping[str, files.FileMemory] = {"boot": memory["boot"], "options": memory["options"]}
    for which, file in _files(node).items():
        spec = files.undo(file, was[which], world)
        actions, left = [*actions, *spec.actions], [*left, *spec.left]
    state = world.entry("module", key(name))
    if attrs.get("absent") or attrs.get("blocked"):
        if state is None and memory["loaded"]:
            actions.append(load(name))
    elif state is not None and state.get("loaded") and not memory["loaded"]:
        users = _users(world, name)
        if users:
            left.append(f"the module {name} is in use ({users}): it stays loaded")
        else:
            actions.append(unload(name))
    return ActionSpec(actions, left=left)
