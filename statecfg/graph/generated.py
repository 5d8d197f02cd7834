"""Secrets that a host generates and keeps. The controller never has their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pyrsistent import PVector

from statecfg.graph.opaque import Opaque, Secret
from statecfg.graph.value import Value
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.problems.tokens import SecretError
from statecfg.remote.ledger import state


class GeneratedSecret(Secret):
    """A secret whose value exists only on its host.

    Attributes and content contain a reference in its place, which the host replaces by the value.

    :param name: its name in reports, and in the playbook's part of the host's ledger
    :param attrs: `kind`, `length` and `encoding` of the node type `generate`
    :param location: the source location of its declaration
    """

    __slots__ = ("attrs", "location")
    on_host = True

    def __init__(self, name: str, attrs: Mapping[str, Any], location: SourceLocation = NOWHERE) -> None:
        super().__init__(name, reference(name, attrs))
        self.attrs, self.location = dict(attrs), location

    def _bare(self) -> str:
        refuse(self)

    def __len__(self) -> int:
        refuse(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Value):
            return isinstance(other, GeneratedSecret) and other.token == self.token
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self.token)


def reference(name: str, attrs: Mapping[str, Any]) -> str:
    """Return what attributes and content contain in place of the value. It is the same in every run.

    Quoting and escaping don't change it, because it contains only letters and digits.

    :param attrs: `kind`, `length` and `encoding` of the node that generates the value
    """
    how = [name, *(attrs.get(key) for key in ("kind", "length", "encoding"))]
    return state.REFERENCE + hashlib.sha256(json.dumps(how).encode()).hexdigest()[:40]


def refuse(secret: Value) -> NoReturn:
    """Refuse to compute with a secret that a host generates.

    :raises SecretError: always
    """
    raise SecretError(
        f"the value of the secret {secret.name} exists only on the host that generates it",
        "insert it as it is into resources of that host: without a filter, a condition, a loop or a function",
        "SC0426",
    )


def found(value: Any) -> Iterator[GeneratedSecret]:
    """Yield the generated secrets in a value, also in lists and maps."""
    if isinstance(value, Opaque):
        yield from (secret for secret in value.secrets() if isinstance(secret, GeneratedSecret))
    elif isinstance(value, (Mapping, list, tuple, PVector)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from found(item)
