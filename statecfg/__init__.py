"""statecfg: describe machines as a graph of resources, see what would change, change exactly that."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from statecfg.graph import Graph, Node, merge_graphs
    from statecfg.plays import HostContext, play
    from statecfg.problems import InvalidInput
    from statecfg.remote.nodetype import node_type
    from statecfg.remote.ops import op
    from statecfg.secrets import secret

__all__ = ["Graph", "HostContext", "InvalidInput", "Node", "merge_graphs", "node_type", "op", "play", "secret"]

# Where each public name lives. It is imported when it is first used, so that `import statecfg` costs nothing.
_HOMES = {
    "Graph": "statecfg.graph",
    "HostContext": "statecfg.plays",
    "InvalidInput": "statecfg.problems",
    "Node": "statecfg.graph",
    "merge_graphs": "statecfg.graph",
    "node_type": "statecfg.remote.nodetype",
    "op": "statecfg.remote.ops",
    "play": "statecfg.plays",
    "secret": "statecfg.secrets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
