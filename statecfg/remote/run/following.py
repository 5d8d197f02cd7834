"""What a removal triggers: what stays on the host is restarted when something goes that it was configured by."""

from __future__ import annotations

from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.orphans import Orphan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

SUFFIX = " (stays)"  # ends the name of a resource that answers a removal


class Kept(Orphan):
    """A resource whose real thing stays while something goes that triggers it.

    It takes its turn after all removals. Its node type says what it does then (`NodeType.on_removal`).

    :param row: its record: type, module, attrs, position
    :param causes: the nodes that trigger it, by name
    :param near: the nodes that go and that it required, by name; the causes are among them
    """

    __slots__ = ("causes", "near")

    def __init__(self, row: Dict[str, Any], causes: Sequence[str], near: Mapping[str, Orphan]) -> None:
        Orphan.__init__(self, dict(row, state=""), row["name"] + SUFFIX)
        self.causes, self.near = list(causes), dict(near)
        self.triggers = tuple(causes)

    @property
    def note(self) -> str:
        """Nothing is to be said of its record, which is not touched."""
        return ""

    @property
    def debt(self) -> Dict[str, Any]:
        """What the ledger keeps of it while its restart is owed; `Kept` is made again of it."""
        return {key: self.row[key] for key in ("name", "type", "module", "attrs", "position", "tags")}


class Following:
    """The answers to the removals of one run.

    :param rows: what the playbook had under management before this run, by name
    :param layers: what goes
    :param coming: the names of the nodes that this run looks at beside
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
        self.triggers: Dict[str, List[str]] = {}  # node of this run → what goes and triggers it
        self.later: List[Tuple[str, str]] = []  # resource that stays, what triggers it: the next apply answers it
        self.kept: List[Kept] = []
        for row in rows if going else ():
            # Records of 0.3.0 don't say which requirements trigger. One restart too many is the safer mistake.
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
        """Take in what earlier runs owe to resources that have no node any more."""
        known = {node.provides for node in self.kept}
        for debt in owed:
            if debt["how"] and debt["node"] not in known:
                known.add(debt["node"])
                self.kept.append(Kept(dict(debt["how"], requires=[], triggers=[], claims=[]), [], {}))

    def settle(self, going: Collection[str]) -> None:
        """Leave out what can't answer a removal: what stays of it does so in the next apply. The types are loaded.

        :param going: the names of what goes
        """
        able = []
        for node in self.kept:
            kind = REGISTRY.get(node.type)
            if kind is not None and "on_removal" in kind.methods:
                able.append(node)
            elif node.row["name"] not in going:
                self.later += [(node.row["name"], cause) for cause in node.causes]
        self.kept = able
