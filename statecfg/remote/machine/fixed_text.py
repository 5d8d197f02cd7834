"""Separate the fixed text of our own messages from the values in them, because a secret may also be one of our
words."""

from __future__ import annotations

import functools
import re
import sys
from types import CodeType, FunctionType
from typing import Any, Iterator, List, Pattern, Sequence, Set, Tuple

_PLACEHOLDER = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[sdrxofgi]")


def fixed(message: str, words: Sequence[str]) -> List[Tuple[int, int]]:
    """Return the spans (start, end) of a message that are fixed text with some of these words, in order.

    If one of our templates produces the whole message, its text is fixed and everything else is a value. Otherwise our
    phrases of three or more words are fixed, and so is the beginning of the message.
    """
    templates = [(template, _PLACEHOLDER.split(template)) for template in _templates(tuple(words))]
    best: List[Tuple[int, int]] = []
    for template, pieces in templates:
        letters = sum(map(len, pieces))
        if len(pieces) > 1 and letters > sum(end - start for start, end in best) and len("".join(pieces).strip()) > 3:
            pattern = "(.*?)".join(f"({re.escape(piece)})" for piece in pieces)
            whole = re.fullmatch(pattern, message, re.DOTALL)
            if whole is not None:
                best = [whole.span(2 * index + 1) for index in range(len(pieces))]
        elif template == message:
            return [(0, len(message))]
    if best:
        return best
    spans: List[Tuple[int, int]] = []
    for _, pieces in templates:
        for piece in pieces:
            if len(piece.split()) > 2 and any(word in piece for word in words):
                spans += [match.span() for match in re.finditer(re.escape(piece), message)]
            elif message.startswith(piece) and piece and not piece[-1].isalnum():
                spans.append((0, len(piece)))
    return sorted(set(spans), key=lambda span: (span[0], -span[1]))


@functools.lru_cache(maxsize=64)
def _templates(words: Tuple[str, ...]) -> List[str]:
    """Return the strings in our own code that contain one of the words."""
    pattern: Pattern[str] = re.compile("|".join(map(re.escape, words)))
    texts: Set[str] = set()
    for name, module in list(sys.modules.items()):
        if name == "statecfg" or name.startswith("statecfg."):
            texts.update(text for text in _texts(module) if pattern.search(text))
    return sorted(texts)


def _texts(module: Any) -> Iterator[str]:
    for value in list(vars(module).values()):
        own = isinstance(value, type) and value.__module__ == module.__name__
        for item in list(vars(value).values()) if own else [value]:
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            function = item.fget if isinstance(item, property) else item
            if isinstance(item, str):
                yield item
            elif isinstance(function, FunctionType):
                for code in _codes(function.__code__):
                    yield from (text for text in code.co_consts if isinstance(text, str))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
