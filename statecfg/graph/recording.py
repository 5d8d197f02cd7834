"""What is declared while a play is evaluated: its nodes, and the labels of loops and included files."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

from statecfg.graph import opaque
from statecfg.graph.nodes import Node, RoleUse
from statecfg.graph.references import LOOP
from statecfg.problems import InvalidInput, positions, problem
from statecfg.remote.graph.wrong_values import show, type_words


class Recorded(list[Node]):
    """The nodes that were declared.

    :ivar labels: the labels that were used, also if no node has them
    """

    def __init__(self) -> None:
        super().__init__()
        self.labels: set[str] = set()


_RECORDED: ContextVar[Recorded | None] = ContextVar("nodes declared", default=None)
_LABELS: ContextVar[tuple[str, ...]] = ContextVar("labels of declared nodes", default=())
_ROLE: ContextVar[RoleUse | None] = ContextVar("role of declared nodes", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Recorded]:
    """Collect every node declared in the block, so that the caller can report nodes that are in no graph."""
    nodes = Recorded()
    token = _RECORDED.set(nodes)
    try:
        yield nodes
    finally:
        _RECORDED.reset(token)


def current() -> Recorded | None:
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
