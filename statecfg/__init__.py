"""statecfg: describe machines as a graph of resources, see what would change, change exactly that."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.4.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from statecfg.graph.graph import Graph, Node, layers, merge_graphs
    from statecfg.playbook.compile import Definition, compile_graph
    from statecfg.playbook.context import WireContext
    from statecfg.playbook.plays import HostContext, Play, play
    from statecfg.playbook.secrets import Secret, secret
    from statecfg.playbook.services import deploy, relate
    from statecfg.problems import InvalidInput, Problem, collecting
    from statecfg.problems.positions import Place
    from statecfg.remote.graph.borg import make_validators
    from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, Keyword, Unknown, error, ok
    from statecfg.remote.graph.nodetype import NodeType, node_type, table
    from statecfg.remote.graph.ops import op
    from statecfg.remote.machine.memory import MemoryMachine
    from statecfg.remote.machine.world import Machine, World

# Where each public name lives. It is imported when it is first used, so that `import statecfg` costs nothing.
# What lives in `statecfg.remote` is there on hosts as well, under the same name.
_HOMES = {
    "Action": "statecfg.remote.graph.model",
    "ActionSpec": "statecfg.remote.graph.model",
    "Blob": "statecfg.remote.graph.model",
    "CheckError": "statecfg.remote.graph.model",
    "Definition": "statecfg.playbook.compile",
    "Graph": "statecfg.graph.graph",
    "HostContext": "statecfg.playbook.plays",
    "InvalidInput": "statecfg.problems",
    "Keyword": "statecfg.remote.graph.model",
    "Machine": "statecfg.remote.machine.world",
    "MemoryMachine": "statecfg.remote.machine.memory",
    "Node": "statecfg.graph.graph",
    "NodeType": "statecfg.remote.graph.nodetype",
    "Place": "statecfg.problems.positions",
    "Play": "statecfg.playbook.plays",
    "Problem": "statecfg.problems",
    "Secret": "statecfg.playbook.secrets",
    "Unknown": "statecfg.remote.graph.model",
    "WireContext": "statecfg.playbook.context",
    "World": "statecfg.remote.machine.world",
    "collecting": "statecfg.problems",
    "compile_graph": "statecfg.playbook.compile",
    "deploy": "statecfg.playbook.services",
    "error": "statecfg.remote.graph.model",
    "layers": "statecfg.graph.graph",
    "make_validators": "statecfg.remote.graph.borg",
    "merge_graphs": "statecfg.graph.graph",
    "node_type": "statecfg.remote.graph.nodetype",
    "ok": "statecfg.remote.graph.model",
    "op": "statecfg.remote.graph.ops",
    "play": "statecfg.playbook.plays",
    "relate": "statecfg.playbook.services",
    "secret": "statecfg.playbook.secrets",
    "table": "statecfg.remote.graph.nodetype",
}
# What the half that travels to hosts calls by name. A host has only what lives in `statecfg.remote`.
_CALLED = {
    "RealMachine": "statecfg.remote.machine.real",
    "add_validators": "statecfg.graph.validators",
    "declare": "statecfg.graph.declare",
    "load_module": "statecfg.dialects",
    "no_node_type_in": "statecfg.graph.kinds",
    "report_twice": "statecfg.graph.kinds",
    "unknown_node_type": "statecfg.graph.kinds",
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
    home = _HOMES.get(name) or _CALLED.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
