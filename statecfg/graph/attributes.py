"""Attributes of nodes: persistent maps that are made and read as fast as dicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrsistent import PMap, pmap


class Attributes(PMap[str, Any]):
    """A persistent map in a dict, because pyrsistent needs ten times as long to make and to read a small map.

    What reads the map uses the dict. What derives another map uses pyrsistent's buckets, which are then made first.

    :param values: the items; nothing changes this dict afterwards
    """

    __slots__ = ("_dict",)
    _dict: dict[str, Any]

    def __new__(cls, values: dict[str, Any]) -> Attributes:
        """Make the map of a dict."""
        made = object.__new__(cls)
        made._dict = values
        return made

    @property
    def _size(self) -> int:
        return len(self._dict)

    @property
    def _buckets(self) -> Any:
        made: Any = pmap(self._dict)
        return made._buckets

    def __getitem__(self, key: str) -> Any:
        return self._dict[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default` if the map lacks the key."""
        return self._dict.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def __len__(self) -> int:
        return len(self._dict)

    def __eq__(self, other: object) -> bool:
        return self._dict == other._dict if isinstance(other, Attributes) else super().__eq__(other)

    __hash__ = PMap.__hash__

    def iteritems(self) -> Iterator[tuple[str, Any]]:
        """Yield keys and values in the order in which the dict got them."""
        return iter(self._dict.items())
