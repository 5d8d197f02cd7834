"""Tokens: placeholders for secrets in strings, until the text reaches the code that uses the secret.

A token is designed to break. Most of it consists of lone surrogates, which UTF-8 can't encode, so a string with a token
can't be hashed, written or sent by accident. Between them are quotes, an ampersand and letters in both cases, so that
quoting, escaping or changing the case damages the token.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Protocol

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.masks import mask as mask

DIGITS = [chr(0xDA00 + number) for number in range(256)]  # high surrogates; surrogateescape uses low ones only
_EDGE = "\ud9ee\ud9ef\ud9ed"
_BREAKS = "'\"&qXzJvKwQxZ"
_BYTES = 16  # of randomness
_TOKEN = re.compile(f"{_EDGE}(?:[\uda00-\udaff][{_BREAKS}]?){{{_BYTES}}}{_EDGE}")
_ESCAPED = r"(?:\\+[uU](?:0000)?[dD][9aA][0-9a-fA-F]{2}|&#(?:5\d{4}|x[dD][9aA]..);)"
_LETTERS = r"q\W{0,12}x\W{0,12}z\W{0,12}j\W{0,12}v\W{0,12}k\W{0,12}w\W{0,12}q\W{0,12}x\W{0,12}z"
# A damaged token: surrogates, their escapes, or only the letters if a codec dropped or replaced the rest.
_REST = re.compile(rf"(?:[\ud900-\udaff][{_BREAKS}\\]*)+|(?:{_ESCAPED}(?:\\*[{_BREAKS}])?)+|(?i:{_LETTERS})")
SURROGATE = re.compile(rb"\xed[\xa4-\xab][\x80-\xbf]")  # as `surrogatepass` encodes one
# `repr` of a secret returns its mask with this invisible end. So the mask differs from text that only looks like one.
SHOWN = "\u034f"
_SHOWN = re.compile(rf"({mask('[^<>]*')})(?:{SHOWN}|\\u034f)")  # as it is, or as ASCII
# The traces that a token or a shown secret leaves in bytes.
IN_BYTES = re.compile(
    rb"(?:\xed[\xa4-\xab][\x80-\xbf].?){3}|%b(?:%b|\\u034f)|\\[uU](?:0000)?[dD][9aA]|&#5\d{4};|%b"
    % (mask("[^<>]*").encode(), SHOWN.encode(), _LETTERS.encode("ascii")),
    re.DOTALL | re.IGNORECASE,
)


class SecretValue(Protocol):
    """The secret that a token replaces."""

    token: str

    @property
    def label(self) -> str:
        """The name in messages."""

    def _bare(self) -> str:
        """Return the value of the secret."""


def _in_shell(text: str) -> str:
    return text.replace("'", "'\"'\"'")


def _in_html(text: str) -> str:
    from html import escape  # it loads all names of HTML's entities

    return escape(text)


# Encodings that change a string character by character. If one was applied to a token, it is applied to the value too.
ENCODINGS: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    _in_shell,
    _in_html,
)
_SECRETS: dict[str, SecretValue] = {}


class SecretError(StatecfgError, ValueError):
    """A secret can't be used as the user's code tries to use it.

    :param message: what is wrong, without the value
    :param help: what to do
    :param code: the code of the problem
    """

    def __init__(self, message: str, help: str, code: str = "SC0423") -> None:
        super().__init__(message)
        self.help, self.code = help, code


def new_token() -> str:
    """Return a new, random token."""
    digits = [DIGITS[byte] for byte in secrets.token_bytes(_BYTES)]
    spread = [digit + (_BREAKS[at] if at < len(_BREAKS) else "") for at, digit in enumerate(digits)]
    return f"{_EDGE}{''.join(spread)}{_EDGE}"


def register(secret: SecretValue) -> None:
    """Register a secret with its token, until the process ends."""
    _SECRETS[secret.token] = secret


def in_use() -> bool:
    """Return whether any secret is registered."""
    return bool(_SECRETS)


def secrets_in_use() -> list[SecretValue]:
    """Return all registered secrets."""
    return list(_SECRETS.values())


def split(text: str) -> list[str | tuple[SecretValue, Callable[[str], str] | None]] | None:
    """Split a string at its tokens.

    :returns: pieces of text and, for each token, its secret and the encoding that was applied to it (None for none);
        None if the text contains no token
    :raises SecretError: the text contains a damaged token, or the mask that `repr` of a secret returns
    """
    if not _SECRETS or not _suspect(text):
        return None
    pieces = list(_pieces(text))
    for piece in pieces:
        if isinstance(piece, str):
            _refuse_rest(piece)
    return pieces if any(not isinstance(piece, str) for piece in pieces) else None


def _suspect(text: str) -> bool:
    """Return whether a string may hold a token, a part of one, or a shown secret. A quick test for the many others."""
    if not text.isascii() or "\\" in text or "&#" in text:
        return True
    return ("z" in text or "Z" in text) and ("j" in text or "J" in text) and _REST.search(text) is not None


def _pieces(text: str) -> Iterator[str | tuple[SecretValue, Callable[[str], str] | None]]:
    end = 0
    for match in _TOKEN.finditer(text):
        secret = _SECRETS.get(match.group())
        if secret is not None:
            yield from _encoded(text[end : match.start()])
            yield secret, None
            end = match.end()
    yield from _encoded(text[end:])


def _encoded(text: str) -> Iterator[str | tuple[SecretValue, Callable[[str], str] | None]]:
    encoded = {}
    if _REST.search(text):
        encoded = {encode(secret.token): (secret, encode) for secret in _SECRETS.values() for encode in ENCODINGS}
        encoded = {form: meaning for form, meaning in encoded.items() if form in text}
    if not encoded:
        yield text
        return
    parts = re.split(f"({'|'.join(map(re.escape, encoded))})", text)
    for part in parts:
        yield encoded.get(part, part)


def _refuse_rest(text: str) -> None:
    shown = _SHOWN.search(text)
    if shown is not None:
        raise SecretError(
            f"the text contains {shown[1]}, which is only the secret's mask in messages",
            "repr(), !r and %r return the mask; use {…} or %s, or pass the secret itself",
        )
    rest = _REST.search(text)
    if rest is not None:
        raise SecretError(
            f"a text operation changed, cut or encoded {_named_secrets(text)}",
            "insert the secret into the text last, or change it with its own methods: secret.upper(), "
            "secret.apply(FUNCTION), or a filter in a template",
        )


def _named_secrets(text: str) -> str:
    """Return a description of the secrets whose tokens may be in a string."""
    surrogates = "".join(letter for letter in text if "\uda00" <= letter <= "\udaff")
    names = []
    for secret in _SECRETS.values():
        digits = "".join(letter for letter in secret.token if "\uda00" <= letter <= "\udaff")
        if surrogates and any(digits[at : at + 3] in surrogates for at in range(len(digits) - 2)):
            names.append(secret.label)
    names = list(dict.fromkeys(names or ([secret.label for secret in _SECRETS.values()])))
    return f"the secret {names[0]}" if len(names) == 1 else f"a secret (one of {', '.join(names[:5])})"


def shown(label: str) -> str:
    """Return the mask of a secret with its invisible end, for `repr`. A string that contains it is refused."""
    return mask(label) + SHOWN


def masked(text: str) -> str:
    """Return a string with a mask in place of each token and each damaged token."""
    if not _SECRETS or not _suspect(text):
        return text
    text = text.replace(SHOWN, "")
    pieces = [piece if isinstance(piece, str) else mask(piece[0].label) for piece in _pieces(text)]
    return _REST.sub(mask("…"), "".join(pieces))
