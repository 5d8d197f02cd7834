"""Format YAML texts: indentation and spaces. Comments, order, blank lines and quotes stay.

The scanner's tokens show which lines begin a key or an item of a block. These lines are indented by two spaces for each
block around them. The other lines belong to one of them, and move together with it.
"""

from __future__ import annotations

import bisect
import itertools
import re
from typing import Any

import yaml

from statecfg.dialects import yaml_text
from statecfg.dialects.yaml_composer import LOADER
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError

STEP = 2  # spaces for each block
ROUNDS = 4  # a comment between blocks may find its final column only after the lines around it have theirs
_HEADER = re.compile(r"[|>][-+0-9]*")
_OPENING = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken)
_CLOSING = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)
_STREAM = (yaml.StreamStartToken, yaml.StreamEndToken)
_BLOCKS = (yaml.BlockSequenceStartToken, yaml.BlockMappingStartToken, yaml.BlockEndToken)


class OtherData(StatecfgError):
    """The new text would not have the same data as the old one. This is a mistake in this module."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A map or list in block style.

    :param old: its column in the old text
    :param new: its column in the new text
    :param is_map: whether it is a map
    :param implicit: whether it is a list in the column of the map that contains it
    """

    old: int
    new: int
    is_map: bool
    implicit: bool = False


def laid_out(text: str, file: str) -> str:
    """Return a YAML text with a uniform layout.

    :param file: the name of the file, for errors
    :raises InvalidInput: statecfg can't read the text
    :raises OtherData: the result would have other data
    """
    yaml_text.parse(text, file, "a map or a list")
    text = text.replace("\r\n", "\n")
    for _ in range(ROUNDS):
        result = _Layout(text).text()
        if _events(result) != _events(text):
            break
        if result == text:
            return result
        text = result
    raise OtherData(file)


def _events(text: str) -> list[tuple[Any, ...]]:
    """Return what a YAML text means: its events with their values, tags, anchors and styles, without positions."""
    keys = ("value", "tag", "anchor", "style", "flow_style", "implicit", "explicit")
    try:
        events = list(yaml.parse(text, LOADER))
    except yaml.YAMLError:
        return []
    return [(type(event), *(getattr(event, key, None) for key in keys)) for event in events]


