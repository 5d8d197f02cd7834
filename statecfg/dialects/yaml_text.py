"""Strict YAML: text becomes a tree of values that know their places, or a list of what is wrong with it.

The only module that imports `yaml`. Nothing is converted that a reader could take for something else: `NO`, `0755`,
`1:30`, `3.10` and their like are errors, and so are duplicate keys, tags other than ours, and bombs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from statecfg.dialects import ansible_words, scalars
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem, report, suggest, suggest_file
from statecfg.remote.graph.errors import StatecfgError

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_ALIASED = 100_000
MAX_PROBLEMS = 50
TAGS = ("!secret",)

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Node:
    """A value of the file and where it stands; line and column count from 1. `wrong`: what it is was not certain."""

    __slots__ = ("column", "file", "line", "size", "tag", "wrong")

    def __init__(self, file: str, line: int, column: int, tag: str | None) -> None:
        self.file, self.line, self.column, self.tag, self.size = file, line, column, tag, 1
        self.wrong = False

    @property
    def place(self) -> SourceLocation:
        """Where the value starts."""
        return SourceLocation(self.file, self.line, self.column)


class Scalar(Node):
    """A single value: `value` is a str, int, float, bool or None; `block` tells a text written with `|`."""

    __slots__ = ("block", "value")

    def __init__(self, at: tuple[str, int, int], tag: str | None, value: Any, block: bool = False) -> None:
        self.file, self.line, self.column = at
        self.tag, self.size, self.value, self.block = tag, 1, value, block
        self.wrong = False


class Sequence(Node):
    """A list."""

    __slots__ = ("items",)

    def __init__(self, at: tuple[str, int, int], tag: str | None) -> None:
        super().__init__(*at, tag)
        self.items: list[Node] = []


class Mapping(Node):
    """A map from text to values, in the order of the file; `keys` has the keys' own places."""

    __slots__ = ("items", "keys")

    def __init__(self, at: tuple[str, int, int], tag: str | None) -> None:
        super().__init__(*at, tag)
        self.items: dict[str, Node] = {}
        self.keys: dict[str, Scalar] = {}


Tagged = Callable[[str, Any, SourceLocation], Any]


def load(path: str | Path, shape: str, shown: str | None = None) -> Node:
    """Read a YAML file.

    :param path: the file
    :param shape: what the file should hold, for the message about an empty one
    :param shown: the name of the file in places; `path` where not given
    :returns: the root; a `Mapping`, `Sequence` or `Scalar`
    :raises InvalidInput: with every mistake in it.
    """
    name = shown or str(path)
    return parse(_bytes(path, name), name, shape)


def read(path: str | Path, shape: str) -> Node:
    """Read a YAML file as `load` does, but report what can be gone past; the values concerned are `wrong`.

    Raises InvalidInput where there is nothing to go on with: what is no YAML, empty or too much.
    """
    name = str(path)
    composer = _Composer(scalars.decode(_bytes(path, name), name), name, shape)
    root = composer.compose()
    if root is None:
        raise InvalidInput(composer.problems)
    report(*composer.problems)
    return root


