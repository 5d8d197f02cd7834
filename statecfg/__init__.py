"""statecfg: describe machines as a graph of resources, see what would change, change exactly that."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.4.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from statecfg.compile import Definition, compile_graph
    from statecfg.context import WireContext
    from statecfg.graph import Graph, Node, layers, merge_graphs
    from statecfg.plays import HostContext, Play, play
    from statecfg.positions import Place
    from statecfg.problems import InvalidInput, Problem, collecting
    from statecfg.remote.borg import make_validators
    from statecfg.remote.memory import MemoryMachine
    from statecfg.remote.model import Action, ActionSpec, Blob, CheckError, Keyword, Unknown, error, ok
    from statecfg.remote.nodetype import NodeType, node_type, table
    from statecfg.remote.ops import op
    from statecfg.remote.world import Machine, World
    from statecfg.secrets import Secret, secret
    from statecfg.services import deploy, relate

# Where each public name lives. It is imported when it is first used, so that `import statecfg` costs nothing.
# What lives in `statecfg.remote` is there on hosts as well, under the same name.
_HOMES = {
    "Action": "statecfg.remote.model",
    "ActionSpec": "statecfg.remote.model",
    "Blob": "statecfg.remote.model",
    "CheckError": "statecfg.remote.model",
    "Definition": "statecfg.compile",
    "Graph": "statecfg.graph",
    "HostContext": "statecfg.plays",
    "InvalidInput": "statecfg.problems",
    "Keyword": "statecfg.remote.model",
    "Machine": "statecfg.remote.world",
    "MemoryMachine": "statecfg.remote.memory",
    "Node": "statecfg.graph",
    "NodeType": "statecfg.remote.nodetype",
    "Place": "statecfg.positions",
    "Play": "statecfg.plays",
    "Problem": "statecfg.problems",
    "Secret": "statecfg.secrets",
    "Unknown": "statecfg.remote.model",
    "WireContext": "statecfg.context",
    "World": "statecfg.remote.world",
    "collecting": "statecfg.problems",
    "compile_graph": "statecfg.compile",
    "deploy": "statecfg.services",
    "error": "statecfg.remote.model",
    "layers": "statecfg.graph",
    "make_validators": "statecfg.remote.borg",
    "merge_graphs": "statecfg.graph",
    "node_type": "statecfg.remote.nodetype",
    "ok": "statecfg.remote.model",
    "op": "statecfg.remote.ops",
    "play": "statecfg.plays",
    "relate": "statecfg.services",
    "secret": "statecfg.secrets",
    "table": "statecfg.remote.nodetype",
}

__all__ = [
    "Action",
    "ActionSpec",
    "Blob",
    "CheckError",
    "Definition",
    "Graph",
    "HostContext",
    "InvalidInput",
    "Keyword",
    "Machine",
    "MemoryMachine",
    "Node",
    "NodeType",
    "Place",
    "Play",
    "Problem",
    "Secret",
    "Unknown",
    "WireContext",
    "World",
    "collecting",
    "compile_graph",
    "deploy",
    "error",
    "layers",
    "make_validators",
    "merge_graphs",
    "node_type",
    "ok",
    "op",
    "play",
    "relate",
    "secret",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
