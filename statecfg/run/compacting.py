"""Remove unnecessary blanks from Python source. Every token stays on its line."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from statecfg.problems.python_source import parse

_NO_TEXT = (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_LINE_ENDS = (tokenize.NEWLINE, tokenize.NL)
# Python 3.12 and newer split f-strings into tokens that can't be joined again.
_FSTRING_START = getattr(tokenize, "FSTRING_START", -1)
_FSTRING_END = getattr(tokenize, "FSTRING_END", -1)


def compacted(text: str) -> str:
    """Return Python source with one blank per level of indentation and none around operators.

    :param text: the source of a module, without comments
    :returns: the shorter source, or `text` if the shorter source would not mean the same
    """
    short = _Compacting(text).text()
    try:
        same = ast.dump(parse(short)) == ast.dump(parse(text))
    except SyntaxError:
        same = False
    return short if same else text


class _Compacting:
    """Joins the tokens of one source again, with as few blanks as possible."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        self.pieces: list[str] = []
        self.row, self.last_row = 1, text.count("\n") + 1
        self.last = ""

    def text(self) -> str:
        """Return the compacted source."""
        depth, starts, ended = 0, True, True
        tokens = iter(self.tokens)
        for token in tokens:
            depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
            if token.type in _LINE_ENDS:
                starts, ended = starts or token.type == tokenize.NEWLINE, True
            elif token.type not in _NO_TEXT:
                start, end, text = token.start, token.end, token.string
                if token.type == _FSTRING_START:
                    end, text = self.fstring(start, tokens)
                self.pieces.append(("\n" if ended else "\\\n") * (start[0] - self.row))
                self.pieces.append(" " * depth if starts else " " * self.must_part(text))
                self.pieces.append(text)
                self.row, self.last, starts, ended = end[0], text, False, False
        return "".join([*self.pieces, "\n" * (self.last_row - self.row)])

    def must_part(self, text: str) -> bool:
        """Return whether a token needs a blank, because it would merge with the previous token."""
        if text == ".":
            return self.last[-1:].isdigit()
        quote = text[0] in ("'", '"')
        return (quote and self.last.endswith(("'", '"'))) or (is_word(self.last[-1:]) and (quote or is_word(text[0])))

    def fstring(self, start: tuple[int, int], tokens: Iterator[tokenize.TokenInfo]) -> tuple[tuple[int, int], str]:
        """Return the end of an f-string (row and column) and its text; skip its tokens."""
        depth, end = 1, start
        while depth:
            token = next(tokens)
            depth += (token.type == _FSTRING_START) - (token.type == _FSTRING_END)
            end = token.end
        rows = self.lines[start[0] - 1 : end[0]]
        rows[-1] = rows[-1][: end[1]]
        rows[0] = rows[0][start[1] :]
        return end, "".join(rows)


def is_word(character: str) -> bool:
    """Return whether a character can be part of a name or number."""
    return character.isalnum() or character == "_"
