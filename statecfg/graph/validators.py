"""Validators by attribute name: `validator-maker` and `make-validators` of the Borg document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong

# A predicate, then functions that transform a value that satisfies it, in this order.
Clause = Sequence[Callable[[Any], Any]]
_MODULES: dict[str, dict[str, list[Clause]]] = {}


def add_validators(module: str, clauses: Mapping[str, Sequence[Clause]]) -> None:
    """Define validators for attributes of the node types of a module.

    :param module: the module's `__name__`
    :param clauses: attribute name → clauses. They are added to earlier clauses of the attribute; a value passes through
        all of them in order
    """
    by_attribute = _MODULES.setdefault(module, {})
    for attribute, more in clauses.items():
        by_attribute.setdefault(attribute.replace("-", "_"), []).extend(more)


def of(module: str) -> Mapping[str, Sequence[Clause]]:
    """Return the validators of a module by attribute name. Later definitions appear in the returned map."""
    return _MODULES.setdefault(module, {})


def forget(module: str) -> None:
    """Delete the validators of a module before it is loaded again."""
    _MODULES.pop(module, None)


def apply(clauses: Sequence[Clause], value: Any) -> Any:
    """Return the value after all clauses.

    :raises Wrong: a predicate refuses the value; the message names the predicate
    """
    for predicate, *transforms in clauses:
        if not predicate(value):
            raise Wrong(f"not accepted by {name_of(predicate)}")
        for transform in transforms:
            value = transform(value)
    return value


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a predicate: its source text if known, otherwise its `__name__`."""
    written = getattr(function, "written", None) or getattr(function, "__name__", None) or repr(function)
    return str(written)
