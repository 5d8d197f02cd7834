"""Withheld values: secrets and large content. Markers replace them in requests and responses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from pyrsistent import PMap, PVector

from statecfg.graph.types import hidden
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.model import Blob

LARGEST = 16 << 10  # characters; longer strings are withheld
SECRET, CONTENT, VALUE = "$secret", "$content", "$value"
MARKERS = (SECRET, CONTENT, VALUE)


class NotOurs(StatecfgError):
    """A response contains a marker that was not in the request; the message names it."""


class Held:
    """The withheld values of one value, such as an attribute of a node.

    :param secrets: name → value of each secret
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.secrets = secrets
        self.kept: dict[tuple[str, str], Any] = {}

    def to_json(self, value: Any) -> Any:
        """Return a value as JSON, with markers for withheld values.

        The markers are `{"$secret": NAME}` and `{"$content": SHA-256, "size": BYTES}`, or `{"$value": TYPE}` for other
        objects. A string that contains a secret is withheld as a whole. A key that starts with `$` gets a second `$`.
        """
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, (str, PurePath)):
            return self._text(str(value), value)
        if hidden(value):
            return self._hold(SECRET, value.name, value)
        if isinstance(value, (Mapping, PMap)):
            return {f"${key}" if key[:1] == "$" else key: self.to_json(item) for key, item in sorted(value.items())}
        if isinstance(value, (list, tuple, PVector)):
            return [self.to_json(item) for item in value]
        if isinstance(value, (Blob, bytes)):
            blob = Blob.of(value)
            if blob.secret or self._secret_in(_text_of(blob)):
                return self._hold(SECRET, "content", value)
            return {**self._hold(CONTENT, blob.sha256, value), "size": blob.size}
        return self._hold(VALUE, type(value).__name__, value)

    def _text(self, text: str, value: Any) -> Any:
        name = self._secret_in(text)
        if name is not None:
            return self._hold(SECRET, name, value)
        if len(text) <= LARGEST:
            return text
        data = text.encode("utf-8", "surrogatepass")
        return {**self._hold(CONTENT, hashlib.sha256(data).hexdigest(), value), "size": len(data)}

    def _secret_in(self, text: str) -> str | None:
        return next((name for name, value in self.secrets.items() if value in text), None)

    def _hold(self, marker: str, name: str, value: Any) -> dict[str, str]:
        label, number = name, 1
        # Content is already identified by its digest.
        while self.kept.setdefault((marker, label), value) is not value and marker != CONTENT:
            number += 1
            label = f"{name}-{number}"
        return {marker: label}

    def restored(self, value: Any) -> Any:
        """Return a value of a response, with the withheld values instead of markers.

        :raises NotOurs: a marker was not in the request
        """
        if isinstance(value, list):
            return [self.restored(item) for item in value]
        if not isinstance(value, dict):
            return value
        marker = next((key for key in MARKERS if key in value), None)
        if marker is not None:
            label = value[marker]
            if not isinstance(label, str) or (marker, label) not in self.kept:
                raise NotOurs(f"{marker} {str(label)[:80]!r} is not part of the request")
            return self.kept[(marker, label)]
        return {key[1:] if key[:2] == "$$" else key: self.restored(item) for key, item in value.items()}


def _text_of(blob: Blob) -> str:
    return blob.data.decode("utf-8", "replace") if blob.data is not None else ""
