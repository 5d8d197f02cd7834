"""statecfg: describe machines as a graph of resources, see what would change, change exactly that."""

from __future__ import annotations

from importlib import import_module

from statecfg.remote.graph.above import above as _above

__version__ = "0.4.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import FrameType
    from typing import Any

    from statecfg.dialects.roles import include as include
    from statecfg.facts.others import groups as groups
    from statecfg.facts.others import hosts as hosts
    from statecfg.graph.graph import Graph as Graph
    from statecfg.graph.graph import merge_graphs as merge_graphs
    from statecfg.graph.host_items import host_item as host_item
    from statecfg.graph.layers import layers as layers
    from statecfg.graph.nodes import Node as Node
    from statecfg.graph.outputs import output as output
    from statecfg.graph.recording import label as label
    from statecfg.graph.recording import when_host as when_host
    from statecfg.hooks.http.calls import call_hook as call_hook
    from statecfg.hooks.service import HookError as HookError
    from statecfg.hooks.service import HookRequest as HookRequest
    from statecfg.hooks.service import HookService as HookService
    from statecfg.playbook.compile import Definition as Definition
    from statecfg.playbook.compile import compile_graph as compile_graph
    from statecfg.playbook.context import WireContext as WireContext
    from statecfg.playbook.plays import HostContext as HostContext
    from statecfg.playbook.plays import Play as Play
    from statecfg.playbook.plays import play as play
    from statecfg.playbook.secrets import Secret as Secret
    from statecfg.playbook.secrets import secret as secret
    from statecfg.playbook.services import deploy as deploy
    from statecfg.playbook.services import relate as relate
    from statecfg.problems import InvalidInput as InvalidInput
    from statecfg.problems import Problem as Problem
    from statecfg.problems import collecting as collecting
    from statecfg.problems.positions import SourceLocation as SourceLocation
    from statecfg.remote.graph.borg import make_validators as make_validators
    from statecfg.remote.graph.facet_entry import FacetEntry as FacetEntry
    from statecfg.remote.graph.model import Action as Action
    from statecfg.remote.graph.model import ActionSpec as ActionSpec
    from statecfg.remote.graph.model import Blob as Blob
    from statecfg.remote.graph.model import CheckError as CheckError
    from statecfg.remote.graph.model import HostNode as HostNode
    from statecfg.remote.graph.model import Keyword as Keyword
    from statecfg.remote.graph.model import Unknown as Unknown
    from statecfg.remote.graph.nodetype import NodeType as NodeType
    from statecfg.remote.graph.nodetype import facet as facet
    from statecfg.remote.graph.nodetype import node_type as node_type
    from statecfg.remote.graph.ops import op as op
    from statecfg.remote.graph.results import Result as Result
    from statecfg.remote.graph.results import error as error
    from statecfg.remote.graph.results import ok as ok
    from statecfg.remote.graph.values import AbsolutePath as AbsolutePath
    from statecfg.remote.graph.values import Argv as Argv
    from statecfg.remote.graph.values import Attrs as Attrs
    from statecfg.remote.graph.values import Content as Content
    from statecfg.remote.graph.values import GroupName as GroupName
    from statecfg.remote.graph.values import Id as Id
    from statecfg.remote.graph.values import Line as Line
    from statecfg.remote.graph.values import LocalPath as LocalPath
    from statecfg.remote.graph.values import Marker as Marker
    from statecfg.remote.graph.values import Mode as Mode
    from statecfg.remote.graph.values import ModeChange as ModeChange
    from statecfg.remote.graph.values import Name as Name
    from statecfg.remote.graph.values import Names as Names
    from statecfg.remote.graph.values import NodeOptions as NodeOptions
    from statecfg.remote.graph.values import NoNul as NoNul
    from statecfg.remote.graph.values import Owner as Owner
    from statecfg.remote.graph.values import OwnerGroup as OwnerGroup
    from statecfg.remote.graph.values import PackageName as PackageName
    from statecfg.remote.graph.values import Pattern as Pattern
    from statecfg.remote.graph.values import Pause as Pause
    from statecfg.remote.graph.values import Port as Port
    from statecfg.remote.graph.values import PublicLine as PublicLine
    from statecfg.remote.graph.values import Seconds as Seconds
    from statecfg.remote.graph.values import Suffix as Suffix
    from statecfg.remote.graph.values import Text as Text
    from statecfg.remote.graph.values import UserName as UserName
    from statecfg.remote.graph.values import WorkingDirectory as WorkingDirectory
    from statecfg.remote.machine.memory import MemoryMachine as MemoryMachine
    from statecfg.remote.machine.world import Machine as Machine
    from statecfg.remote.machine.world import World as World
    from statecfg.testing.fact_sets import fact_set as fact_set
    from statecfg.testing.imagined import ImaginedHost as ImaginedHost

