"""Secrets that are read when something first needs their value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyrsistent import PVector

from statecfg.graph import opaque, schema
from statecfg.graph.opaque import Secret
from statecfg.graph.value import Value
from statecfg.problems import Problem, problem, tokens
from statecfg.problems.masked_logs import mask_logs
from statecfg.remote.graph.nodetype import REGISTRY

if TYPE_CHECKING:
    from statecfg.graph.nodes import Node


class LaterSecret(Secret):
    """A secret whose value is read when it is first needed, so that a run asks only for passwords that it needs.

    :param name: its name in reports
    :param read: returns the secret with the value, the same each time. If the value can't be read, it reports the
        problem each time and returns a placeholder
    """

    __slots__ = ("__read", "known")

    def __init__(self, name: str, read: Callable[[], Secret]) -> None:
        self.name, self.token = name, tokens.new_token()
        self.__read = read
        self.known = False
        tokens.register(self)
        mask_logs()

    @property
    def available(self) -> bool:  # type: ignore[override]  # a property in place of an attribute
        """Whether its value can be read. This reads it."""
        return self._now().available

    def reveal(self) -> str:
        """Read the value and return it, and record its use for `recording`."""
        return self._now().reveal()

    def _bare(self) -> str:
        return self._now()._bare()

    def _now(self) -> Secret:
        found = self.__read()
        self.known = True
        return found


def problems(node: Node) -> Iterator[Problem]:
    """Read the secrets of a node that were not read before, and yield a problem for each invalid value."""
    node_type = REGISTRY.get(node.type)
    if node_type is None:
        return
    unread = [(name, value) for name, value in node.attrs.items() if not _known(value)]
    for name, value in unread:
        opaque.revealed(value, [])
        field = schema.of(node_type).fields.get(name)
        try:
            if field is not None:
                field.type.check(value)
        except ValueError as error:
            detail = f"`{name}` of {node.provides}: {error}"
            yield problem("SC0202", detail, getattr(error, "help", ""), *node.positions)


def _known(value: Any) -> bool:
    """Return whether all secrets in an attribute were read."""
    if isinstance(value, (Mapping, list, tuple, PVector)):
        return all(map(_known, value.values() if isinstance(value, Mapping) else value))
    return value.known if isinstance(value, Value) else True
