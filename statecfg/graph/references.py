"""References to many nodes in `requires` and `restart_on`: patterns, tags, loops and included files."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from pyrsistent import PVector, pvector

from statecfg.graph import globs
from statecfg.graph.nodes import Node
from statecfg.problems import Problem, nearest, problem, suggest
from statecfg.problems.positions import SourceLocation, Written
from statecfg.remote.graph.suggestions import question

TAG, INCLUDE, LOOP = "tag:", "include:", "loop:"
GROUP_PREFIXES = (TAG, INCLUDE, LOOP)
# The requirements of a graph that references may expand to. Each costs about 200 bytes here and in what a host gets.
MAX_EXPANDED = 1_000_000
MAX_COMPARED = 20_000_000  # names that the patterns of a graph may be compared with
MAX_SUGGESTED = 20_000  # names that are searched for a suggestion
MAX_STARTS = 8  # similar starts of names that are tried
_AFTER_ALL = "\U0010ffff"


class Matched(str):
    """The name of a node that a reference matches.

    :ivar reference: the reference; with its source location (`Written`) if the dialect provides it
    """

    __slots__ = ("reference",)

    reference: str

    def __new__(cls, name: str, reference: str) -> Matched:
        """Attach a reference to a name."""
        matched = super().__new__(cls, name)
        matched.reference = reference
        return matched


def is_reference(name: str) -> bool:
    """Return whether a requirement refers to many nodes, unless a node has this name."""
    return "*" in name or name.startswith(GROUP_PREFIXES)


def location_of(name: str) -> SourceLocation | None:
    """Return the source location of a requirement, or of the reference that matched it; None if it is unknown."""
    written = name.reference if isinstance(name, Matched) else name
    return written.location if isinstance(written, Written) else None


def expand(nodes: list[Node], known: Callable[[], Iterable[str]]) -> tuple[list[Node], list[Problem]]:
    """Return the nodes with the names of the matching nodes instead of references, and problems.

    A node does not match its own references. A reference that matches nothing stays, and `unmatched` describes it. This
    takes linear time, apart from sorting the names.

    :param nodes: all nodes of a graph
    :param known: returns the labels that need not match a node
    """
    names = {node.provides: node for node in nodes}
    if not any(is_reference(name) and name not in names for node in nodes for name in node.requires):
        return nodes, []
    expansion = _Expansion(names, frozenset(known()))
    return [expansion.expanded(node) for node in nodes], expansion.problems


class _Expansion:
    """Expands the references of one graph. It computes each reference once."""

    def __init__(self, nodes: Mapping[str, Node], known: frozenset[str]) -> None:
        self.nodes, self.known = nodes, known
        self.problems: list[Problem] = []
        self._index = _Index(nodes.values())
        self._lists: dict[tuple[str, SourceLocation | None], list[Matched]] = {}
        self._expanded = 0

    def expanded(self, node: Node) -> Node:
        """Return a node without references, apart from those that match nothing."""
        if not any(is_reference(name) and name not in self.nodes for name in node.requires):
            return node
        triggers = self._names(node, node.triggers) if node.triggers else node.triggers
        return node.replace(requires=self._names(node, node.requires), triggers=triggers)

    def _names(self, node: Node, written: PVector[str]) -> PVector[str]:
        names: dict[str, str] = {}
        for name in written:
            if name in self.nodes or not is_reference(name):
                names[name] = name  # a name is also better than a reference that matched the same node before
                continue
            matched = self._list(name)
            self._expanded += len(matched)
            if self._expanded > MAX_EXPANDED or self._index.compared > MAX_COMPARED:
                self._refuse(node, name)
            elif not any(item != node.provides for item in matched) and name not in self.known:
                names[name] = name
            else:
                for item in matched:
                    if item != node.provides:
                        names.setdefault(item, item)
        return pvector(names.values())

    def _list(self, reference: str) -> list[Matched]:
        key = str.__str__(reference), location_of(reference)
        if key not in self._lists:
            self._lists[key] = [Matched(name, reference) for name in self._index.matching(key[0])]
        return self._lists[key]

    def _refuse(self, node: Node, name: str) -> None:
        if self.problems:
            return
        detail = f"the references of this graph match more than {MAX_EXPANDED:,} requirements"
        help_text = "refer to fewer nodes, or to one node that requires the others"
        if self._index.compared > MAX_COMPARED:
            detail = f"the patterns of this graph are compared with more than {MAX_COMPARED:,} names"
            help_text = "write more text before the first `*`, or use `tag:NAME`"
        self.problems.append(
            problem("SC0115", f"{detail}; one is {name}", help_text, location_of(name) or node.position)
        )


class _Index:
    """Finds nodes by prefix, tag and label.

    :ivar compared: how many names were compared with patterns
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.compared = 0
        self._nodes = nodes
        self._sorted: list[str] = []
        self._groups: dict[str, list[str]] | None = None
        self._found: dict[str, Sequence[str]] = {}

    def matching(self, reference: str) -> Sequence[str]:
        """Return the names of the nodes that a reference matches."""
        if reference not in self._found:
            grouped = reference.startswith(GROUP_PREFIXES)
            self._found[reference] = self._grouped(reference) if grouped else self._globbed(reference)
        return self._found[reference]

    def _grouped(self, reference: str) -> Sequence[str]:
        if self._groups is None:
            self._groups = {}
            for node in self._nodes:
                for group in groups(node):
                    self._groups.setdefault(group, []).append(node.provides)
        return self._groups.get(reference, ())

    def _globbed(self, pattern: str) -> Sequence[str]:
        self._sorted = self._sorted or sorted(node.provides for node in self._nodes)
        start = globs.prefix(pattern)
        first, last = bisect_left(self._sorted, start), bisect_right(self._sorted, start + _AFTER_ALL)
        self.compared += last - first
        if self.compared > MAX_COMPARED:
            return ()
        matches = globs.compiled(pattern).match
        return [name for name in self._sorted[first:last] if matches(name)]


