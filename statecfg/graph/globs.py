"""Patterns for names of nodes: `*` matches any text without `/`, and `**` matches any text."""

from __future__ import annotations

import re
from functools import lru_cache


def prefix(pattern: str) -> str:
    """Return the text before the first `*`, with which every matching name begins."""
    return pattern.partition("*")[0]


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a regular expression whose `match` accepts the names that match a pattern.

    Its time grows at most with the square of the length of a name, regardless of the number of stars. The text between
    two `**` takes the first position where it matches, which never prevents a match of the text after it: the second
    `**` can skip any text. The same is true for the text between two `*`: either it contains no `/`, or it can only be
    where the next `/` is. So the expression does not go back to try other positions (atomic groups).
    """
    first, *others = re.split(r"\*\*+", pattern)
    if not others:
        return re.compile(_last(first), re.DOTALL)
    *middle, last = others
    parts = [_piece(first), *(f"(?>.*?{_piece(part)})" for part in middle), ".*" if not last else f".*?{_last(last)}"]
    return re.compile("".join(parts) + r"\Z", re.DOTALL)


def _piece(text: str) -> str:
    """Return the expression of a string that contains only single stars, and need not end the name."""
    first, *others = map(re.escape, text.split("*"))
    return first + "".join(f"(?>[^/]*?{part})" for part in others)


def _last(text: str) -> str:
    """Return the expression of a string that contains only single stars, and ends the name."""
    start, star, end = text.rpartition("*")
    return (_piece(start) + r"[^/]*" if star else "") + re.escape(end) + r"\Z"
