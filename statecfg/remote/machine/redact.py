"""Mask secrets in everything that is shown or stored, in every form in which output may contain them."""

from __future__ import annotations

import binascii
import json
import re
from bisect import bisect_right
from typing import Any, Dict, Iterator, List, Mapping

from statecfg.remote.graph.masks import mask
from statecfg.remote.graph.model import LEARNED

# Shorter pieces occur everywhere by chance.
SHORTEST = 4
_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~")
# Keys of frames and reports whose values are names, protocol words or our own text. They contain no secret.
_OPEN = frozenset((
    "blobs", "differs", "event", "field", "halted", "hook", "host", "kind", "known_after", "ledger", "mode", "name",
    "node", "object", "op", "outcome", "part", "phase", "playbook", "port", "position", "provides", "requires",
    "run", "severity", "sha256", "state", "status", "triggered_by", "triggers", "type", "types", "unit", "where",
    "who",
))  # fmt: skip
# Keys with foreign values: attributes, facts, output of programs.
_FREE = frozenset((
    "after", "args", "attributes", "attrs", "before", "configuration", "diff", "entry", "facts", "log", "metadata",
    "text", "values", "vars",
))  # fmt: skip
# Programs break base64 and hex into lines. A diff adds a sign before each line, which may also be a base64 letter.
_BREAKS = (re.compile(r"(?:[\r\n]|\\[rn])+"), re.compile(r"(?:[\r\n]|\\[rn])+[ +-]"))
_BROKEN_FROM = 56  # no program makes shorter lines
_PROBE = 16


