"""Takes secrets out of what will be shown or stored, in every spelling that output gives them."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

# Shorter pieces occur by chance everywhere; a secret of under 4 characters protects nothing.
_SHORTEST = 4


class Redactor:
    """Replaces known secrets by their names.

    Parameters: `secrets` their values by name; an empty mapping redacts nothing.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for name, value in secrets.items():
            for spelling in _spellings(value):
                if len(spelling) >= _SHORTEST:
                    names.setdefault(spelling, f"<secret {name}>")
        self._names = names
        # The longest first, or a part of a secret would be replaced and the rest stay.
        longest = sorted(names, key=lambda spelling: (-len(spelling), spelling))
        self._pattern = re.compile("|".join(map(re.escape, longest))) if names else None

    def text(self, text: str) -> str:
        """Return `text` with each secret replaced by `<secret NAME>`."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._names[found.group()], text)

    def data(self, value: Any) -> Any:
        """Return a copy of JSON data with the secrets taken out of every string in it, keys as well."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.data(item) for item in value]
        return value


def _spellings(value: str) -> Iterator[str]:
    # A secret of several lines is shown line by line in diffs.
    for piece in {value, value.strip(), *value.splitlines()}:
        raw = piece.encode("utf-8", "surrogateescape")
        yield from (piece, piece.strip(), repr(piece)[1:-1], shlex.quote(piece), html.escape(piece))
        yield from (json.dumps(piece)[1:-1], json.dumps(piece, ensure_ascii=False)[1:-1])
        yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
        yield from (
            base64.b64encode(raw).decode(),
            base64.urlsafe_b64encode(raw).decode(),
            raw.hex(),
            raw.hex().upper(),
        )
