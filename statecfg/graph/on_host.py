"""Values that only a host has: references represent them until the host replaces them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pyrsistent import PVector

from statecfg.graph.opaque import Opaque, Secret
from statecfg.graph.value import Value


class OnHost(Secret):
    """A value that exists only on a host. Attributes and content contain a reference in its place.

    It behaves like a secret, because nothing on the controller can compute with it.

    :param name: its name in messages
    :param reference: the text in its place. Quoting and escaping must not change it
    """

    __slots__ = ()
    on_host = True
    is_secret = True

    def _bare(self) -> str:
        self.refuse()

    def __len__(self) -> int:
        self.refuse()

    def __bool__(self) -> bool:
        self.refuse()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value):
            return isinstance(other, OnHost) and other.token == self.token
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.token)

    def refuse(self) -> NoReturn:
        """Refuse to compute with the value.

        :raises SecretError: always
        """
        raise NotImplementedError


def found(value: Any) -> Iterator[OnHost]:
    """Yield the values in an attribute that only a host has, also in lists and maps."""
    if isinstance(value, Opaque):
        yield from (secret for secret in value.secrets() if isinstance(secret, OnHost))
    elif isinstance(value, (Mapping, list, tuple, PVector)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from found(item)


def conceals(value: Any) -> bool:
    """Return whether an attribute contains a secret, also in lists and maps. Other values of a host are not secret."""
    if isinstance(value, (Mapping, list, tuple, PVector)):
        return any(map(conceals, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, Opaque) and any(getattr(item, "is_secret", True) for item in value.secrets())