class _Layout:
    """The layout of one text.

    :ivar columns: line → its new column, for all lines except blank ones and comments
    :ivar blocks: line with tokens → the blocks that are open at its end, outermost first
    :ivar edits: line → the gaps between its tokens that change: start, end and new text
    :ivar fixed: lines whose end belongs to a value, so that white space there has a meaning
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.columns: dict[int, int] = {}
        self.blocks: dict[int, tuple[_Block, ...]] = {}
        self.edits: dict[int, list[tuple[int, int, str]]] = {}
        self.fixed: set[int] = set()
        self._stack: list[_Block] = []
        self._flow: list[int] = []  # the lines where the open flow collections start
        self._text_lines: set[int] = set()  # of scalars that begin with `|` or `>`
        self._ending = "\n"
        self._tokens = [token for token in yaml.scan(text, LOADER) if not isinstance(token, _STREAM)]

    def text(self) -> str:
        """Return the new text."""
        for token in self._tokens:
            if not self._flow:
                self._structure(token)
            if isinstance(token, _BLOCKS):
                continue
            self._place(token)
            line = token.start_mark.line
            if isinstance(token, _OPENING):
                self._flow.append(line)
            elif isinstance(token, _CLOSING):
                self._close(self._flow.pop(), line)
            elif isinstance(token, yaml.ScalarToken):
                self._continue(token)
            self.blocks[line] = tuple(self._stack)
        self._find_gaps()
        comments = [line for line, text in enumerate(self.lines) if line not in self.columns and text.strip()]
        placed = sorted(self.columns)
        found = {line: self._of_comment(line, placed) for line in comments}
        self.columns.update(found)
        return "\n".join(map(self._line, range(len(self.lines)))).rstrip("\n") + self._ending

    # Blocks

    def _structure(self, token: Any) -> None:
        """Open and close blocks."""
        column, above = token.start_mark.column, self._stack[-1] if self._stack else None
        inner = above.new + STEP if above else 0
        if isinstance(token, yaml.BlockMappingStartToken):
            self._stack.append(_Block(column, inner, is_map=True))
        elif isinstance(token, yaml.BlockSequenceStartToken):
            self._stack.append(_Block(column, inner, is_map=False))
        elif isinstance(token, yaml.BlockEntryToken) and above and above.is_map:
            self._stack.append(_Block(column, inner, is_map=False, implicit=True))
        elif isinstance(token, yaml.KeyToken | yaml.BlockEndToken) and above and above.implicit:
            self._stack.pop()
        if isinstance(token, yaml.BlockEndToken):
            self._stack.pop()

    def _place(self, token: Any) -> None:
        """Find the new column of a line, if this is its first token."""
        line, column = token.start_mark.line, token.start_mark.column
        if line in self.columns or self.lines[line][:column].strip():
            return
        inner = self._stack[-1].new if self._stack else 0
        if self._flow:
            self.columns[line] = max(column + self._shift(self._flow[-1]), inner)
        elif isinstance(token, yaml.KeyToken | yaml.BlockEntryToken | yaml.ValueToken) or not self._stack:
            self.columns[line] = inner
        else:
            self.columns[line] = inner + STEP

    def _shift(self, line: int) -> int:
        """Return by how many columns a line moves to the right."""
        return self.columns[line] - _indent(self.lines[line])

    # Values of several lines

    def _close(self, first: int, last: int) -> None:
        """Place the comments inside a flow collection."""
        for line in range(first + 1, last):
            if line not in self.columns and self.lines[line].strip():
                self.columns[line] = max(_indent(self.lines[line]) + self._shift(first), 0)

    def _continue(self, token: Any) -> None:
        """Place the other lines of a scalar."""
        first, last = token.start_mark.line, token.end_mark.line
        if token.style in ("|", ">"):
            self._block_scalar(token)
            return
        least = self._stack[-1].new + 1 if self._stack else 0
        for line in range(first + 1, last + 1):
            if self.lines[line].strip():
                self.columns[line] = max(_indent(self.lines[line]) + self._shift(first), least)
        self.fixed.update(range(first, last))

    def _block_scalar(self, token: Any) -> None:
        first, column = token.start_mark.line, token.start_mark.column
        header = _HEADER.match(self.lines[first], column)
        start = next((line for line in range(first + 1, len(self.lines)) if self.lines[line].strip()), None)
        if header is None or start is None:
            return
        block = self._stack[-1] if self._stack else _Block(0, 0, is_map=True)
        digits = "".join(filter(str.isdigit, header.group()))
        indent = block.old + int(digits) if digits else _indent(self.lines[start])
        shift = block.new - block.old if digits else block.new + STEP - indent
        if not digits and indent <= block.old:  # the value is empty, and the next line belongs to something else
            return
        line = first + 1
        while line < len(self.lines) and (not self.lines[line].strip() or _indent(self.lines[line]) >= indent):
            if len(self.lines[line]) > indent:
                self.columns[line] = _indent(self.lines[line]) + shift
                self.fixed.add(line)
                self._text_lines.add(line)
            line += 1
        if "+" in header.group() and line == len(self.lines):
            self._ending = "\n" * (line - len("\n".join(self.lines).rstrip("\n").split("\n")))

    # Gaps and comments

    def _find_gaps(self) -> None:
        """Find the gaps between tokens of a line that should be wider or narrower."""
        visible = [token for token in self._tokens if token.start_mark.index < token.end_mark.index]
        for one, other in itertools.pairwise(visible):
            start, end = one.end_mark, other.start_mark
            if start.line != end.line or getattr(one, "style", None) in ("|", ">"):
                continue
            written = self.lines[end.line][start.column : end.column]
            gap = _gap(one, other)
            if gap is not None and gap != written and not written.strip():
                self.edits.setdefault(end.line, []).append((start.column, end.column, gap))

    def _of_comment(self, line: int, placed: list[int]) -> int:
        """Return the new column of a comment: that of the next line, or of the block that it ends.

        :param placed: the lines with tokens
        """
        column, at = _indent(self.lines[line]), bisect.bisect(placed, line)
        if at < len(placed) and column <= _indent(self.lines[placed[at]]):
            return self.columns[placed[at]]
        before = next((self.blocks[number] for number in reversed(placed[:at]) if number in self.blocks), ())
        around = [block for block in before if block.old <= column - block.implicit]
        if not around:
            return 0
        # After a text block, a comment in a deeper column would belong to the text.
        deeper = column > around[-1].old and placed[at - 1] not in self._text_lines
        return around[-1].new + (STEP if deeper else 0)

    def _line(self, line: int) -> str:
        written = self.lines[line]
        if line not in self.columns:
            return ""
        indent = _indent(written)
        for start, end, gap in reversed(self.edits.get(line, [])):
            written = written[:start] + gap + written[end:]
        body = written[indent:]
        return " " * self.columns[line] + (body if line in self.fixed else body.rstrip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _gap(one: Any, other: Any) -> str | None:
    """Return the text between two tokens of a line; None to keep it."""
    ends = isinstance(other, (*_CLOSING, yaml.FlowEntryToken))
    if isinstance(one, yaml.ValueToken):
        return None if ends else " "
    if isinstance(other, yaml.ValueToken):
        return None if isinstance(one, yaml.AliasToken) else ""
    if isinstance(one, _OPENING) or ends:
        return ""
    return " " if isinstance(one, yaml.BlockEntryToken | yaml.FlowEntryToken) else None