def groups(node: Node) -> Iterable[str]:
    """Return the references to groups that contain a node."""
    return dict.fromkeys(chain((f"{TAG}{tag}" for tag in node.options.get("tags") or ()), node.labels))


def unmatched(node: Node, reference: str, names: Mapping[str, Node], suggestions: bool = True) -> Problem:
    """Return the problem of a reference that matches no other node.

    :param names: all nodes of the graph by name
    :param suggestions: whether to search for references that were probably meant
    """
    grouped = reference.startswith(GROUP_PREFIXES)
    detail = f"{node.provides} requires {reference}, and no {_what(reference)}"
    help_text = ""
    if reference in groups(node) if grouped else globs.compiled(reference).match(node.provides):
        detail = f"{node.provides} requires {reference}, which matches only {node.provides} itself"
        help_text = "remove it, or refer to other nodes"
    elif suggestions:
        help_text = _other_group(reference, names.values()) if grouped else _other_pattern(reference, node, names)
    location = location_of(reference)
    return problem("SC0111", detail, help_text, *((location,) if location is not None else node.positions))


_MISSING = {
    TAG: "give nodes this tag: `tags: [NAME]`",
    INCLUDE: "write the name as in the `include:` entry",
    LOOP: "give the entry with `for_each` this label: `label: NAME`",
}


def _what(reference: str) -> str:
    prefix, _, name = reference.partition(":")
    if prefix == "tag":
        return f"node of the graph has the tag {name}"
    if prefix == "include":
        return f"`include:` of the playbook names {name}"
    return (
        f"loop of the playbook has the label {name}" if prefix == "loop" else "node of the graph has a name like that"
    )


def _other_group(reference: str, nodes: Iterable[Node]) -> str:
    prefix = reference.partition(":")[0] + ":"
    valid = {group for node in nodes for group in groups(node) if group.startswith(prefix)}
    return suggest(reference, sorted(valid), "available") or _MISSING[prefix]


def _other_pattern(pattern: str, node: Node, names: Mapping[str, Node]) -> str:
    """Return a help text with a pattern that matches and whose fixed start is similar, or with names of the type."""
    start = globs.prefix(pattern)
    others = [name for name in names if name != node.provides]
    if start and len(others) <= MAX_SUGGESTED:
        starts = {name[: len(start) + change] for name in others for change in (-2, -1, 0, 1, 2)}
        for similar in nearest(start, starts - {start}, most=MAX_STARTS):
            meant = similar + pattern[len(start) :]
            if any(map(globs.compiled(meant).match, others)):
                return question([meant])
    node_type = pattern.partition(":")[0] + ":"
    same_type = [name for name in others if name.startswith(node_type)]
    return suggest(pattern, sorted(same_type or others), "available")
