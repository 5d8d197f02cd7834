"""Find misleading names: characters that reverse text, and words with letters of two scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import name as unicode_name

# The explicit controls of the Unicode bidirectional algorithm. Source: UAX #9, section 2.
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"[^\W\d_]+")
# Scripts with letters that look like Latin letters. Source: UTS #39, confusables.
_LIKE_LATIN = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})


def lookalikes(text: str) -> Iterator[str]:
    """Yield a description of each misleading character in a name or path, with its code point."""
    if text.isascii():
        return
    for char in dict.fromkeys(_BIDI.findall(text)):
        yield f"{_point(char)} changes the direction in which the text is shown"
    for word in _WORD.findall(text):
        scripts = {unicode_name(char, "").partition(" ")[0]: char for char in word}
        other = next((script for script in scripts if script in _LIKE_LATIN), None)
        if other is not None and "LATIN" in scripts:
            char = next(char for char in word if unicode_name(char, "").startswith(other))
            yield f"the word `{word}` mixes Latin letters with {_point(char)}"


def _point(char: str) -> str:
    return f"U+{ord(char):04X} ({unicode_name(char, 'a character without a name')})"
