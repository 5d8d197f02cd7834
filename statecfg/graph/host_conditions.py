"""Conditions that a host checks at a node's turn: what `when_host` can contain, and what it needs."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyrsistent import PVector, pvector

from statecfg.graph import registry, schema
from statecfg.graph.types import Type, of_annotation
from statecfg.problems import problem, report, suggest
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.remote.graph.wrong_values import Wrong, in_quotes, show, type_words

Condition = Mapping[str, Any]

# Kind of condition → its other keys.
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "path": ("is", "contains"),
    "package": ("version",),
    "unit": (),
    "user": (),
    "group": (),
    "command": ("read_only", "reads"),
    "not": (),
    "any": (),
}
PATHS = ("file", "directory", "link")
ANNOTATIONS = {
    "path": "AbsolutePath",
    "contains": "Pattern",
    "package": "PackageName",
    "unit": "Name",
    "user": "UserName",
    "group": "GroupName",
    "command": "Argv | Text",
}
# Kind → the node type whose code reads what the condition asks for. A host with such a condition gets this node type.
READERS = {"package": "package", "unit": "service"}
DEEPEST = 10  # levels of `not` and `any`
MOST = 1000  # conditions of one node
REASON = "its condition"
_LIMIT = re.compile(r"\s*(==|!=|<=|>=|<|>)?\s*([0-9][A-Za-z0-9.+~:-]*)\s*\Z")
_EXAMPLE = "write a condition such as {path: /etc/nginx, is: directory} or {package: nginx}"


def checked(value: Any) -> PVector[Condition]:
    """Return the conditions of `when_host` in the form that hosts get: a list, all of which must be true.

    :raises Wrong: if one is invalid
    """
    conditions = _all(value, 0)
    if not conditions:
        raise Wrong("no condition", _EXAMPLE)
    if sum(1 for _ in _flat(conditions)) > MOST:
        raise Wrong(f"more than {MOST} conditions", "write a read-only command instead")
    return conditions


def of_block(value: Any, location: SourceLocation) -> PVector[Condition]:
    """Return the conditions of a block, for all nodes in it. Report wrong ones."""
    try:
        return checked(value)
    except Wrong as error:
        report(problem("SC0122", f"the `when_host` of a block contains {error}", error.help, location))
        return pvector()


def _all(value: Any, depth: int) -> PVector[Condition]:
    items = value if isinstance(value, list | tuple | PVector) else [value]
    return pvector([_condition(item, depth) for item in items])


def _condition(value: Any, depth: int) -> Condition:
    if not isinstance(value, Mapping):
        text = f"{type_words(value)}, not a condition: {show(value)}"
        path = isinstance(value, str) and value.startswith("/")
        raise Wrong(text, f"write {{path: {value}}}" if path else _EXAMPLE)
    if depth > DEEPEST:
        raise Wrong(f"`not` and `any` nested more than {DEEPEST} levels deep", "write a read-only command instead")
    written = {schema.plain(key): item for key, item in value.items()}
    condition_types = [key for key in written if key in CONDITIONS]
    if len(condition_types) != 1:
        unknown = next((key for key in written if not any(key in keys for keys in CONDITIONS.values())), "")
        if condition_types:
            raise Wrong(
                f"{' and '.join(f'`{condition_type}`' for condition_type in condition_types)} in one condition",
                "write a list of conditions",
            )
        raise Wrong("a condition without a kind", (unknown and suggest(unknown, CONDITIONS, "available")) or _EXAMPLE)
    (condition_type,) = condition_types
    if condition_type in READERS:
        registry.find(READERS[condition_type], NOWHERE)
    for key in written:
        if key != condition_type and key not in CONDITIONS[condition_type]:
            others = CONDITIONS[condition_type]
            hint = (
                suggest(key, others, f"`{condition_type}` takes")
                if others
                else f"`{condition_type}` takes no other keys"
            )
            raise Wrong(f"a condition with `{condition_type}` that has the key `{key}`", hint)
    _check_together(written)
    return MappingProxyType({key: _value(key, item, depth) for key, item in written.items()})


def _check_together(written: Mapping[str, Any]) -> None:
    """Check that a command is declared read-only with the paths that it reads, and that `contains` is used only for
    files."""
    if "command" not in written:
        if "contains" in written and written.get("is", "file") != "file":
            raise Wrong("`contains` in a condition for something that is not a file", "remove `is`")
        return
    if written.get("read_only") is not True:
        text = "plans run it as well: if it changes nothing, write read_only: true"
        raise Wrong("a condition with a command that is not declared read-only", text)
    if "reads" not in written:
        text = "write reads: [PATH, …], or reads: [] if it reads nothing that the nodes of this playbook change"
        raise Wrong("a condition with a command without `reads`", text)


def _value(key: str, value: Any, depth: int) -> Any:
    if key in ("not", "any"):
        if key == "any" and not isinstance(value, list | tuple | PVector):
            raise Wrong("`any` without a list", "write any: [CONDITION, CONDITION]")
        conditions = _all(value, depth + 1)
        if not conditions:
            raise Wrong(f"`{key}` without a condition", _EXAMPLE)
        return conditions
    if key == "is":
        if value not in PATHS:
            hint = "write not: {path: …}" if value in ("absent", "missing") else f"it is one of {', '.join(PATHS)}"
            raise Wrong(f"`is` with the value {show(value)}", hint)
        return value
    if key == "version":
        return _limits(value)
    if key == "read_only":
        return value
    if key == "reads":
        paths = value if isinstance(value, list | tuple | PVector) else [value]
        return pvector([typed("path", path, key) for path in paths])
    value = typed(key, value, key)
    if key == "unit":
        from statecfg.resources.services.systemd import unit_name

        return unit_name(value)
    if key == "command":
        return pvector(["/bin/sh", "-c", value] if isinstance(value, str) else value)
    return value


@functools.cache
def accepted(key: str) -> Type:
    """Return the type of the values of a key in `ANNOTATIONS`."""
    return of_annotation(ANNOTATIONS[key], schema.NAMES)


def typed(key: str, value: Any, name: str) -> Any:
    try:
        return accepted(key).check(value)
    except ValueError as error:
        detail = str(error)
        shown = "" if show(value) in detail else f" {show(value)}:"
        raise Wrong(f"`{name}` with the value{shown} {detail}", getattr(error, "help", "")) from None


def _limits(value: Any) -> str:
    """Return limits of a version in the form `OPERATOR VERSION, …`."""
    if not isinstance(value, str):
        raise Wrong(f"`version` with the value {show(value)}", in_quotes(value) or 'write version: ">= 1.22"')
    limits = []
    for text in value.split(","):
        match = _LIMIT.match(text)
        if match is None:
            raise Wrong(f"`version` with the value {show(value)}", 'write limits such as ">= 1.22" or ">= 1.22, < 2"')
        limits.append(f"{match.group(1) or '=='} {match.group(2)}")
    return ", ".join(limits)


def _flat(conditions: Sequence[Condition]) -> Iterator[Condition]:
    """Yield conditions and those that they contain."""
    for condition in conditions:
        yield condition
        for key in ("not", "any"):
            yield from _flat(condition.get(key, ()))


def needs(conditions: Sequence[Condition]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of what the conditions look at; see `NodeType.needs`."""
    for condition in _flat(conditions):
        for condition_type in ("path", "package", "unit", "user", "group"):
            if condition_type in condition:
                yield condition_type, condition[condition_type]
        if "command" in condition:
            yield "program", condition["command"][0]
            for path in condition["reads"]:
                yield "path", path


def of_options(options: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions in the options of a node, also those of each item of `for_each_host`."""
    return [*options.get("when_host", ()), *options.get("for_each_host", {}).get("when", ())]


def readers(options: Mapping[str, Any]) -> set[str]:
    """Return the names of the node types that a host needs for the conditions and items of a node; see `READERS`."""
    found = {
        READERS[condition_type]
        for condition in _flat(of_options(options))
        for condition_type in READERS
        if condition_type in condition
    }
    return {*found, "mount"} if "mounts" in options.get("for_each_host", ()) else found
