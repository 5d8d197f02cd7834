"""Node types for tests of the graph, so that these tests do not depend on the built-in node types."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.problems import InvalidInput, Problem, collecting
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.values import AbsolutePath, Argv, Mode, Name, Names, Port, Text, UserName


def even(number: int) -> int:
    if number % 2:
        raise ValueError("not even")
    return number


@node_type
def t_plain(name: Name, *, text: Text | None = None, after: list[str] | None = None) -> None:
    """A node without a resource."""


@node_type
def t_rich(
    path: AbsolutePath,
    *,
    owner: UserName,
    mode: Mode = "0644",
    count: int = 3,
    ratio: float | None = None,
    state: Literal["on", "off"] = "on",
    names: Names | None = None,
    env: dict[str, str] | None = None,
    argv: Argv | None = None,
    port: Port | None = None,
    flag: bool = False,
    twos: Annotated[int, even] | None = None,
    either: int | list[int] | None = None,
    free: Any = None,
) -> None:
    """A node with attributes of all kinds.

    :param path: where it is
    :param owner: who it belongs to,
        in one name
    :param count: how many
    """


@t_rich.validate
def _together(attrs: dict[str, Any]) -> None:
    if attrs["flag"] and attrs["count"] == 0:
        raise ValueError("flag needs a count")


@node_type
def t_path(path: AbsolutePath, *, absent: bool = False, source: Text | None = None, body: Text | None = None) -> None:
    """A resource at a path, with content from the controller."""


@t_path.identity
def _identity(attrs: dict[str, Any]) -> list[str]:
    return ["path:" + attrs["path"]]


@t_path.to_wire
def _to_wire(node: Any, context: Any) -> Any:
    if node.attrs.get("body") is not None:
        return node.with_attrs(body=Blob.of(node.attrs["body"]))
    source = node.attrs.get("source")
    return node if source is None else node.with_attrs(body=context.read(node, source), source=None)


def chain(*names: str) -> Graph:
    """Return a graph in which each node requires the one after it."""
    made: Graph | None = None
    for name in reversed(names):
        made = t_plain(name, provides=name, requires=[made] if made is not None else [])
    assert made is not None
    return made


def of_edges(edges: dict[str, list[str]]) -> Graph:
    """Return a graph of nodes. The keys are their names, and the values are the names of their requirements."""
    return merge_graphs(*(t_plain(name, provides=name, requires=wanted) for name, wanted in edges.items()))


@contextlib.contextmanager
def refused(*codes: str) -> Iterator[list[Problem]]:
    """Expect InvalidInput with exactly these codes. Yield a list that contains the problems afterwards."""
    found: list[Problem] = []
    try:
        with collecting() as reported:
            yield found
    except InvalidInput as error:
        reported = [*reported, *error.problems]
    found.extend(reported)
    assert sorted(item.code for item in found) == sorted(codes), "\n".join(map(str, found))
