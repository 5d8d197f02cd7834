"""Tokens: what stands in a text for a value that must not be shown, until the text reaches its place of use.

A token is made to break. Most of it are lone surrogates, which UTF-8 can't encode, so that a text with a token in it
can't be hashed, written or sent by accident. Between them stand quotes, an ampersand and letters of both cases, so that
quoting, escaping and changing case leave something that is no token.
"""

from __future__ import annotations

import html
import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Protocol

from statecfg.remote.graph.errors import StatecfgError

DIGITS = [chr(0xDA00 + number) for number in range(256)]  # high surrogates; surrogateescape uses low ones only
_EDGE = "\ud9ee\ud9ef\ud9ed"
_BREAKS = "'\"&qXzJvKwQxZ"
_BYTES = 16  # of randomness
_TOKEN = re.compile(f"{_EDGE}(?:[\uda00-\udaff][{_BREAKS}]?){{{_BYTES}}}{_EDGE}")
_ESCAPED = r"(?:\\+[uU](?:0000)?[dD][9aA][0-9a-fA-F]{2}|&#(?:5\d{4}|x[dD][9aA]..);)"
_LETTERS = r"q\W{0,12}x\W{0,12}z\W{0,12}j\W{0,12}v\W{0,12}k\W{0,12}w\W{0,12}q\W{0,12}x\W{0,12}z"
# What is left of a token: surrogates, their escapes, and the letters alone where a codec dropped or replaced the rest.
_REST = re.compile(rf"(?:[\ud900-\udaff][{_BREAKS}\\]*)+|(?:{_ESCAPED}(?:\\*[{_BREAKS}])?)+|(?i:{_LETTERS})")
SURROGATE = re.compile(rb"\xed[\xa4-\xab][\x80-\xbf]")  # as `surrogatepass` encodes one
# What bytes may hold of a token or a mask.
IN_BYTES = re.compile(
    rb"(?:\xed[\xa4-\xab][\x80-\xbf].?){3}|<secret |\\[uU](?:0000)?[dD][9aA]|&#5\d{4};|" + _LETTERS.encode("ascii"),
    re.DOTALL | re.IGNORECASE,
)
_MASK = re.compile(r"<secret ([A-Za-z_][A-Za-z0-9_.-]*)>")


class Leaf(Protocol):
    """What a token stands for."""

    name: str
    token: str


def _in_shell(text: str) -> str:
    return text.replace("'", "'\"'\"'")


# Spellings that change a text character by character: of a token spelled so, the value is spelled so, too.
SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    _in_shell,
    html.escape,
)
_LEAVES: dict[str, Leaf] = {}
_NAMES: set[str] = set()


class Lost(StatecfgError, ValueError):
    """A text has a part of a token, or a mask, in it: the value would not arrive. `help` says what to do."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


def new() -> str:
    """Return a new token, which nobody can guess."""
    digits = [DIGITS[byte] for byte in secrets.token_bytes(_BYTES)]
    spread = [digit + (_BREAKS[at] if at < len(_BREAKS) else "") for at, digit in enumerate(digits)]
    return f"{_EDGE}{''.join(spread)}{_EDGE}"


def register(leaf: Leaf) -> None:
    """Remember what a token stands for, and the name in its mask, for as long as the process runs."""
    _LEAVES[leaf.token] = leaf
    _NAMES.add(leaf.name)


def in_use() -> bool:
    """Return whether any token was made."""
    return bool(_LEAVES)


def leaves() -> list[Leaf]:
    """Return all that a token stands for."""
    return list(_LEAVES.values())


def split(text: str) -> list[str | tuple[Leaf, Callable[[str], str] | None]] | None:
    """Return the text in pieces: text, and for each token what it stands for and how it is spelled; None for no token.

    Raises `Lost` where a token is damaged, or a mask stands for a value.
    """
    if not _LEAVES or not _suspect(text):
        return None
    pieces = list(_pieces(text))
    for piece in pieces:
        if isinstance(piece, str):
            _refuse_rest(piece)
    return pieces if any(not isinstance(piece, str) for piece in pieces) else None


def _suspect(text: str) -> bool:
    """Return whether a text may hold anything of a token, or a mask; nearly all texts can't, and there are many."""
    if not text.isascii() or "\\" in text or "&#" in text or "<secret " in text:
        return True
    return ("z" in text or "Z" in text) and ("j" in text or "J" in text) and _REST.search(text) is not None


def _pieces(text: str) -> Iterator[str | tuple[Leaf, Callable[[str], str] | None]]:
    done = 0
    for found in _TOKEN.finditer(text):
        leaf = _LEAVES.get(found.group())
        if leaf is not None:
            yield from _spelled(text[done : found.start()])
            yield leaf, None
            done = found.end()
    yield from _spelled(text[done:])


def _spelled(text: str) -> Iterator[str | tuple[Leaf, Callable[[str], str] | None]]:
    known = {}
    if _REST.search(text):
        known = {spell(leaf.token): (leaf, spell) for leaf in _LEAVES.values() for spell in SPELLINGS}
        known = {spelling: found for spelling, found in known.items() if spelling in text}
    if not known:
        yield text
        return
    parts = re.split(f"({'|'.join(map(re.escape, known))})", text)
    for part in parts:
        yield known.get(part, part)


def _refuse_rest(text: str) -> None:
    mask = next((found for found in _MASK.finditer(text) if found[1] in _NAMES), None)
    if mask is not None:
        raise Lost(
            f"the text holds {mask[0]}, which only stands for the secret in messages",
            "repr(), !r and %r give that; write {…} or %s, or give the secret itself",
        )
    rest = _REST.search(text)
    if rest is not None:
        raise Lost(
            f"a text operation changed, cut or encoded {_whose(text)}",
            "put the secret into the text last, or change it with its own methods: secret.upper(), "
            "secret.apply(FUNCTION), or a filter in a template",
        )


def _whose(text: str) -> str:
    """Return the words for the secrets of which a text has a piece."""
    there = "".join(letter for letter in text if "\uda00" <= letter <= "\udaff")
    names = []
    for leaf in _LEAVES.values():
        own = "".join(letter for letter in leaf.token if "\uda00" <= letter <= "\udaff")
        if there and any(own[at : at + 3] in there for at in range(len(own) - 2)):
            names.append(leaf.name)
    names = list(dict.fromkeys(names or ([leaf.name for leaf in _LEAVES.values()])))
    return f"the secret {names[0]}" if len(names) == 1 else f"a secret (one of {', '.join(names[:5])})"


def masked(text: str) -> str:
    """Return a text to be shown, with a mask for each token, and for what is left of one."""
    if not _LEAVES or not _suspect(text):
        return text
    shown = [piece if isinstance(piece, str) else f"<secret {piece[0].name}>" for piece in _pieces(text)]
    return _REST.sub("<secret …>", "".join(shown))
