"""Validators by attribute name, as the Borg document's `validator-maker` and `make-validators` define them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.values import Wrong

# A predicate and what is done, one after another, to a value that satisfies it.
Clause = Sequence[Callable[[Any], Any]]
_MODULES: dict[str, dict[str, list[Clause]]] = {}


def add_validators(module: str, clauses: Mapping[str, Sequence[Clause]]) -> None:
    """Define validators for attributes of the node types of a module.

    :param module: the module's `__name__`
    :param clauses: attribute name → clauses; a clause is a predicate, then transformations of a value that passed
        it. Clauses of an attribute that has some already are added: a value goes through all of them in order
    """
    known = _MODULES.setdefault(module, {})
    for attribute, more in clauses.items():
        known.setdefault(attribute.replace("-", "_"), []).extend(more)


def of(module: str) -> Mapping[str, Sequence[Clause]]:
    """Return the validators of a module by attribute name; it follows later definitions."""
    return _MODULES.setdefault(module, {})


def forget(module: str) -> None:
    """Drop the validators of a module that is about to be loaded again."""
    _MODULES.pop(module, None)


def apply(clauses: Sequence[Clause], value: Any) -> Any:
    """Return the value after all clauses. Raises `Wrong`, naming the predicate, where one does not hold."""
    for predicate, *transforms in clauses:
        if not predicate(value):
            raise Wrong(f"not what {name_of(predicate)} accepts")
        for transform in transforms:
            value = transform(value)
    return value


def name_of(function: Callable[..., Any]) -> str:
    """Return what a predicate is called: as its author wrote it where that is known."""
    written = getattr(function, "written", None) or getattr(function, "__name__", None) or repr(function)
    return str(written)
