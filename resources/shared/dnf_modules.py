"""Modules of dnf: which streams are enabled, the ops that change that, and the undo."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.model import Action, ActionSpec, Node
from statecfg.remote.graph.nodetype import table
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.values import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records, rpm_repositories, software_records

DIRECTORY = "/etc/dnf/modules.d"
ENABLED, DISABLED = "enabled", "disabled"
_FIELD = re.compile(r"^(stream|state)=(.*)$", re.M)


@table("dnf_modules")
def dnf_modules(host: Any) -> dict[str, records.Fields]:
    """Load the modules with a chosen stream, and the disabled ones: name → `state` and `stream`."""
    loaded: dict[str, records.Fields] = {}
    names = host.listdir(DIRECTORY) if host.stat(DIRECTORY) is not None else []
    for file in sorted(name for name in names if name.endswith(".module")):
        fields = dict(_FIELD.findall(host.read("%s/%s" % (DIRECTORY, file)).decode("utf-8", "replace")))
        if fields.get("state") in (ENABLED, DISABLED):
            stream = fields.get("stream", "") if fields["state"] == ENABLED else ""
            loaded[file[: -len(".module")]] = {"state": fields["state"], "stream": stream}
    return loaded


@op(turn="dnf")
def choose(machine: Machine, name: str, state: str | None, stream: str = "") -> Result:
    """Enable a stream of a module, disable the module, or reset it (no state)."""
    fields = {"state": state, "stream": stream} if state else None
    effect: records.Effect = {"dnf_modules": {name: fields}, "files": ["%s/%s.module" % (DIRECTORY, name)]}
    dnf = ["dnf", "-q", "-y", "--setopt=*.metadata_expire=-1", "module"]
    if state == DISABLED:
        return machine.run([*dnf, "disable", name], effect)
    result = machine.run([*dnf, "reset", name], dict(effect, dnf_modules={name: None}))
    if result["status"] == "ok" and state == ENABLED:
        result = machine.run([*dnf, "enable", "%s:%s" % (name, stream)], effect)
    return result


def check(node: Node, nodes: Mapping[str, Node], world: World) -> list[Action]:
    """Compare the stream of a module.

    :raises CheckError: if the host has another package manager
    """
    rpm_repositories.require(world, node, "dnf")
    attrs = node.attrs
    state = DISABLED if attrs.get("disabled") else ENABLED if attrs.get("stream") else None
    wanted = {"state": state, "stream": attrs.get("stream") or ""} if state else None
    if world.entry("dnf_modules", attrs["name"]) == wanted:
        return []
    return [choose(attrs["name"], state, attrs.get("stream") or "")]


def remember(node: Node, world: World) -> software_records.DnfModuleMemory:
    """Record the stream of the module."""
    return {"was": world.entry("dnf_modules", node.attrs["name"])}


def undo(node: Node, memory: software_records.DnfModuleMemory, world: World) -> ActionSpec:
    """Restore the former stream, unless others have chosen another one since."""
    attrs, was = node.attrs, memory["was"]
    now = world.entry("dnf_modules", attrs["name"])
    ours = {"state": DISABLED, "stream": ""} if attrs.get("disabled") else None
    if attrs.get("stream"):
        ours = {"state": ENABLED, "stream": attrs["stream"]}
    if now == was:
        return ActionSpec()
    if now != ours:
        return ActionSpec(left=["others changed the module %s since: it stays" % attrs["name"]])
    return ActionSpec([choose(attrs["name"], was["state"] if was else None, was["stream"] if was else "")])
