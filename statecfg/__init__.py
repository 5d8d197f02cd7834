"""statecfg: describe machines as a graph of resources, see what would change, change exactly that."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.4.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from statecfg.dialects.roles import include
    from statecfg.facts.others import groups, hosts
    from statecfg.graph.graph import Graph, merge_graphs
    from statecfg.graph.host_items import host_item
    from statecfg.graph.layers import layers
    from statecfg.graph.nodes import Node
    from statecfg.graph.outputs import output
    from statecfg.graph.recording import label, when_host
    from statecfg.playbook.compile import Definition, compile_graph
    from statecfg.playbook.context import WireContext
    from statecfg.playbook.plays import HostContext, Play, play
    from statecfg.playbook.secrets import Secret, secret
    from statecfg.playbook.services import deploy, relate
    from statecfg.problems import InvalidInput, Problem, collecting
    from statecfg.problems.positions import SourceLocation
    from statecfg.remote.graph.borg import make_validators
    from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Keyword, Unknown
    from statecfg.remote.graph.nodetype import NodeType, node_type, table
    from statecfg.remote.graph.ops import op
    from statecfg.remote.graph.results import Result, error, ok
    from statecfg.remote.graph.values import (
        AbsolutePath,
        Argv,
        Attrs,
        Content,
        GroupName,
        Id,
        Line,
        LocalPath,
        Marker,
        Mode,
        ModeChange,
        Name,
        Names,
        NodeOptions,
        NoNul,
        Owner,
        OwnerGroup,
        PackageName,
        Pattern,
        Pause,
        Port,
        PublicLine,
        Seconds,
        Suffix,
        Text,
        UserName,
        WorkingDirectory,
    )
    from statecfg.remote.machine.memory import MemoryMachine
    from statecfg.remote.machine.world import Machine, World

# Where each public name lives. It is imported when it is first used, so that `import statecfg` costs nothing.
# What lives in `statecfg.remote` is there on hosts as well, under the same name.
_HOMES = {
    name: home
    for home, names in {
        "statecfg.dialects.roles": "include",
        "statecfg.facts.others": "groups hosts",
        "statecfg.graph.graph": "Graph merge_graphs",
        "statecfg.graph.host_items": "host_item",
        "statecfg.graph.layers": "layers",
        "statecfg.graph.nodes": "Node",
        "statecfg.graph.outputs": "output",
        "statecfg.graph.recording": "label when_host",
        "statecfg.playbook.compile": "Definition compile_graph",
        "statecfg.playbook.context": "WireContext",
        "statecfg.playbook.plays": "HostContext Play play",
        "statecfg.playbook.secrets": "Secret secret",
        "statecfg.playbook.services": "deploy relate",
        "statecfg.problems": "InvalidInput Problem collecting",
        "statecfg.problems.positions": "SourceLocation",
        "statecfg.remote.graph.borg": "make_validators",
        "statecfg.remote.graph.model": "Action ActionSpec Blob CheckError HostNode Keyword Unknown",
        "statecfg.remote.graph.nodetype": "NodeType node_type table",
        "statecfg.remote.graph.ops": "op",
        "statecfg.remote.graph.results": "Result error ok",
        "statecfg.remote.graph.values": (
            "AbsolutePath Argv Attrs Content GroupName Id Line LocalPath Marker Mode ModeChange Name Names NoNul "
            "NodeOptions Owner OwnerGroup PackageName Pattern Pause Port PublicLine Seconds Suffix Text UserName "
            "WorkingDirectory"
        ),
        "statecfg.remote.machine.memory": "MemoryMachine",
        "statecfg.remote.machine.world": "Machine World",
    }.items()
    for name in names.split()
}
# Names until 0.3.
_RENAMED = {"Place": "SourceLocation"}
# What the half that travels to hosts calls by name. A host has only what lives in `statecfg.remote`.
_CALLED = {
    "RealMachine": "statecfg.remote.machine.real",
    "add_installed_node_types": "statecfg.playbook.role_path",
    "add_validators": "statecfg.graph.validators",
    "declare": "statecfg.graph.declare",
    "load_module": "statecfg.dialects",
    "no_node_type_in": "statecfg.graph.registry",
    "report_twice": "statecfg.graph.registry",
    "unknown_node_type": "statecfg.graph.registry",
}

__all__ = [
    "AbsolutePath",
    "Action",
    "ActionSpec",
    "Argv",
    "Attrs",
    "Blob",
    "CheckError",
    "Content",
    "Definition",
    "Graph",
    "GroupName",
    "HostContext",
    "HostNode",
    "Id",
    "InvalidInput",
    "Keyword",
    "Line",
    "LocalPath",
    "Machine",
    "Marker",
    "MemoryMachine",
    "Mode",
    "ModeChange",
    "Name",
    "Names",
    "NoNul",
    "Node",
    "NodeOptions",
    "NodeType",
    "Owner",
    "OwnerGroup",
    "PackageName",
    "Pattern",
    "Pause",
    "Play",
    "Port",
    "Problem",
    "PublicLine",
    "Result",
    "Seconds",
    "Secret",
    "SourceLocation",
    "Suffix",
    "Text",
    "Unknown",
    "UserName",
    "WireContext",
    "WorkingDirectory",
    "World",
    "collecting",
    "compile_graph",
    "deploy",
    "error",
    "groups",
    "host_item",
    "hosts",
    "include",
    "label",
    "layers",
    "make_validators",
    "merge_graphs",
    "node_type",
    "ok",
    "op",
    "output",
    "play",
    "relate",
    "secret",
    "table",
    "when_host",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        import warnings

        warnings.warn(f"statecfg.{name} is now statecfg.{_RENAMED[name]}", FutureWarning, stacklevel=2)
        return getattr(import_module(__name__), _RENAMED[name])
    home = _HOMES.get(name) or _CALLED.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
