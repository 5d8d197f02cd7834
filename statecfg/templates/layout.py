"""The lines of a template: their breaks stay as they are, and a line with nothing but blocks leaves nothing.

Jinja2 removes the line break after every block, also within a line of text, and replaces each CR LF by LF.
"""

from __future__ import annotations

from collections.abc import Iterator

from jinja2.exceptions import TemplateSyntaxError
from jinja2.lexer import Lexer

# Blanks that text hardly ever contains. One of them replaces CR while Jinja2 reads the template.
_SPARE = "\x1d\x1e\x1f\x1c\u2028\u2029\x85\u205f\u3000\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009"
_BLANK = " \t\v\f"
_MARK = "\ufeff"
_HIDING = ("macro", "set")  # their text is not part of the line
_BETWEEN = ("else", "elif")


class LineLexer(Lexer):
    """Reads a template into tokens, without the lines that only contain blocks."""

    def _normalize_newlines(self, value: str) -> str:
        return value

    def tokeniter(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> Iterator[tuple[int, str, str]]:
        """Yield line, type and text of each token."""
        spare = "\r"
        if "\r" in source:
            spare = next((letter for letter in _SPARE if letter not in source), "")
            if not spare:
                raise TemplateSyntaxError("the template contains CR and every kind of blank", 1, name, filename)
        found = list(super().tokeniter(source.replace("\r", spare), name, filename, state))
        for line, kind, text in _Lines(spare).without_blocks(found) if len(found) > 1 else found:
            if text or kind != "data":
                yield line, kind, text.replace(spare, "\r")


class _Tag:
    """One `{% … %}` or `{# … #}`.

    :param opening: how it begins, such as `{%-`
    """

    def __init__(self, opening: str) -> None:
        self.opening, self.name, self.assigns, self.closing = opening, "", False, ""

    def see(self, kind: str, text: str) -> None:
        """Take a token between the beginning and the end of the tag."""
        if kind == "name" and not self.name:
            self.name = text
        self.assigns |= kind == "operator" and text == "="

    @property
    def hides(self) -> bool:
        """Whether the text up to its end is kept for later."""
        return self.name in _HIDING and not self.assigns

    @property
    def ends(self) -> bool:
        """Whether it ends what an earlier tag began."""
        return self.name.startswith("end") or self.name in _BETWEEN

    @property
    def begins(self) -> bool:
        """Whether text may follow that belongs to it."""
        return bool(self.name) and not self.name.startswith("end") and not self.assigns


class _Lines:
    """Follows the lines of a template.

    :param spare: the letter that replaces CR
    :ivar texts: whether the line contains text: outside of macros, and in each open macro that began in it
    :ivar blanks: the blanks of the line: a list of pieces, and the index in it
    """

    def __init__(self, spare: str) -> None:
        self.spare = spare
        self.result: list[tuple[int, str, list[str]]] = []
        self.texts: list[bool] = [False]
        self.tags: list[_Tag] = []
        self.blanks: list[tuple[list[str], int]] = []
        self.waiting = False  # whether blanks follow the last tag of the line

    def without_blocks(self, tokens: list[tuple[int, str, str]]) -> Iterator[tuple[int, str, str]]:
        """Yield the tokens of the template without the lines that only contain blocks."""
        tag: _Tag | None = None
        inside, last = "", 1
        for line, kind, text in tokens:
            if line > last:  # `{%-` removed a line break
                self._next_line()
            last = line + text.count("\n")
            pieces = [text] if kind != "data" else []
            self.result.append((line, kind, pieces))
            if kind == "data":
                self._data(text, pieces, line == 1 and len(self.result) == 1)
            elif kind in ("raw_begin", "raw_end"):
                self._tag(_raw(kind, text))
            elif kind in ("block_begin", "comment_begin"):
                inside, tag = kind, _Tag(text)
            elif kind in ("block_end", "comment_end") and tag is not None:
                tag.closing = text
                self._tag(tag)
                inside, tag = "", None
            elif tag is not None and inside == "block_begin":
                tag.see(kind, text)
            elif kind == "variable_begin":
                self.texts[-1] = True
        self._end()
        return ((line, kind, "".join(pieces)) for line, kind, pieces in self.result)

    def _data(self, text: str, pieces: list[str], first: bool) -> None:
        if first and text.startswith(_MARK):
            pieces.append(_MARK)
            text = text[1:]
        *lines, rest = text.split("\n")
        for part in lines:
            self._text(part.removesuffix(self.spare), pieces)
            if not self._end():
                pieces.append(f"{self.spare}\n" if part.endswith(self.spare) else "\n")
            self._next_line()
        self._text(rest, pieces)

    def _text(self, part: str, pieces: list[str]) -> None:
        if part.strip(_BLANK):
            self.texts[-1] = True
        elif part:
            self.blanks.append((pieces, len(pieces)))
            self.waiting = True
        pieces.append(part)

    def _tag(self, tag: _Tag) -> None:
        if self.waiting and self.tags and self.tags[-1].begins and tag.ends:
            self.texts[-1] = True  # these blanks are the text of the block
        if tag.name in ("endmacro", "endset") and len(self.texts) > 1:
            self.texts.pop()
        if tag.hides:
            self.texts.append(False)
        self.tags.append(tag)
        self.waiting = False
        if "\n" in tag.closing:
            self._next_line()

    def _end(self) -> bool:
        """Remove the blanks of a line that only contains blocks. Return whether its line break goes as well."""
        if any(self.texts) or not self.tags:
            return False
        last = self.tags[-1].closing
        for at, (pieces, index) in enumerate(self.blanks):
            kept = (at == 0 and self.tags[0].opening.endswith("+")) or (self.waiting and last.startswith("+"))
            if not kept:
                pieces[index] = ""
        return not last.startswith("+")

    def _next_line(self) -> None:
        self.texts = [False] * len(self.texts)
        self.tags, self.blanks, self.waiting = [], [], False


def _raw(kind: str, text: str) -> _Tag:
    """Return the tag of `{% raw %}`, whose line break belongs to the text, or of `{% endraw %}`."""
    tag = _Tag(text[:3].rstrip())
    tag.name = "raw" if kind == "raw_begin" else "endraw"
    closing = text[text.rindex("raw") + 3 :].lstrip()
    tag.closing = f"+{closing}" if kind == "raw_begin" and not closing.startswith("-") else closing
    return tag
