"""Values that nodes produce on a host, such as what a command prints, for attributes and templates of other nodes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pyrsistent import PVector

from statecfg.graph import on_host
from statecfg.graph.declare import name_of
from statecfg.graph.graph import Graph
from statecfg.graph.nodes import Node
from statecfg.graph.on_host import OnHost
from statecfg.graph.opaque import would_show_secret
from statecfg.problems.tokens import SecretError
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.wrong_values import show, type_words

CODE = "SC0427"
PREFIX = "statecfgOutput"
HELP = "write output(NODE, NAME), such as output('command:version', 'stdout')"
_REFERENCE = re.compile(f"{PREFIX}[0-9a-f]{{40}}")
# Node and name → the value, so that it has the same token everywhere; until the process ends.
_OUTPUTS: dict[tuple[str, str], Output] = {}
_BY_REFERENCE: dict[str, Output] = {}


class Output(OnHost):
    """What a node produces on its host.

    :param node: the name of the node
    :param output: the name of the value, such as `stdout`
    """

    __slots__ = ("node", "output", "reference")
    is_secret = False  # unless the node uses a secret, which is known when all nodes are

    def __init__(self, node: str, output: str) -> None:
        self.node, self.output = node, output
        digest = hashlib.sha256(f"{node}\0{output}".encode("utf-8", "surrogatepass")).hexdigest()
        self.reference = PREFIX + digest[:40]
        super().__init__(re.sub("[^A-Za-z0-9_.-]+", "-", f"{output}-of-{node}"), self.reference)

    def reveal(self) -> str:
        """Return the reference. It is not secret, so its use is not recorded."""
        return self.reference

    def __repr__(self) -> str:
        return f"<{self.output} of {self.node}>"

    def refuse(self) -> NoReturn:
        """Refuse to compute with the value.

        :raises SecretError: always
        """
        raise SecretError(
            f"the value `{self.output}` of {self.node} exists only on the host, during the run",
            "insert it as it is into resources of that host: without a filter, a condition, a loop or a function",
            "SC0426",
        )


def output(node: Any, name: str) -> Any:
    """Return a value that a node produces, to insert it as it is into attributes or templates of other nodes.

    These nodes then require the node. Its declared type is `Any`, so that type checkers accept it for attributes that
    take text.

    :param node: the name of the node, or the graph that its node type returned
    :param name: the name of the value, such as `stdout` for a command
    :raises SecretError: an argument has the wrong type or contains a secret
    """
    source: Any = node
    if isinstance(node, Graph) and not node.is_empty:
        source = node.node
    source = source.provides if isinstance(source, Node) else name_of(source)
    value = name_of(name)
    if not source or not value:
        wrong = name if source else node
        raise SecretError(f"output() got {type_words(wrong)}: {show(wrong)}", HELP, CODE)
    if would_show_secret([source, value]):
        raise SecretError("the name of a node or of its value contains a secret", HELP, CODE)
    made = _OUTPUTS.get((source, value))
    if made is None:
        made = _OUTPUTS[source, value] = Output(str.__str__(source), str.__str__(value))
        _BY_REFERENCE[made.reference] = made
    return made


def in_use() -> bool:
    """Return whether any definition of this process uses values of nodes."""
    return bool(_OUTPUTS)


def sources(node: Node) -> list[str]:
    """Return the names of the nodes whose values the attributes of a node contain. Templates in files are not read."""
    if not in_use():
        return []
    return list(dict.fromkeys(item.node for item in on_host.found(node.attrs) if isinstance(item, Output)))


def found(value: Any) -> Iterator[Output]:
    """Yield the values of nodes that an attribute contains after `to_wire`, in text, content, lists and maps."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from found(item)
    elif isinstance(value, (list, tuple, PVector)):
        for item in value:
            yield from found(item)
    elif isinstance(value, (Blob, bytes)):
        content = Blob.of(value)
        data = content.read() if content.data is not None and PREFIX.encode() in content.data else b""
        yield from _named(data.decode("utf-8", "ignore"))
    elif isinstance(value, OnHost):
        yield from (value,) if isinstance(value, Output) else ()
    elif isinstance(value, str):
        yield from _named(value)
    else:
        yield from (item for item in on_host.found(value) if isinstance(item, Output))


def _named(text: str) -> Iterator[Output]:
    if PREFIX in text:
        names = dict.fromkeys(_REFERENCE.findall(text))
        yield from (_BY_REFERENCE[name] for name in names if name in _BY_REFERENCE)
