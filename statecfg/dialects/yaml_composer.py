"""Build the tree of a YAML text from the events of the parser, and collect the problems of the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from statecfg.dialects import scalars
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode, describe
from statecfg.problems import Problem, SourceLocation, problem, suggest
from statecfg.remote.graph.errors import StatecfgError

MAX_DEPTH = 100
MAX_NODES = 200_000
MAX_ALIASED = 100_000
MAX_PROBLEMS = 50
TAGS = ("!secret", "!vault")

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Composer:
    """Builds the tree from parser events without recursion, and limits its size."""

    def __init__(self, text: str, file: str, shape: str) -> None:
        self.text, self.file, self.shape = text, file, shape
        self.problems: list[Problem] = []
        self.anchors: dict[str, YamlNode] = {}
        self.open: dict[int, str] = {}
        self.stack: list[tuple[Mapping | Sequence, str | None, Scalar | None]] = []
        self.result: YamlNode | None = None
        self.count = self.aliased = 0
        self.first: SourceLocation | None = None
        self.pending: Scalar | None = None

    def compose(self) -> YamlNode | None:
        """Return the root of the only document; None if there is none. The problems are in `problems`."""
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
            self._report("SC0303", "the file contains only white space and comments", f"write {self.shape}", None)
        return self.result

    def _events(self) -> Iterator[Any]:
        loader = LOADER(self.text)
        try:
            while (event := loader.get_event()) is not None:
                yield event
        finally:
            loader.dispose()

    def _take(self, event: Any) -> None:
        event_type = type(event)
        if event_type is yaml.ScalarEvent:
            self._add(self._scalar(event), event.anchor)
        elif event_type is yaml.MappingStartEvent or event_type is yaml.SequenceStartEvent:
            self._start(event)
        elif event_type is yaml.MappingEndEvent or event_type is yaml.SequenceEndEvent:
            self._end()
        elif event_type is yaml.AliasEvent:
            self._alias(event)
        elif event_type is yaml.DocumentStartEvent:
            self._document(event)

    def _document(self, event: Any) -> None:
        location = self._location(event)
        if self.first is not None:
            self._report("SC0304", "a second document starts here", "move it to its own file", location, self.first)
            raise _Stop
        self.first = location

    def _start(self, event: Any) -> None:
        is_map = isinstance(event, yaml.MappingStartEvent)
        if len(self.stack) >= MAX_DEPTH:
            self._report("SC0305", f"nested more than {MAX_DEPTH} levels deep", "flatten it", self._location(event))
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

    def _attach(self, node: YamlNode) -> None:
        if not self.stack:
            self.result = None if isinstance(node, Scalar) and node.value is None else node
            return
        parent = self.stack[-1][0]
        parent.size += node.size
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif self.pending is None:
            self._bad_key(node)
            parent.wrong = True
            self.pending = Scalar((node.file, node.line, node.column), None, None)
        else:
            if isinstance(self.pending.value, str) and self.pending.value not in parent.items:
                parent.items[self.pending.value] = node
            self.pending = None

    def _key(self, parent: Mapping, key: Scalar) -> None:
        self.pending = key
        if not isinstance(key.value, str):
            detail = f"a key must be a string; this is {scalars.describe(key.value)}"
            self._report("SC0308", detail, "quote it", key.location)
        elif key.value == "<<":
            self._report("SC0308", "`<<` merges maps only in YAML 1.1", "copy the keys to this map", key.location)
        elif key.value in parent.keys:
            detail = f"the map contains `{key.value}` twice"
            self._report("SC0306", detail, "keep one of them", key.location, parent.keys[key.value].location)
        else:
            parent.keys[key.value] = key

    def _bad_key(self, node: YamlNode) -> None:
        if isinstance(node, Mapping):
            help_text = 'quote a value that starts with a template: "{{ name }}"'
        else:
            help_text = "quote it"
        self._report("SC0308", f"{describe(node)} can't be a key", help_text, node.location)

    def _alias(self, event: Any) -> None:
        location = self._location(event)
        node = self.anchors.get(event.anchor)
        if node is None:
            text = f'if you mean the text, quote it: "*{event.anchor}"'
            help_text = suggest(event.anchor, sorted(self.anchors), "anchors above") or text
            self._report("SC0307", f"*{event.anchor} has no anchor above it", help_text, location)
            node = self._unknown(event)
        elif id(node) in self.open:
            detail = f"*{event.anchor} is inside the value of its own anchor"
            self._report("SC0307", detail, "remove this alias", location, node.location)
            node = self._unknown(event)
        self.aliased += node.size
        if self.aliased > MAX_ALIASED:
            detail = f"the aliases expand to more than {MAX_ALIASED:,} values"
            self._report("SC0305", detail, "use fewer aliases inside the values of anchors", location)
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

    def _anchor(self, event: Any, node: YamlNode) -> None:
        self.anchors[event.anchor] = node

    def _scalar(self, event: Any) -> Scalar:
        at, tag = self._at(event), self._tag(event)
        if event.style:  # of a plain scalar it is "" or None, depending on the parser
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
        short = event.tag.replace("tag:yaml.org,2002:", "!!")
        why = "statecfg never creates Python objects" if "python/" in short else "the tag is unknown"
        help_text = "remove the tag. To make a value a string, quote it. Valid tags: " + ", ".join(TAGS)
        self._report("SC0312", f"{short}: {why}", help_text, self._location(event))
        return None

    def _count(self, node: YamlNode, size: int) -> None:
        self.count += size
        if self.count > MAX_NODES:
            self._report("SC0305", f"more than {MAX_NODES:,} values", "split the file, or use for_each", node.location)
            raise _Stop

    def _at(self, event: Any) -> tuple[str, int, int]:
        mark = event.start_mark
        return self.file, mark.line + 1, mark.column + 1

    def _location(self, event: Any) -> SourceLocation:
        return SourceLocation(*self._at(event))

    def _report(self, code: str, detail: str, help_text: str, *locations: SourceLocation | None) -> None:
        self.problems.append(
            problem(code, detail, help_text, *(location or SourceLocation(self.file, 1) for location in locations))
        )
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop


class _Stop(StatecfgError):
    """The rest can't be read, or reading it would take too long."""
