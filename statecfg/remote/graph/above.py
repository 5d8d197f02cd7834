"""What lower rooms call in higher ones. Higher floors register it here, so that nothing imports from a higher floor."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, Callable, Iterable, Mapping, Optional, Sequence


class Above:
    """Functions of higher floors.

    `import statecfg` registers all of them on the controller; each loads its module when it is called. A host has only
    `this_machine`, which `remote.machine.real` registers.

    :ivar this_machine: returns the machine that this process runs on
    :ivar declare: declares a node of a node type, with arguments, attributes and the frame that declares it; returns
        its graph
    :ivar merge_graphs: returns one graph with the nodes of several graphs
    :ivar add_validators: defines validators for attributes of the node types of a module
    :ivar load_node_type: loads and returns the node type with a name, which the code of a frame uses
    :ivar report_twice: reports node types of a directory whose names are already taken
    """

    this_machine: Callable[[], Any]
    declare: Callable[[Any, Sequence[Any], Mapping[str, Any], Optional[FrameType]], Any]
    merge_graphs: Callable[..., Any]
    add_validators: Optional[Callable[[str, Mapping[str, Any]], None]] = None
    load_node_type: Callable[[str, Optional[FrameType]], Any]
    report_twice: Callable[[Iterable[str], str], None]

    def renamed(self, former: str, name: str) -> None:
        """Warn, on the controller, that the caller's caller uses a name until 0.3."""


above = Above()
