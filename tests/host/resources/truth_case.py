"""A case of a node type, which tests run on hosts in four states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from statecfg.graph.graph import Graph
from tests.lab import Host


@dataclass(frozen=True)
class Case:
    """A case of one node type.

    `declare(root, requires)` returns its graphs; `bare(host, root)` prepares a bare host; `drift(host, root)` changes
    the host by hand; `done(host, root)` stops what `bare` started, because the next cases use the same host.
    """

    type: str
    declare: Callable[[str, list[Graph]], list[Graph]]
    drift: Callable[[Host, str], None]
    bare: Callable[[Host, str], None] = lambda host, root: None
    known_after: Sequence[str] = field(default=())
    done: Callable[[Host, str], None] = lambda host, root: None
