"""Which real things nodes are about, and the problem of two nodes about the same one."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable

from statecfg.graph import schema
from statecfg.graph.graph import Node
from statecfg.problems import InvalidInput, Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY

# Links that every Linux distribution has, so that both spellings mean one thing.
SAME = (("/var/run", "/run"), ("/var/lock", "/run/lock"))
OPPOSITES = ("absent", "purge", "present", "ensure", "state", "masked", "running", "enabled")
Claims = Callable[[Node], Iterable[str]]


def normal(path: str) -> str:
    """Return an absolute path without `//`, `.` and a closing `/`, and by the name that the host keeps it under."""
    if "//" in path or "/." in path or path[-1:] == "/":
        path = posixpath.normpath("/" + path.lstrip("/"))
    for alias, real in SAME:
        if path == alias or path.startswith(alias + "/"):
            return real + path[len(alias) :]
    return path


def check(nodes: Iterable[Node]) -> list[Problem]:
    """Return a problem for each real thing that nodes of different names claim."""
    owners: dict[str, list[Node]] = {}
    methods: dict[str, Claims | None] = {}
    for node in nodes:
        if node.broken:
            continue
        kind = node.type
        if kind not in methods:
            methods[kind] = _claims(kind)
        claims = methods[kind]
        for thing in claims(node) if claims is not None else ():
            what, _, identity = thing.partition(":")
            if identity[:1] == "/":
                thing = f"{what}:{normal(identity)}"
            owners.setdefault(thing, []).append(node)
    return [_clash(thing, group) for thing, group in owners.items() if len({node.provides for node in group}) > 1]


def _claims(name: str) -> Claims | None:
    kind = REGISTRY.get(name)
    if kind is None:
        return None
    if "claims" in kind.methods:
        return kind.run_claims
    try:
        arguments = schema.of(kind).arguments
    except InvalidInput:
        return None  # reported where the type was first used
    if not arguments:
        return None
    first = arguments[0]
    return lambda node: (f"{name}:{node.attrs[first]}",) if isinstance(node.attrs.get(first), str) else ()


def _clash(thing: str, group: list[Node]) -> Problem:
    what, _, identity = thing.partition(":")
    names = list(dict.fromkeys(node.provides for node in group))
    one, other = group[0], next(node for node in group if node.provides != group[0].provides)
    against = [key for key in OPPOSITES if one.attrs.get(key) != other.attrs.get(key)]
    detail = f"{' and '.join(names)} are both about the {what} {identity}"
    if against:
        detail += "; " + ", ".join(
            f"`{key}` is {_word(one, key)} in one and {_word(other, key)} in the other" for key in against
        )
    return problem("SC0114", detail, "keep one of them", *(node.position for node in group))


def _word(node: Node, key: str) -> str:
    value = node.attrs.get(key)
    return "not given" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