class Redactor:
    """Replaces each known secret by its mask.

    :param secrets: name → value; an empty map changes nothing. What follows a NUL in a name is not shown
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: Dict[str, str] = {}
        self._long: Dict[str, str] = {}
        self._learned = 0  # how many of `LEARNED` it knows
        for name, value in secrets.items():
            self._add(name.partition("\0")[0], value)
        self._compiled = self._compile()

    def _add(self, name: str, value: str) -> None:
        for piece in _pieces(value):
            for spelling in _spellings(piece):
                if len(spelling) >= SHORTEST:
                    self._names.setdefault(spelling, name)
            for spelling in _encoded(piece):
                if len(spelling) >= SHORTEST:
                    self._names.setdefault(spelling, name)
                if len(spelling) >= _BROKEN_FROM:
                    self._long.setdefault(spelling, name)

    def _compile(self) -> Any:
        # Replace the longest first. Otherwise a part of a secret would be masked and the rest would stay.
        plain = sorted(self._names, key=lambda spelling: (-len(spelling), spelling))
        return re.compile("|".join(map(re.escape, plain))) if plain else None

    @property
    def _plain(self) -> Any:
        """The pattern of all spellings, None without secrets."""
        if self._learned != len(LEARNED):
            for value, name in list(LEARNED.items()):
                self._add(name, value)
            self._learned = len(LEARNED)
            self._compiled = self._compile()
        return self._compiled

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by its mask."""
        plain = self._plain
        if plain is None:
            return text
        text = plain.sub(lambda match: mask(self._names[match.group()]), text)
        for spelling, name in self._long.items():
            # Lines are longer than these pieces together, so a line break splits at most one of them.
            if any(spelling[at : at + _PROBE] in text for at in range(0, 3 * _PROBE, _PROBE)):
                for breaks in _BREAKS:
                    text = _without_broken(text, spelling, mask(name), breaks)
        return text

    def parts(self, text: str) -> List[Any]:
        """Return the parts of a string: strings without secrets, and pairs of a secret's name and its text."""
        plain = self._plain
        if plain is None:
            return [text]
        parts: List[Any] = []
        done = 0
        for match in plain.finditer(text):
            parts += [text[done : match.start()], (self._names[match.group()], match.group())]
            done = match.end()
        parts.append(text[done:])
        found = [part for part in parts if part]
        shown = "".join(part if isinstance(part, str) else mask(part[0]) for part in found)
        masked = self.text(text)
        if masked == shown:
            return found
        return [(next(name for name in self._long.values() if mask(name) in masked), text)]  # it is broken into lines

    def message(self, text: str) -> str:
        """Return a message of ours with the secrets in its values masked. Its fixed text stays."""
        plain = self._plain
        secrets = [] if plain is None else plain.findall(text)
        if not secrets:
            return self.text(text)
        from statecfg.remote.machine.fixed_text import fixed

        kept: List[str] = []
        done = 0
        for start, end in fixed(text, sorted(set(secrets))):
            if start >= done:
                kept += [self.text(text[done:start]), text[start:end]]
                done = end
        return "".join([*kept, self.text(text[done:])])

    def report(self, value: Any) -> Any:
        """Return a copy of a frame or report with the secrets in values and messages masked.

        Keys, names, outcomes and other protocol words stay, because they cannot contain a secret.
        """
        if self._plain is None:
            return value
        if isinstance(value, dict):
            # File type and mode are our own words and numbers.
            ours = ("before", "after") if value.get("field") in ("kind", "mode") else ()
            return {key: item if key in ours else self._field(key, item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.report(item) for item in value]
        return self.message(value) if isinstance(value, str) else value

    def _field(self, key: str, value: Any) -> Any:
        if key == "diff" and isinstance(value, str) and value.startswith("--- "):
            start = value.find("\n@@") + 1  # the text before it names the file
            return value[:start] + self.text(value[start:])
        if key == "args" and isinstance(value, dict):
            return {name: item if name == "path" else self.value(item) for name, item in value.items()}
        if key in _FREE:
            return self.value(value)
        if key in _OPEN and isinstance(value, (list, tuple)):
            return [item if isinstance(item, str) else self.report(item) for item in value]
        return value if key in _OPEN and isinstance(value, str) else self.report(value)

    def value(self, value: Any) -> Any:
        """Return a copy of JSON data with the secrets in all strings and numbers masked. Keys stay."""
        if self._plain is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            masked = self.text(repr(value))
            return masked if masked != repr(value) else value
        return value


def _without_broken(text: str, spelling: str, mask: str, breaks: Any) -> str:
    """Return the text with each `spelling` masked that is broken into several lines."""
    pieces: List[str] = []
    starts: List[int] = []  # where each piece begins in the joined text; `origins`: in the text
    origins: List[int] = []
    joined = position = 0
    for line_break in (*breaks.finditer(text), None):
        end = line_break.start() if line_break else len(text)
        pieces.append(text[position:end])
        starts.append(joined)
        origins.append(position)
        joined += end - position
        position = line_break.end() if line_break else end
    whole = "".join(pieces)
    kept: List[str] = []
    done = 0
    start = whole.find(spelling)
    while start >= 0:
        last = start + len(spelling) - 1
        first_piece, last_piece = bisect_right(starts, start) - 1, bisect_right(starts, last) - 1
        kept += [text[done : origins[first_piece] + start - starts[first_piece]], mask]
        done = origins[last_piece] + last - starts[last_piece] + 1
        start = whole.find(spelling, last + 1)
    return "".join(kept) + text[done:] if kept else text


def _pieces(value: str) -> List[str]:
    """Return the value and each of its lines, because diffs and logs show it line by line."""
    pieces = [value, value.strip()]
    for line in value.splitlines():
        pieces += [line, line.strip()]
    return [piece for piece in dict.fromkeys(pieces) if len(piece) >= SHORTEST]


def _spellings(text: str) -> Iterator[str]:
    yield text
    for spelling in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield spelling
        yield spelling.replace("/", "\\/")
        yield json.dumps(spelling)[1:-1]  # JSON in JSON
    data = text.encode("utf-8", "surrogatepass")
    for written in (repr(text), repr(data)[1:], ascii(text)):
        yield written[1:-1]
        yield written[1:-1].replace("'", "\\'")
    for quote in ("'\"'\"'", "'\\''"):
        yield text.replace("'", quote)
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)
    yield re.sub(r"([\"\\$`])", r"\\\1", text)
    for safe in (b"", b"/", b"/:"):
        url = "".join(chr(byte) if byte in _SAFE or byte in safe else f"%{byte:02X}" for byte in data)
        yield url
        yield url.replace("%20", "+")
        yield re.sub("%..", lambda match: match.group().lower(), url)
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
    # The base64 form of a secret inside a longer text depends on its position there, modulo 3. Search only for the
    # characters that do not depend on the rest of the text.
    for before, skipped in ((0, 0), (1, 2), (2, 3)):
        whole = binascii.b2a_base64(b"\0" * before + data, newline=False).decode("ascii")
        letters = whole[skipped : (before + len(data)) * 8 // 6]
        if len(letters) >= SHORTEST:
            yield letters
            yield letters.replace("+", "-").replace("/", "_")
