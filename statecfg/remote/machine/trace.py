"""What a node looked at and touched on the planned machine."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Hashable, Sequence, Set

ALL = "*"


class Trace:
    """What one node looked at and touched on the imagined machine.

    Paths are canonical; a file is also known by its device and inode, since it may have several names.

    :param looked: paths and inodes that were looked at
    :param asked: (facet, key) that were asked for; (facet, "*") for a whole facet, ("*", "*") for anything at all
    :param touched: paths and inodes that the node's actions change
    :param effects: (facet, key) that they change; (facet, "*") where it is unknown which
    """

    __slots__ = ("asked", "effects", "looked", "touched")

    def __init__(self) -> None:
        self.looked: Set[Hashable] = set()
        self.asked: Set[Sequence[str]] = set()
        self.touched: Set[Hashable] = set()
        self.effects: Set[Sequence[str]] = set()
