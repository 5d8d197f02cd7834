"""Makes untrusted text harmless and visible: the only filter for every terminal, log and document."""

from __future__ import annotations

import re
from functools import lru_cache
from unicodedata import category

# Printable by category but invisible: joiners, Hangul fillers, Mongolian and supplementary variation selectors.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_TAB = 8
# Fast path: printable ASCII needs no check of single characters.
_PLAIN = re.compile(r"[ -~]*\Z")


def line(text: str) -> str:
    """Return `text` as one line, with every control, format, bidi, zero-width and surrogate character escaped.

    The escapes are visible, such as `\\n`, `\\t`, `\\x1b` and `\\u202e`. Source: ECMA-48, Unicode categories C* and Z*
    (a no-break space in a configuration is a trap, too).
    """
    if _PLAIN.match(text):
        return text
    return "".join(map(_visible, text))


def block(text: str) -> list[str]:
    """Return the lines of `text`, each escaped by `line`, with tabs expanded to 8 columns as in terminals."""
    return [line(piece.expandtabs(_TAB)) for piece in text.removesuffix("\n").split("\n")]


@lru_cache(maxsize=4096)
def _visible(char: str) -> str:
    if char in " \u3000" or (category(char)[0] not in "CZ" and not _hidden(char)):
        return char
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    code = ord(char)
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def _hidden(char: str) -> bool:
    # FE0E and FE0F often follow emoji; the other variation selectors only hide things.
    return char in _INVISIBLE or "\ufe00" <= char <= "\ufe0d" or "\U000e0100" <= char <= "\U000e01ef"
