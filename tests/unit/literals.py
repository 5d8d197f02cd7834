"""Find the strings that code uses as an outcome, a status, a mode, a state or an event."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from statecfg.remote.graph import names
from tests.unit.sources import walk

# What has one of these names (a variable, parameter, attribute or key) has such a value.
NAMED = {
    "outcome": names.Outcome.ALL,
    "status": (*names.HostStatus.ALL, *names.ActionStatus.ALL, *names.HookStatus.ALL, *names.RunStatus.ALL),
    "mode": names.Mode.ALL,
    "state": (*names.State.ALL, *names.RunStatus.ALL),
    "phase": names.ResourceEvent.ALL,
    "event": names.ResourceEvent.ALL,
}
# A collection with some of one of these lists, and nothing else, is such a list.
LISTS = [frozenset(found.ALL) for found in vars(names).values() if isinstance(found, type) and hasattr(found, "ALL")]
# The types of the nodes that may contain such strings.
USES = (ast.Compare, ast.Assign, ast.AnnAssign, ast.Dict, ast.Call, ast.FunctionDef, ast.Tuple, ast.List, ast.Set)
Parameters = Mapping[str, Mapping[int, set[str]]]  # function → position of a parameter → its names in `NAMED`


def literals(uses: Sequence[ast.AST], positions: Parameters) -> Iterator[tuple[int, str]]:
    """Yield the strings that code uses as an outcome, a status, a mode, a state or an event.

    :param uses: nodes of the types in `USES`
    """
    for node in uses:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            expected = {name for side in sides for name in NAMED.get(last_word(side), ())}
            strings = [inner for side in sides for inner in walk(side) if isinstance(inner, ast.Constant)]
            yield from ((inner.lineno, str(inner.value)) for inner in strings if inner.value in expected)
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            words = [item.value if isinstance(item, ast.Constant) else None for item in node.elts]
            if len(words) > 1 and any(known.issuperset(words) for known in LISTS):
                yield node.lineno, ", ".join(map(str, words))
        else:
            for word, value in values(node, positions):
                yield from (
                    (one.lineno, str(one.value)) for one in constants(value) if one.value in NAMED.get(word, ())
                )


def values(node: ast.AST, positions: Parameters) -> Iterator[tuple[str, ast.expr]]:
    """Yield the values that a node gives to something, with the name of that."""
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from assigned(target, node.value)
        case ast.AnnAssign(value=ast.expr()):
            yield last_word(node.target), node.value
        case ast.Dict():
            yield from (
                (str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True)
            )
        case ast.Call():
            yield from ((str(keyword.arg), keyword.value) for keyword in node.keywords)
            known = positions.get(last_word(node.func), {})
            yield from ((word, value) for at, value in enumerate(node.args) for word in known.get(at, ()))
        case ast.FunctionDef():
            positional = [*node.args.posonlyargs, *node.args.args]
            defaults = [*zip(positional[::-1], node.args.defaults[::-1], strict=False)]
            defaults += [
                (one, value) for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value
            ]
            yield from ((parameter.arg, value) for parameter, value in defaults)


def assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part_of_value in zip(target.elts, value.elts, strict=False):
            yield from assigned(one, part_of_value)
    else:
        yield last_word(target), value


def constants(value: ast.expr) -> Iterator[ast.Constant]:
    """Yield the constants that an expression can be."""
    match value:
        case ast.Constant():
            yield value
        case ast.IfExp():
            yield from (*constants(value.body), *constants(value.orelse))
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for one in parts:
                yield from constants(one)


def parameters(definitions: Sequence[ast.FunctionDef | ast.ClassDef]) -> Parameters:
    """Return the positions of parameters with names in `NAMED`, for all functions, methods and classes."""
    found: dict[str, dict[int, set[str]]] = {}
    for one in definitions:
        starts = [inner for inner in one.body if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"]
        for function in [one] if isinstance(one, ast.FunctionDef) else starts:
            words = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
            for at, word in enumerate(words[words[:1] in (["self"], ["cls"]) :]):
                if word in NAMED:
                    found.setdefault(one.name, {}).setdefault(at, set()).add(word)
    return found


def last_word(side: ast.expr) -> str:
    """Return the name, attribute or key that an expression reads, such as `status` in `host["status"]`."""
    match side:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
        case ast.Subscript(slice=ast.Constant(value=str(word))):
            return word
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(word)), *_]):
            return word
    return ""
