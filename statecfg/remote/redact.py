"""Masks secrets in whatever is about to be shown or stored, in every spelling that output gives them."""

from __future__ import annotations

import binascii
import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Mapping

# Shorter pieces occur by chance everywhere.
SHORTEST = 4
_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")
# Programs break long lines of base64 and hex, and a diff puts a sign before each.
_BREAK = r"(?:\\[rn]|[\r\n]|[\r\n][ +-])*"
_BROKEN_FROM = 56


class Redactor:
    """Replaces each known secret by `<secret NAME>`.

    :param secrets: name → value; an empty map changes nothing
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: Dict[str, str] = {}
        wrapped: List[str] = []
        self._wrapped: List[str] = []
        for name, value in secrets.items():
            for piece in _pieces(value):
                for spelling in _spellings(piece):
                    if len(spelling) >= SHORTEST:
                        self._names.setdefault(spelling, name)
                for spelling in _encoded(piece):
                    if len(spelling) >= _BROKEN_FROM:
                        wrapped.append(_BREAK.join(spelling))
                        self._wrapped.append(name)
                    elif len(spelling) >= SHORTEST:
                        self._names.setdefault(spelling, name)
        # The longest first, or part of a secret would be masked and the rest stay.
        plain = sorted(self._names, key=lambda spelling: (-len(spelling), spelling))
        self._plain = re.compile("|".join(map(re.escape, plain))) if plain else None
        self._broken = [re.compile(pattern) for pattern in wrapped]

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by `<secret NAME>`."""
        for pattern, name in zip(self._broken, self._wrapped):
            text = pattern.sub("<secret %s>" % name, text)
        if self._plain is None:
            return text
        return self._plain.sub(lambda found: "<secret %s>" % self._names[found.group()], text)

    def value(self, value: Any) -> Any:
        """Return a copy of JSON data with the secrets masked in every text, number and key of it."""
        if self._plain is None and not self._broken:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            masked = self.text(repr(value))
            return masked if masked != repr(value) else value
        return value


def _pieces(value: str) -> List[str]:
    """Return the value and, as diffs and logs show it line by line, each of its lines."""
    pieces = [value, value.strip()]
    for line in value.splitlines():
        pieces += [line, line.strip()]
    return [piece for piece in dict.fromkeys(pieces) if len(piece) >= SHORTEST]


def _spellings(text: str) -> Iterator[str]:
    yield text
    for spelling in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield spelling
        yield spelling.replace("/", "\\/")
        yield json.dumps(spelling)[1:-1]  # JSON inside of JSON
    data = text.encode("utf-8", "surrogatepass")
    for written in (repr(text), repr(data)[1:], ascii(text)):
        yield written[1:-1]
        yield written[1:-1].replace("'", "\\'")
    for quote in ("'\"'\"'", "'\\''"):
        yield text.replace("'", quote)
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)
    yield re.sub(r"([\"\\$`])", r"\\\1", text)
    for safe in (b"", b"/", b"/:"):
        url = "".join(chr(byte) if byte in _SAFE or byte in safe else "%%%02X" % byte for byte in data)
        yield url
        yield url.replace("%20", "+")
        yield re.sub("%..", lambda found: found.group().lower(), url)
    html = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    yield html
    for double, single in (("&quot;", "&#x27;"), ("&#34;", "&#39;"), ("&quot;", "&#39;"), ("&quot;", "&apos;")):
        yield html.replace('"', double)
        yield html.replace('"', double).replace("'", single)


def _encoded(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    digits = binascii.hexlify(data).decode("ascii")
    yield digits
    yield digits.upper()
    # Base64 of a text that holds the secret depends on where in the text it begins: 3 ways, of which only the
    # characters that depend on nothing else are looked for.
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        whole = binascii.b2a_base64(b"\0" * before + data, newline=False).decode("ascii")
        letters = whole[skipped : (before + len(data)) * 8 // 6]
        if len(letters) >= SHORTEST:
            yield letters
            yield letters.replace("+", "-").replace("/", "_")
