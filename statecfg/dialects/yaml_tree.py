"""The tree of a YAML file: values with their source locations, and checks of their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statecfg.dialects import ansible_words, scalars
from statecfg.problems import SourceLocation, problem, report, suggest


class YamlNode:
    """A value of a YAML file with its source location.

    :param line: starts at 1
    :param column: starts at 1
    :param tag: its tag; None for none
    :ivar size: the number of values in it
    :ivar wrong: whether its value is ambiguous or its tag invalid, which was reported
    """

    __slots__ = ("column", "file", "line", "size", "tag", "wrong")

    def __init__(self, file: str, line: int, column: int, tag: str | None) -> None:
        self.file, self.line, self.column, self.tag, self.size = file, line, column, tag, 1
        self.wrong = False

    @property
    def location(self) -> SourceLocation:
        """The source location of its first character."""
        return SourceLocation(self.file, self.line, self.column)


class Scalar(YamlNode):
    """A single value.

    :param at: file, line and column
    :param value: a str, int, float, bool or None
    :param block: whether it is written as a block with `|`
    """

    __slots__ = ("block", "value")

    def __init__(self, at: tuple[str, int, int], tag: str | None, value: Any, block: bool = False) -> None:
        self.file, self.line, self.column = at
        self.tag, self.size, self.value, self.block = tag, 1, value, block
        self.wrong = False


class Sequence(YamlNode):
    """A list."""

    __slots__ = ("items",)

    def __init__(self, at: tuple[str, int, int], tag: str | None) -> None:
        super().__init__(*at, tag)
        self.items: list[YamlNode] = []


class Mapping(YamlNode):
    """A map from text to values, in the order of the file.

    :ivar items: key → value
    :ivar keys: key → the node of the key
    """

    __slots__ = ("items", "keys")

    def __init__(self, at: tuple[str, int, int], tag: str | None) -> None:
        super().__init__(*at, tag)
        self.items: dict[str, YamlNode] = {}
        self.keys: dict[str, Scalar] = {}


Tagged = Callable[[str, Any, SourceLocation, str], Any]


def plain(node: YamlNode, tagged: Tagged | None = None, name: str = "") -> Any:
    """Return the value without source locations: dict, list, str, int, float, bool, None.

    :param tagged: returns the value of a tagged node: `tagged(tag, plain value, location, name)`; None to refuse tags
    :param name: the key of the node in its map
    """
    value: Any
    if isinstance(node, Mapping):
        value = {key: plain(item, tagged, key) for key, item in node.items.items()}
    elif isinstance(node, Sequence):
        value = [plain(item, tagged, name) for item in node.items]
    else:
        assert isinstance(node, Scalar)
        value = node.value
    if node.tag is None:
        return value
    if tagged is None:
        report(problem("SC0312", f"{node.tag} has no meaning here", "write the value itself", node.location))
        return None
    return tagged(node.tag, value, node.location, name)


def mapping(node: YamlNode, what: str, example: str) -> Mapping | None:
    """Return the node if it is a map; otherwise report that it must be one.

    :param what: the name of the node in the message
    :param example: what to write instead
    """
    if isinstance(node, Mapping) and node.tag is None:
        return node
    report(problem("SC0310", f"{what} must be a map; this is {describe(node)}", f"write {example}", node.location))
    return None


def sequence(node: YamlNode, what: str, example: str) -> Sequence | None:
    """Return the node if it is a list; otherwise report that it must be one.

    :param what: the name of the node in the message
    :param example: what to write instead
    """
    if isinstance(node, Sequence) and node.tag is None:
        return node
    report(problem("SC0310", f"{what} must be a list; this is {describe(node)}", f"write {example}", node.location))
    return None


def check_keys(node: Mapping, what: str, valid: tuple[str, ...], others: tuple[str, ...] = ()) -> None:
    """Report each invalid key of a map, with a suggestion.

    :param what: the name of the map in the message
    :param valid: the valid keys
    :param others: other keys to suggest
    """
    for key, written in node.keys.items():
        if key not in valid:
            help_text = ansible_words.equivalent(key) or suggest(key, valid + others)
            report(problem("SC0311", f"{what} has no key `{key}`", help_text, written.location))


def describe(node: YamlNode) -> str:
    """Return a description of a node for a message."""
    if node.tag is not None:
        return f"a value tagged {node.tag}"
    if isinstance(node, Mapping):
        return "a map"
    if isinstance(node, Sequence):
        return "a list"
    assert isinstance(node, Scalar)
    return scalars.describe(node.value)
