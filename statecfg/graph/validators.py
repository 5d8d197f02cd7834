"""Validators by attribute name: `validator-maker` and `make-validators` of the Borg document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.graph.json_schema import JsonSchema
from statecfg.remote.graph.wrong_values import Wrong

# A predicate, then functions that transform a value that satisfies it, in this order.
Clause = Sequence[Callable[[Any], Any]]
# Predicate → the type of the values in JSON that satisfy it; "" for none, because the attribute can be omitted instead.
_JSON = {
    "string?": "string",
    "keyword?": "string",
    "number?": "number",
    "true?": "boolean",
    "false?": "boolean",
    "map?": "object",
    "seq?": "array",
    "nil?": "",
}
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


def json_schema(clauses: Sequence[Clause]) -> JsonSchema:
    """Return the JSON Schema of the values that the predicates of an attribute accept; {} if they are not known."""
    for predicate, *_ in clauses:
        words = name_of(predicate).strip("()").split()
        options = [_JSON.get(word) for word in words if word != "some-fn"]
        if None not in options:
            types = list(dict.fromkeys(option for option in options if option))
            return {"type": types[0]} if len(types) == 1 else {"anyOf": [{"type": item} for item in types]}
    return {}


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a predicate: its source text if known, otherwise its `__name__`."""
    written = getattr(function, "written", None) or getattr(function, "__name__", None) or repr(function)
    return str(written)
