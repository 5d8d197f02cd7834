"""Modules of dnf: which streams are enabled, the ops that change that, and the undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import ActionSpec, Blob, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import dnf_profiles, package_manager, package_snapshot
from statecfg.resources.shared import records

if TYPE_CHECKING:

    class DnfModuleMemory(dnf_profiles.ProfileMemory):
        """The memory of a `dnf_module`."""


DIRECTORY = "/etc/dnf/modules.d"
ENABLED, DISABLED = "enabled", "disabled"
_FIELD = re.compile(r"^(stream|state|profiles)=(.*)$", re.M)


@facet("dnf_modules")
def dnf_modules(host: Any) -> dict[str, records.Fields]:
    """Load the modules with a chosen stream, and the disabled ones: name → `state`, `stream`, installed `profiles`."""
    loaded: dict[str, records.Fields] = {}
    names = host.listdir(DIRECTORY) if host.stat(DIRECTORY) is not None else []
    for file in sorted(name for name in names if name.endswith(".module")):
        fields = dict(_FIELD.findall(host.read(f"{DIRECTORY}/{file}").decode("utf-8", "replace")))
        if fields.get("state") in (ENABLED, DISABLED):
            stream = fields.get("stream", "") if fields["state"] == ENABLED else ""
            profiles = sorted(filter(None, (each.strip() for each in fields.get("profiles", "").split(","))))
            loaded[file[: -len(".module")]] = {"state": fields["state"], "stream": stream, "profiles": profiles}
    return loaded


@op(mutex="dnf")
def choose(machine: Machine, name: str, state: str | None, stream: str = "") -> Result:
    """Enable a stream of a module, disable the module, or reset it (no state)."""
    fields = {"state": state, "stream": stream} if state else None
    effect: records.Effect = {"dnf_modules": {name: fields}, "files": [f"{DIRECTORY}/{name}.module"]}
    dnf = ["dnf", "-q", "-y", "--setopt=*.metadata_expire=-1", "module"]
    if state == DISABLED:
        return machine.run([*dnf, "disable", name], effect)
    result = machine.run([*dnf, "reset", name], dict(effect, dnf_modules={name: None}))
    if result["status"] == "ok" and state == ENABLED:
        result = machine.run([*dnf, "enable", f"{name}:{stream}"], effect)
    return result


def _chosen(entry: records.Fields | None) -> tuple[str, str] | None:
    """Return the state and the stream of a module."""
    return (entry["state"], entry["stream"]) if entry is not None else None


def _wanted(attrs: records.Attrs) -> tuple[str, str] | None:
    """Return the state and the stream that a node wants."""
    if attrs.get("disabled"):
        return DISABLED, ""
    return (ENABLED, attrs["stream"]) if attrs.get("stream") else None


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the stream of a module and its profiles.

    :raises CheckError: if the host has another package manager; see also `dnf_profiles.check`
    """
    package_manager.require(world, node, "dnf")
    attrs, now, wanted = node.attrs, world.entry("dnf_modules", node.attrs["name"]), _wanted(node.attrs)
    profiles = bool(attrs.get("profiles"))
    right = _chosen(now) == wanted or (profiles and wanted is None)  # only the profiles must be absent
    spec = ActionSpec([] if right else [choose(attrs["name"], *(wanted or (None, "")))])
    if profiles:
        # A reset forgets the profiles.
        more = dnf_profiles.check(node, nodes, world, dnf_profiles.installed(now) if right else [])
        spec.actions.extend(more.actions)
        spec.known_after = more.known_after
    return spec


def remember(node: HostNode, world: World) -> DnfModuleMemory:
    """Record the stream and the profiles of the module; for profiles also all packages."""
    memory: DnfModuleMemory = {"was": world.entry("dnf_modules", node.attrs["name"])}
    if node.attrs.get("profiles"):
        memory["context"] = Blob.of(package_snapshot.context(world, ()))
    return memory


def undo(node: HostNode, memory: DnfModuleMemory, world: World) -> ActionSpec:
    """Remove the new profiles, and restore the former stream, unless others have chosen another one since."""
    attrs, was, wanted = node.attrs, memory["was"], _wanted(node.attrs)
    spec = dnf_profiles.undo(node, memory, world) if attrs.get("profiles") else ActionSpec()
    now = _chosen(world.entry("dnf_modules", attrs["name"]))
    if now == _chosen(was) or spec.left or (attrs.get("profiles") and wanted is None):
        return spec
    if now != wanted:
        spec.left.append(f"others changed the module {attrs['name']} since: it stays")
    else:
        spec.actions.append(choose(attrs["name"], *(_chosen(was) or (None, ""))))
    return spec