def parse(data: bytes | str, file: str, shape: str) -> Node:
    """Read YAML from bytes or text; `file` is the name in places. Raises InvalidInput as `load` does."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    text = scalars.decode(raw, file)
    composer = _Composer(text, file, shape)
    root = composer.compose()
    if root is None or composer.problems:
        raise InvalidInput(composer.problems)
    return root


def foreign(path: Path) -> Any:
    """Return the value of a file written for another program, as YAML 1.1 has it: `no` is false, later keys win.

    An empty file is None. Raises InvalidInput where it can't be read or is no YAML.
    """
    text = scalars.decode(_bytes(path, str(path)), str(path))
    try:
        return yaml.load(text, _LOADER)  # noqa: S506  # a safe loader
    except yaml.MarkedYAMLError as error:
        raise InvalidInput([scalars.syntax_problem(error, text, str(path))]) from None
    except (ValueError, RecursionError) as error:  # a date or number that is none
        raise InvalidInput([problem("SC0315", f"{error}", "put it in quotes", SourceLocation(str(path), 1))]) from None


def plain(node: Node, tagged: Tagged | None = None) -> Any:
    """Return the value without places: dict, list, str, int, float, bool, None.

    :param tagged: makes the value of a tagged node: `tagged(tag, plain value, place)`
    """
    value: Any
    if isinstance(node, Mapping):
        value = {key: plain(item, tagged) for key, item in node.items.items()}
    elif isinstance(node, Sequence):
        value = [plain(item, tagged) for item in node.items]
    else:
        assert isinstance(node, Scalar)
        value = node.value
    if node.tag is None:
        return value
    if tagged is None:
        report(problem("SC0312", f"{node.tag} has no meaning here", "write the value itself", node.place))
        return None
    return tagged(node.tag, value, node.place)


def mapping(node: Node, what: str, example: str) -> Mapping | None:
    """Return the node if it is a map; otherwise report that `what` must be one, as in `example`."""
    if isinstance(node, Mapping) and node.tag is None:
        return node
    report(problem("SC0310", f"{what} must be a map; this is {describe(node)}", f"write {example}", node.place))
    return None


def sequence(node: Node, what: str, example: str) -> Sequence | None:
    """Return the node if it is a list; otherwise report that `what` must be one, as in `example`."""
    if isinstance(node, Sequence) and node.tag is None:
        return node
    report(problem("SC0310", f"{what} must be a list; this is {describe(node)}", f"write {example}", node.place))
    return None


def known_keys(node: Mapping, what: str, valid: tuple[str, ...], others: tuple[str, ...] = ()) -> None:
    """Report each key of the map that is not among `valid`, with the nearest one that is.

    :param others: keys of other things that could stand there
    """
    for key, written in node.keys.items():
        if key not in valid:
            help_text = ansible_words.equivalent(key) or suggest(key, valid + others)
            report(problem("SC0311", f"{what} has no key `{key}`", help_text, written.place))


def describe(node: Node) -> str:
    """Return what a node is, in words, for a message."""
    if node.tag is not None:
        return f"a value tagged {node.tag}"
    if isinstance(node, Mapping):
        return "a map"
    if isinstance(node, Sequence):
        return "a list"
    assert isinstance(node, Scalar)
    return scalars.describe(node.value)


def _bytes(path: str | Path, name: str) -> bytes:
    place = SourceLocation(name, 1, None)
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise InvalidInput([problem("SC0301", f"{name} is no regular file", "name a file", place)])
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        help_text = suggest_file(path) or "check the path"
        raise InvalidInput([problem("SC0301", f"{name}: {error.strerror}", help_text, place)]) from error
    if len(data) > MAX_BYTES:
        size = f"{status.st_size:,} bytes, and {MAX_BYTES:,} are the limit"
        raise InvalidInput([problem("SC0302", size, "split it", place)])
    return data


class _Composer:
    """Builds the tree from parser events, without recursion, counting what it builds."""

    def __init__(self, text: str, file: str, shape: str) -> None:
        self.text, self.file, self.shape = text, file, shape
        self.problems: list[Problem] = []
        self.anchors: dict[str, Node] = {}
        self.open: dict[int, str] = {}
        self.stack: list[tuple[Mapping | Sequence, str | None, Scalar | None]] = []
        self.result: Node | None = None
        self.count = self.aliased = 0
        self.first: SourceLocation | None = None
        self.pending: Scalar | None = None

    def compose(self) -> Node | None:
        """Return the root of the only document; None where that makes no sense. `problems` has what is wrong."""
        try:
            for event in self._events():
                self._take(event)
        except yaml.MarkedYAMLError as error:
            self.problems.append(scalars.syntax_problem(error, self.text, self.file))
            return None
        except yaml.reader.ReaderError as error:
            self.problems.append(scalars.reader_problem(error, self.text, self.file))
            return None
        except _Stop:
            return None
        if self.result is None and not self.problems:
            self._report("SC0303", "nothing but white space and comments", f"write {self.shape}", None)
        return self.result

    def _events(self) -> Iterator[Any]:
        loader = _LOADER(self.text)
        try:
            while (event := loader.get_event()) is not None:
                yield event
        finally:
            loader.dispose()

    def _take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._add(self._scalar(event), event.anchor)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._start(event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self._document(event)

    def _document(self, event: Any) -> None:
        place = self._place(event)
        if self.first is not None:
            self._report("SC0304", "a second one starts here", "move it to a file of its own", place, self.first)
            raise _Stop
        self.first = place

    def _start(self, event: Any) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        if len(self.stack) >= MAX_DEPTH:
            self._report("SC0305", f"nested more than {MAX_DEPTH} levels deep", "flatten it", self._place(event))
            raise _Stop
        at, tag = self._at(event), self._tag(event)
        node: Mapping | Sequence = Mapping(at, tag) if is_map else Sequence(at, tag)
        node.wrong = tag != event.tag
        if event.anchor:
            self._anchor(event, node)
            self.open[id(node)] = event.anchor
        self._count(node, 1)
        self.stack.append((node, event.anchor, self.pending))
        self.pending = None

    def _end(self) -> None:
        node, _, key = self.stack.pop()
        self.open.pop(id(node), None)
        self.pending = key
        self._attach(node)

    def _add(self, node: Scalar, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = node
        self._count(node, 1)
        parent = self.stack[-1][0] if self.stack else None
        if isinstance(parent, Mapping) and self.pending is None:
            self._key(parent, node)
        else:
            self._attach(node)

    def _attach(self, node: Node) -> None:
        if not self.stack:
            self.result = None if isinstance(node, Scalar) and node.value is None else node
            return
        parent = self.stack[-1][0]
        parent.size += node.size
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif self.pending is None:
            self._bad_key(node)
            self.pending = Scalar((node.file, node.line, node.column), None, None)
        else:
            if isinstance(self.pending.value, str) and self.pending.value not in parent.items:
                parent.items[self.pending.value] = node
            self.pending = None

    def _key(self, parent: Mapping, key: Scalar) -> None:
        self.pending = key
        if not isinstance(key.value, str):
            detail = f"a key must be a text; this is {scalars.describe(key.value)}"
            self._report("SC0308", detail, "quote it", key.place)
        elif key.value == "<<":
            self._report("SC0308", "`<<` merges maps in YAML 1.1 only", "write the keys out", key.place)
        elif key.value in parent.keys:
            detail = f"`{key.value}` stands here twice"
            self._report("SC0306", detail, "keep one of them", key.place, parent.keys[key.value].place)
        else:
            parent.keys[key.value] = key

    def _bad_key(self, node: Node) -> None:
        if isinstance(node, Mapping):
            help_text = 'quote a template that begins a value: "{{ name }}"'
        else:
            help_text = "quote it"
        self._report("SC0308", f"{describe(node)} can't be a key", help_text, node.place)

    def _alias(self, event: Any) -> None:
        place = self._place(event)
        node = self.anchors.get(event.anchor)
        if node is None:
            text = f"quote it where the text *{event.anchor} is meant"
            help_text = suggest(event.anchor, sorted(self.anchors), "anchors above") or text
            self._report("SC0307", f"*{event.anchor} names no anchor above it", help_text, place)
            node = self._unknown(event)
        elif id(node) in self.open:
            self._report("SC0307", f"*{event.anchor} stands inside what it names", "break the loop", place, node.place)
            node = self._unknown(event)
        self.aliased += node.size
        if self.aliased > MAX_ALIASED:
            detail = f"aliases stand for more than {MAX_ALIASED:,} values"
            self._report("SC0305", detail, "write fewer aliases of aliases", place)
            raise _Stop
        parent = self.stack[-1][0] if self.stack else None
        if isinstance(parent, Mapping) and self.pending is None and isinstance(node, Scalar):
            self._key(parent, Scalar(self._at(event), None, node.value))
        else:
            self._attach(node)

    def _unknown(self, event: Any) -> Scalar:
        node = Scalar(self._at(event), None, "")
        node.wrong = True
        return node

    def _anchor(self, event: Any, node: Node) -> None:
        self.anchors[event.anchor] = node

    def _scalar(self, event: Any) -> Scalar:
        at, tag = self._at(event), self._tag(event)
        if event.style:  # plain is "" or None, as the parser is written in C or Python
            node = Scalar(at, tag, event.value, event.style == "|")
            node.wrong = tag != event.tag
            return node
        value, doubt = scalars.read(event.value)
        if doubt is not None:
            detail = f"`{scalars.shorten(event.value)}` is ambiguous: {doubt[0]}"
            self._report("SC0309", detail, doubt[1], SourceLocation(*at))
        node = Scalar(at, tag, value)
        node.wrong = doubt is not None or tag != event.tag
        return node

    def _tag(self, event: Any) -> str | None:
        if event.tag is None or event.tag in TAGS:
            return event.tag  # type: ignore[no-any-return]  # PyYAML does not type its events
        shown = event.tag.replace("tag:yaml.org,2002:", "!!")
        why = "a tag that makes Python objects is never run" if "python/" in shown else "it is not one of ours"
        help_text = "remove it; quote a value to make it a text. Known: " + ", ".join(TAGS)
        self._report("SC0312", f"{shown}: {why}", help_text, self._place(event))
        return None

    def _count(self, node: Node, size: int) -> None:
        self.count += size
        if self.count > MAX_NODES:
            self._report("SC0305", f"more than {MAX_NODES:,} values", "split the file, or use for_each", node.place)
            raise _Stop

    def _at(self, event: Any) -> tuple[str, int, int]:
        mark = event.start_mark
        return self.file, mark.line + 1, mark.column + 1

    def _place(self, event: Any) -> SourceLocation:
        return SourceLocation(*self._at(event))

    def _report(self, code: str, detail: str, help_text: str, *places: SourceLocation | None) -> None:
        self.problems.append(
            problem(code, detail, help_text, *(place or SourceLocation(self.file, 1) for place in places))
        )
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop


class _Stop(StatecfgError):
    """What follows could only be guessed at, or would cost too much."""
