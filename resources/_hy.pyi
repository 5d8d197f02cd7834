# Made from the code by script/docs: the node types in Hy, for type checkers.
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from statecfg import NodeOptions, node_type

__all__ = ["process"]

@node_type
def process(
    pathname: str,
    *,
    user: str,
    group: str,
    env: Mapping[str, Any],
    args: Sequence[Any],
    hyx_blockXquestion_markX: bool | None = ...,
    absent: bool | None = ...,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a process: a program that runs with these arguments, as this user, in this environment."""
