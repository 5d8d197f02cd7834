"""Decisions at a node's turn: check the conditions of `when_host` on the machine as the node's turn finds it.

Only hosts whose definitions contain conditions get this module.
"""

from __future__ import annotations

import os
import re
from typing import Any, List, Mapping, Optional, Sequence

from statecfg.remote.graph.model import CheckError, Excluded, Unknown
from statecfg.remote.machine.paths import LINKS
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.world import called

Condition = Mapping[str, Any]

# The parts of a version in the order in which Debian and RPM compare them: text and numbers take turns.
_PARTS = re.compile(r"([^0-9]*)([0-9]*)")
_END = 1  # the weight of the end of a string: only `~` weighs less


def require(conditions: Sequence[Condition], world: Planned) -> None:
    """Check the conditions of a node, in their order, up to the first one that is false.

    :param conditions: as `statecfg.graph.host_conditions` returns them
    :raises Excluded: if one is false
    :raises Unknown: if it can't be known yet whether one is true
    :raises CheckError: if one can't be checked
    """
    for condition in conditions:
        try:
            true = holds(condition, world)
        except OSError as problem:
            why = problem.strerror or str(problem)
            raise CheckError(f"its condition can't be checked: {statement(condition)}: {why}") from None
        if not true:
            raise Excluded(f"its condition is false: {statement(condition)}")


def holds(condition: Condition, world: Planned) -> bool:
    """Tell whether a condition is true; see `require`."""
    if "not" in condition:
        return not every(condition["not"], world)
    if "any" in condition:
        return some(condition["any"], world)
    if "path" in condition:
        return _path(condition, world)
    if "package" in condition:
        return _package(condition["package"], condition.get("version", ""), world)
    for identity_type in ("unit", "user", "group"):
        if identity_type in condition:
            return world.entry(identity_type + "s", condition[identity_type]) is not None
    probe = world.probe(condition["command"], inputs=("files", [world.canonical(path) for path in condition["reads"]]))
    if probe.status < 0:  # neither yes nor no
        why = probe.errors.decode("utf-8", "replace").strip()[-500:] or "it was stopped"
        raise CheckError(f"its condition can't be checked: {statement(condition)}: {why}")
    return probe.status == 0


def every(conditions: Sequence[Condition], world: Planned) -> bool:
    """Tell whether all conditions are true. One that is false decides, even if others can't be known yet."""
    return not _one(False, conditions, world)


def some(conditions: Sequence[Condition], world: Planned) -> bool:
    """Tell whether one of the conditions is true. It decides, even if others can't be known yet."""
    return _one(True, conditions, world)


def _one(wanted: bool, conditions: Sequence[Condition], world: Planned) -> bool:
    """Tell whether one of the conditions has this value.

    :raises Unknown: if that depends on a condition that can't be known yet
    """
    unknown: Optional[Unknown] = None
    for condition in conditions:
        try:
            if holds(condition, world) == wanted:
                return True
        except Unknown as problem:
            unknown = unknown or problem
    if unknown is not None:
        raise unknown
    return False


def _path(condition: Condition, world: Planned) -> bool:
    path, file_type, contains = condition["path"], condition.get("is"), condition.get("contains")
    if file_type != "link" and (file_type or contains):
        path = followed(path, world)
    stat = world.stat(path)
    if stat is None or (file_type is None and contains is None):
        return stat is not None
    if contains is None:
        return stat.file_type == ("symlink" if file_type == "link" else file_type)
    text = world.read(path).decode("utf-8", "replace") if stat.file_type == "file" else None
    return text is not None and re.search(contains, text, re.M) is not None


def followed(path: str, world: Planned) -> str:
    """Return the path that a path refers to after its links."""
    for _ in range(LINKS):
        stat = world.stat(path)
        if stat is None or stat.file_type != "symlink":
            break
        path = os.path.join(os.path.dirname(world.canonical(path)), stat.target)
    return path


def _package(name: str, limits: str, world: Planned) -> bool:
    entry = world.entry("packages", name)
    if entry is None or entry.get("state") is not None or "version" not in entry:
        return False
    version = entry["version"]
    planned = world.facets.get("packages", {}).get(name)
    if limits and not version[:1].isdigit() and planned is not None:  # the package manager will choose the version
        raise Unknown(world.ticks[planned[1]], f"the version of {name} is")
    return all(fits(version, *limit.split(" ")) for limit in limits.split(", ") if limit)


def fits(version: str, operator: str, limit: str) -> bool:
    """Tell whether a version of a package is within a limit.

    Epoch and revision count only if the limit has them: the version 1:9.2p1-2 fits ">= 9.2p1" and "== 9.2p1".

    :param operator: "<", "<=", "==", "!=", ">=" or ">"
    """
    epoch, _, rest = version.rpartition(":")
    if "-" not in limit:
        rest = rest.rpartition("-")[0] or rest
    version = f"{epoch or '0'}:{rest}" if ":" in limit else rest
    one, other = order(version), order(limit)
    return {
        "<": one < other, "<=": one <= other, "==": one == other,
        "!=": one != other, ">=": one >= other, ">": one > other,
    }[operator]  # fmt: skip


def order(version: str) -> List[Any]:
    """Return a value that sorts like the version does for Debian's package manager (source: deb-version(7))."""
    epoch, _, rest = version.rpartition(":")
    upstream, hyphen, revision = rest.rpartition("-")
    if not hyphen:
        upstream, revision = revision, "0"
    return [int(epoch or 0), _weights(upstream), _weights(revision)]


def _weights(text: str) -> List[Any]:
    weights: List[Any] = []
    for letters, digits in _PARTS.findall(text):
        weights.append([_weight(letter) for letter in letters] + [_END])
        weights.append(int(digits or 0))
    return weights


def _weight(letter: str) -> int:
    """Return the weight of a character: `~` comes before the end of a string, and letters before everything else."""
    return 0 if letter == "~" else ord(letter) + (2 if letter.isalpha() else 256)


def statement(condition: Condition) -> str:
    """Return a condition in words, as plans and reports show it."""
    if "not" in condition:
        return f"not ({' and '.join(map(statement, condition['not']))})"
    if "any" in condition:
        return " or ".join(map(statement, condition["any"]))
    if "path" in condition:
        path, file_type = condition["path"], condition.get("is")
        if "contains" in condition:
            return f"{path} contains {condition['contains']}"
        return f"{path} is {called(file_type)}" if file_type is not None else f"{path} exists"
    if "package" in condition:
        limits = f" in a version {condition['version']}" if "version" in condition else ""
        return f"the package {condition['package']} is installed{limits}"
    for identity_type in ("unit", "user", "group"):
        if identity_type in condition:
            return f"the {identity_type} {condition[identity_type]} exists"
    argv = condition["command"]
    return f"{' '.join(argv[2:] if list(argv[:2]) == ['/bin/sh', '-c'] else argv)} succeeds"
