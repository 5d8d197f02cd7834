"""Find nodes that manage the same real object."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping

from statecfg.graph import schema
from statecfg.graph.host_items import has_sample
from statecfg.graph.nodes import EMPTY_MAP, Node
from statecfg.problems import InvalidInput, Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger import claims as ledger_claims

# Symbolic links that every Linux distribution has: both paths are the same object.
ALIASES = (("/var/run", "/run"), ("/var/lock", "/run/lock"))
# Attributes that a message compares, because different values show why two nodes conflict.
COMPARED = ("absent", "purge", "present", "ensure", "state", "masked", "running", "enabled")
Identify = Callable[[Node], Iterable[str]]


def normal(path: str) -> str:
    """Return an absolute path without `//`, `.` and a trailing `/`, and with the links in `ALIASES` resolved."""
    if "//" in path or "/." in path or path[-1:] == "/":
        path = posixpath.normpath("/" + path.lstrip("/"))
    if path.startswith("/var/"):
        for alias, real in ALIASES:
            if path == alias or path.startswith(alias + "/"):
                return real + path[len(alias) :]
    return path


def owners(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Return the nodes by identity, without nodes that could not be read."""
    found: dict[str, list[Node]] = {}
    identify: dict[str, Identify | None] = {}
    for node in nodes:
        if node.broken:
            continue
        if node.type not in identify:
            identify[node.type] = _identities(node.type)
        identities = identify[node.type]
        for identity in identities(node) if identities is not None else ():
            if node.options is not EMPTY_MAP and "for_each_host" in node.options and has_sample(identity):
                continue  # the host knows which objects these are
            found.setdefault(_plain(identity), []).append(node)
    return found


def claims(node: Node) -> list[str]:
    """Return the identities of a node, and what else it owns, as ledgers store it; without what only the host knows."""
    identities = _identities(node.type)
    found = [_plain(each) for each in identities(node)] if identities is not None else []
    every = [*found, *(ledger_claims.OWNED + claim for claim in ledger_claims.owned(node, found))]
    return [claim for claim in every if "for_each_host" not in node.options or not has_sample(claim)]


def _plain(identity: str) -> str:
    category, _, name = identity.partition(":")
    return f"{category}:{normal(name)}" if name[:1] == "/" else identity


def check(by_identity: Mapping[str, list[Node]]) -> list[Problem]:
    """Return a problem for each identity that nodes with different names share.

    :param by_identity: the result of `owners`
    """
    return [
        _clash(identity, group)
        for identity, group in by_identity.items()
        if len(group) > 1 and len({node.provides for node in group}) > 1
    ]


def _identities(type_name: str) -> Identify | None:
    """Return the function that returns the identities of a type's nodes; None if they have none."""
    node_type = REGISTRY.get(type_name)
    if node_type is None:
        return None
    if "identity" in node_type.methods:
        return node_type.identify
    try:
        arguments = schema.of(node_type).arguments
    except InvalidInput:
        return None  # already reported where the type was first used
    if not arguments:
        return None
    first = arguments[0]
    return lambda node: (f"{type_name}:{node.attrs[first]}",) if isinstance(node.attrs.get(first), str) else ()


def _clash(identity: str, group: list[Node]) -> Problem:
    category, _, name = identity.partition(":")
    names = list(dict.fromkeys(node.provides for node in group))
    one, other = group[0], next(node for node in group if node.provides != group[0].provides)
    different = [key for key in COMPARED if one.attrs.get(key) != other.attrs.get(key)]
    detail = f"{' and '.join(names)} manage the same {category}: {name}"
    if different:
        detail += "; " + ", ".join(
            f"`{key}` is {_text(one, key)} in one and {_text(other, key)} in the other" for key in different
        )
    return problem("SC0114", detail, "keep one of them", *(position for node in group for position in node.positions))


def _text(node: Node, key: str) -> str:
    value = node.attrs.get(key)
    return "not given" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
