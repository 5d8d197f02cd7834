"""What is declared while a play is evaluated: its nodes, their variables, and labels and conditions of blocks."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statecfg.graph import host_conditions, layers, opaque
from statecfg.graph.host_conditions import Condition
from statecfg.graph.nodes import MAX_NODES, Node, RoleUse
from statecfg.graph.references import LOOP
from statecfg.problems import InvalidInput, TooLarge, positions, problem
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show, type_words

if TYPE_CHECKING:
    from statecfg.remote.graph.values import HostCondition

Origins = Mapping[str, tuple[str, SourceLocation]]


class RecordedNodes(list[Node]):
    """The nodes that were declared.

    :param play: the name of the play that declares them; "" for none
    :ivar labels: the labels that were used, also if no node has them
    :ivar depths: node name → the length of the longest known chain that ends with it; nodes that require nothing
        are left out
    :ivar heights: name of a node that is not declared yet → the length of the longest known chain that requires it
    """

    def __init__(self, play: str = "") -> None:
        super().__init__()
        self.play = play
        self.labels: set[str] = set()
        self.depths: dict[str, int] = {}
        self.heights: dict[str, int] = {}

    def add(self, node: Node) -> None:
        """Add a node.

        :raises TooLarge: there are too many nodes, or the chain of requirements is too long. The evaluation of the
            rest of such a definition could take minutes
        """
        if len(self) > MAX_NODES:
            raise TooLarge([layers.too_many(len(self), node.position)])
        if node.requires:
            depth = 1 + max(self.depths.get(name, 1) for name in node.requires)
            height = 1 + self.heights.pop(node.provides, 0)
            if depth + height > layers.MAX_LAYERS + 1:
                raise TooLarge([layers.too_deep(node)])
            self.depths[node.provides] = depth
            for name in node.requires:
                if name not in self.depths:
                    self.heights[name] = max(height, self.heights.get(name, 0))
        self.append(node)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Variables that a role or an included file adds.

    :param name: what adds them, such as ``role web``
    :param values: by the name of the variable
    :param origins: how each value came about, such as ``passed``, and its source location
    :param outer: the scope around it that it sees; None for the play
    :param play: the name of the play
    """

    name: str
    values: Mapping[str, Any]
    origins: Origins
    outer: Scope | None = None
    play: str = ""


_RECORDED: ContextVar[RecordedNodes | None] = ContextVar("nodes declared", default=None)
_LABELS: ContextVar[tuple[str, ...]] = ContextVar("labels of declared nodes", default=())
_CONDITIONS: ContextVar[tuple[Condition, ...]] = ContextVar("conditions of declared nodes", default=())
_ROLE: ContextVar[RoleUse | None] = ContextVar("role of declared nodes", default=None)
_SCOPES: ContextVar[list[Scope] | None] = ContextVar("scopes of variables", default=None)


@contextlib.contextmanager
def scopes(wanted: bool) -> Iterator[list[Scope]]:
    """Collect the scopes of variables in the block.

    :param wanted: false: collect nothing, because only explanations need the scopes
    """
    found: list[Scope] = []
    token = _SCOPES.set(found if wanted else None)
    try:
        yield found
    finally:
        _SCOPES.reset(token)


def scope(name: str, values: Mapping[str, Any], origins: Origins, outer: Scope | None) -> Scope | None:
    """Record a scope if they are collected, and return it; otherwise return None. See `Scope`."""
    found, recorded = _SCOPES.get(), _RECORDED.get()
    if found is None:
        return None
    found.append(Scope(name, values, origins, outer, recorded.play if recorded is not None else ""))
    return found[-1]


@contextlib.contextmanager
def recording(play: str = "") -> Iterator[RecordedNodes]:
    """Collect every node declared in the block, so that the caller can report nodes that are in no graph.

    :param play: the name of the play that is evaluated
    """
    nodes = RecordedNodes(play)
    token = _RECORDED.set(nodes)
    try:
        yield nodes
    finally:
        _RECORDED.reset(token)


def current() -> RecordedNodes | None:
    """Return where the nodes of this block are collected; None if they are not collected."""
    return _RECORDED.get()


def labels() -> tuple[str, ...]:
    """Return the labels of the blocks of `label` around the caller."""
    return _LABELS.get()


def role() -> RoleUse | None:
    """Return the role whose function is running; None if there is none."""
    return _ROLE.get()


@contextlib.contextmanager
def within(use: RoleUse, inner: tuple[str, ...]) -> Iterator[None]:
    """Give all nodes that the block declares a role and labels.

    :param inner: the labels in addition to those of the blocks around this one
    """
    tokens = _ROLE.set(use), _LABELS.set((*_LABELS.get(), *inner))
    try:
        yield
    finally:
        _ROLE.reset(tokens[0])
        _LABELS.reset(tokens[1])


def conditions() -> tuple[Condition, ...]:
    """Return the conditions of the blocks of `when_host` around the caller."""
    return _CONDITIONS.get()


@contextlib.contextmanager
def deciding(more: Iterable[Condition]) -> Iterator[None]:
    """Give all nodes that the block declares conditions, which were checked."""
    token = _CONDITIONS.set((*_CONDITIONS.get(), *more))
    try:
        yield
    finally:
        _CONDITIONS.reset(token)


def when_host(condition: HostCondition | Sequence[HostCondition]) -> contextlib.AbstractContextManager[None]:
    """Give conditions to all nodes that the block declares: `with when_host({"package": "nginx"}):`.

    :raises InvalidInput: a condition is wrong
    """
    return deciding(host_conditions.of_block(condition, positions.of_frame(sys._getframe(1))))


def known_label(text: str) -> None:
    """Record a label with its kind, so that requirements can refer to it even if no node has it."""
    recorded = _RECORDED.get()
    if recorded is not None:
        recorded.labels.add(text)


@contextlib.contextmanager
def label(name: str) -> Iterator[None]:
    """Give a label to all nodes that the block declares: `requires=["loop:NAME"]` requires all of them.

    :raises InvalidInput: the name is not text, is empty or contains a secret
    """
    if not isinstance(name, str) or not name or opaque.would_show_secret(name):
        location = positions.of_frame(sys._getframe(2))  # between this frame and the caller's is one of contextlib
        detail = f"a label is {type_words(name)}: {show(name)}"
        raise InvalidInput([problem("SC0108", detail, 'write a name that is not secret: label("sites")', location)])
    text = f"{LOOP}{name}"
    known_label(text)
    token = _LABELS.set((*_LABELS.get(), text))
    try:
        yield
    finally:
        _LABELS.reset(token)
