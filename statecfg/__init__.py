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
    "AbsolutePath": "statecfg.remote.graph.values",
    "Action": "statecfg.remote.graph.model",
    "ActionSpec": "statecfg.remote.graph.model",
    "Argv": "statecfg.remote.graph.values",
    "Attrs": "statecfg.remote.graph.values",
    "Blob": "statecfg.remote.graph.model",
    "CheckError": "statecfg.remote.graph.model",
    "Content": "statecfg.remote.graph.values",
    "Definition": "statecfg.playbook.compile",
    "Graph": "statecfg.graph.graph",
    "GroupName": "statecfg.remote.graph.values",
    "HostContext": "statecfg.playbook.plays",
    "HostNode": "statecfg.remote.graph.model",
    "Id": "statecfg.remote.graph.values",
    "InvalidInput": "statecfg.problems",
    "Keyword": "statecfg.remote.graph.model",
    "Line": "statecfg.remote.graph.values",
    "LocalPath": "statecfg.remote.graph.values",
    "Machine": "statecfg.remote.machine.world",
    "Marker": "statecfg.remote.graph.values",
    "MemoryMachine": "statecfg.remote.machine.memory",
    "Mode": "statecfg.remote.graph.values",
    "ModeChange": "statecfg.remote.graph.values",
    "Name": "statecfg.remote.graph.values",
    "Names": "statecfg.remote.graph.values",
    "NoNul": "statecfg.remote.graph.values",
    "Node": "statecfg.graph.nodes",
    "NodeOptions": "statecfg.remote.graph.values",
    "NodeType": "statecfg.remote.graph.nodetype",
    "Owner": "statecfg.remote.graph.values",
    "OwnerGroup": "statecfg.remote.graph.values",
    "PackageName": "statecfg.remote.graph.values",
    "Pattern": "statecfg.remote.graph.values",
    "Pause": "statecfg.remote.graph.values",
    "SourceLocation": "statecfg.problems.positions",
    "Play": "statecfg.playbook.plays",
    "Port": "statecfg.remote.graph.values",
    "PublicLine": "statecfg.remote.graph.values",
    "Problem": "statecfg.problems",
    "Result": "statecfg.remote.graph.results",
    "Seconds": "statecfg.remote.graph.values",
    "Secret": "statecfg.playbook.secrets",
    "Suffix": "statecfg.remote.graph.values",
    "Text": "statecfg.remote.graph.values",
    "Unknown": "statecfg.remote.graph.model",
    "UserName": "statecfg.remote.graph.values",
    "WireContext": "statecfg.playbook.context",
    "WorkingDirectory": "statecfg.remote.graph.values",
    "World": "statecfg.remote.machine.world",
    "collecting": "statecfg.problems",
    "compile_graph": "statecfg.playbook.compile",
    "deploy": "statecfg.playbook.services",
    "error": "statecfg.remote.graph.results",
    "groups": "statecfg.facts.others",
    "hosts": "statecfg.facts.others",
    "include": "statecfg.dialects.roles",
    "label": "statecfg.graph.recording",
    "layers": "statecfg.graph.layers",
    "make_validators": "statecfg.remote.graph.borg",
    "merge_graphs": "statecfg.graph.graph",
    "node_type": "statecfg.remote.graph.nodetype",
    "ok": "statecfg.remote.graph.results",
    "op": "statecfg.remote.graph.ops",
    "host_item": "statecfg.graph.host_items",
    "output": "statecfg.graph.outputs",
    "play": "statecfg.playbook.plays",
    "relate": "statecfg.playbook.services",
    "secret": "statecfg.playbook.secrets",
    "table": "statecfg.remote.graph.nodetype",
    "when_host": "statecfg.graph.recording",
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
