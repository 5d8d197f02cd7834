"""Modules of the kernel: which ones are loaded, the ops that load and unload one, and their files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records
from statecfg.resources.system.entry_texts import EntryWithTexts

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


class KernelModule(EntryWithTexts):
    """Whether a module is loaded, and its two files."""

    facet, noun = "module", "the module"
    permission = ("it can't be unloaded", "")

    def texts(self) -> dict[str, HostNode]:
        """Return the files that the node manages: `boot`, `options`, or both."""
        attrs, node, name = self.attrs, self.node, self.attrs["name"]
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

    def remembered_texts(self) -> Mapping[str, HostNode]:
        """Return both files."""
        return {"boot": _file(self.node, BOOT, ""), "options": _file(self.node, OPTIONS, "")}

    def key(self) -> str:
        """Return the name of the module as the kernel lists it."""
        return key(self.attrs["name"])

    def absent(self) -> bool:
        """Tell whether the module must not be loaded."""
        return bool(self.attrs.get("absent") or self.attrs.get("blocked"))

    def require(self, now: records.Fields | None) -> None:
        """Check that the kernel has the module."""
        if now is None:
            _require(self.world, self.attrs["name"])

    def in_the_way(self, now: records.Fields) -> str:
        """Return the reason to keep the module loaded."""
        if now.get("built_in"):
            return f"{self.title()} is built into the kernel"
        users = _users(self.world, self.attrs["name"])
        return f"{self.title()} is in use ({users})" if users else ""

    def create(self, fields: records.Fields) -> list[Action]:
        """Load the module."""
        return [load(self.attrs["name"])]

    def remove(self, now: records.Fields) -> list[Action]:
        """Unload the module."""
        return [unload(self.attrs["name"])]

    def recorded(self, memory: records.Attrs) -> records.Fields | None:
        """Return an entry if the module was loaded."""
        return {} if memory["loaded"] else None

    def remember(self) -> dict[str, Any]:
        """Record both files, and whether the module is loaded."""
        return {**super().remember(), "loaded": self.present() is not None}


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
    """Return the modules that use a loaded module, or the number of other users. Source: proc_modules(5)."""
    for row in world.read(LOADED).decode("utf-8", "replace").splitlines():
        fields = row.split()
        if fields and fields[0] == key(name):
            others = fields[3].strip(",-").replace(",", ", ")
            return others or ("" if fields[2] in ("0", "-") else f"{fields[2]} times")
    return ""