# Where each public name lives. It is imported when it is first used, so that `import statecfg` costs little.
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
        "statecfg.hooks.http.calls": "call_hook",
        "statecfg.hooks.service": "HookError HookRequest HookService",
        "statecfg.playbook.compile": "Definition compile_graph",
        "statecfg.playbook.context": "WireContext",
        "statecfg.playbook.plays": "HostContext Play play",
        "statecfg.playbook.secrets": "Secret secret",
        "statecfg.playbook.services": "deploy relate",
        "statecfg.problems": "InvalidInput Problem collecting",
        "statecfg.problems.positions": "SourceLocation",
        "statecfg.remote.graph.borg": "make_validators",
        "statecfg.remote.graph.facet_entry": "FacetEntry",
        "statecfg.remote.graph.model": "Action ActionSpec Blob CheckError HostNode Keyword Unknown",
        "statecfg.remote.graph.nodetype": "NodeType facet node_type",
        "statecfg.remote.graph.ops": "op",
        "statecfg.remote.graph.results": "Result error ok",
        "statecfg.remote.graph.values": (
            "AbsolutePath Argv Attrs Content GroupName Id Line LocalPath Marker Mode ModeChange Name Names NoNul "
            "NodeOptions Owner OwnerGroup PackageName Pattern Pause Port PublicLine Seconds Suffix Text UserName "
            "WorkingDirectory"
        ),
        "statecfg.remote.machine.memory": "MemoryMachine",
        "statecfg.remote.machine.world": "Machine World",
        "statecfg.testing.fact_sets": "fact_set",
        "statecfg.testing.imagined": "ImaginedHost",
    }.items()
    for name in names.split()
}
# Names until 0.3.
_RENAMED = {"Place": "SourceLocation", "table": "facet"}

__all__ = [*_HOMES, *_RENAMED]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        from statecfg.problems.former_names import warn_of_former_export

        warn_of_former_export(f"statecfg.{name}", f"statecfg.{_RENAMED[name]}")
        return getattr(import_module(__name__), _RENAMED[name])
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


# What lower rooms call in higher ones. Each function imports its module when it is called: `import statecfg` loads only
# the place where they are registered.


def _this_machine() -> Any:
    from statecfg.remote.machine.real import RealMachine

    return RealMachine()


def _declare(node_type: Any, args: Sequence[Any], attrs: Mapping[str, Any], frame: FrameType | None) -> Any:
    from statecfg.graph.declare import declare

    _above.declare = declare  # a large definition calls it often
    return declare(node_type, args, attrs, frame)


def _merge_graphs(*graphs: Any) -> Any:
    from statecfg.graph.graph import merge_graphs

    return merge_graphs(*graphs)


def _add_validators(module: str, clauses: Mapping[str, Any]) -> None:
    from statecfg.graph.validators import add_validators

    add_validators(module, clauses)


def _load_node_type(name: str, frame: FrameType | None) -> Any:
    from statecfg.dialects.node_types import load_node_type

    return load_node_type(name, frame)


def _report_twice(names: Iterable[str], directory: str) -> None:
    from statecfg.graph.registry import report_twice

    report_twice(names, directory)


def _renamed(former: str, name: str) -> None:
    from statecfg.problems.former_names import warn_of_former

    warn_of_former(former, name, depth=2)


_above.this_machine = _this_machine
_above.declare = _declare
_above.merge_graphs = _merge_graphs
_above.add_validators = _add_validators
_above.load_node_type = _load_node_type
_above.report_twice = _report_twice
_above.renamed = _renamed  # type: ignore[method-assign]  # a host keeps the method, which does nothing
