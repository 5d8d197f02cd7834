"""What a removal triggers: a resource that stays is restarted if a resource that configured it is removed."""

from __future__ import annotations

from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.orphans import Orphan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

SUFFIX = " (stays)"  # appended to the name of a resource that a removal triggers


class Kept(Orphan):
    """A resource whose real object stays on the host and that a removal triggers.

    It runs after all removals. Its node type decides what it does then (`NodeType.on_removal`).

    :param row: its record: type, module, attrs, position
    :param causes: the names of the nodes that trigger it
    :param near: name → removed node that it required; includes the causes
    """

    __slots__ = ("causes", "near")

    def __init__(self, row: Dict[str, Any], causes: Sequence[str], near: Mapping[str, Orphan]) -> None:
        Orphan.__init__(self, dict(row, state=""), row["name"] + SUFFIX)
        self.causes, self.near = list(causes), dict(near)
        self.triggers = tuple(causes)

    @property
    def note(self) -> str:
        """Always "": this run does not change the record."""
        return ""

    @property
    def debt(self) -> Dict[str, Any]:
        """What the ledger stores while the restart is owed; a later run creates a `Kept` from it."""
        return {key: self.row[key] for key in ("name", "type", "module", "attrs", "position", "tags")}


class Following:
    """The nodes that the removals of one run trigger.

    :param rows: the records of the resources that were managed before this run
    :param layers: the removals
    :param coming: the names of the other nodes of this run
    :param renamed: former name → present name
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        layers: Sequence[Sequence[Orphan]],
        coming: Collection[str],
        renamed: Mapping[str, str],
    ) -> None:
        going = {former.row["name"]: former for layer in layers for former in layer if former.heir is None}
        self.triggers: Dict[str, List[str]] = {}  # node of this run → removals that trigger it
        self.later: List[Tuple[str, str]] = []  # (resource that stays, its trigger); left to the next apply
        self.kept: List[Kept] = []
        for row in rows if going else ():
            # Records of 0.3.0 don't say which requirements trigger. An extra restart is safer than a missing one.
            named = row["requires"] if row["triggers"] is None else row["triggers"]
            near = {name: going[name] for name in row["requires"] if name in going and name != row["name"]}
            causes = [going[name].provides for name in named if name in near]
            name = renamed.get(row["name"], row["name"])
            if name in coming and row["name"] not in going:
                if causes:
                    self.triggers[name] = causes
            elif near:
                self.kept.append(Kept(dict(row), causes, {each.provides: each for each in near.values()}))

    def owe(self, owed: Iterable[Mapping[str, Any]]) -> None:
        """Add what earlier runs owe to resources that no longer have a node."""
        known = {node.provides for node in self.kept}
        for debt in owed:
            if debt["how"] and debt["node"] not in known:
                known.add(debt["node"])
                self.kept.append(Kept(dict(debt["how"], requires=[], triggers=[], claims=[]), [], {}))

    def settle(self, going: Collection[str]) -> None:
        """Drop the nodes whose type has no `on_removal`; those that stay are left to the next apply.

        Call this after all types are loaded.

        :param going: the names of the removed resources
        """
        able = []
        for node in self.kept:
            kind = REGISTRY.get(node.type)
            if kind is not None and "on_removal" in kind.methods:
                able.append(node)
            elif node.row["name"] not in going:
                self.later += [(node.row["name"], cause) for cause in node.causes]
        self.kept = able
