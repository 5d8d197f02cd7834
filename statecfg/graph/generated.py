"""Secrets that a host generates and keeps. The controller never has their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from statecfg.graph import on_host
from statecfg.graph.on_host import OnHost
from statecfg.problems.positions import NOWHERE, SourceLocation
from statecfg.problems.tokens import SecretError
from statecfg.remote.ledger import state


class GeneratedSecret(OnHost):
    """A secret that its host generates.

    :param name: its name in reports, and in the playbook's part of the host's ledger
    :param attrs: `kind`, `length` and `encoding` of the node type `generate`
    :param location: the source location of its declaration
    """

    __slots__ = ("attrs", "location")

    def __init__(self, name: str, attrs: Mapping[str, Any], location: SourceLocation = NOWHERE) -> None:
        super().__init__(name, reference(name, attrs))
        self.attrs, self.location = dict(attrs), location

    def refuse(self) -> NoReturn:
        """Refuse to compute with the secret.

        :raises SecretError: always
        """
        raise SecretError(
            f"the value of the secret {self.name} exists only on the host that generates it",
            "insert it as it is into resources of that host: without a filter, a condition, a loop or a function",
            "SC0426",
        )


def reference(name: str, attrs: Mapping[str, Any]) -> str:
    """Return what attributes and content contain in place of the value. It is the same in every run.

    Quoting and escaping don't change it, because it contains only letters and digits.

    :param attrs: `kind`, `length` and `encoding` of the node that generates the value
    """
    how = [name, *(attrs.get(key) for key in ("kind", "length", "encoding"))]
    return state.REFERENCE + hashlib.sha256(json.dumps(how).encode()).hexdigest()[:40]


def found(value: Any) -> Iterator[GeneratedSecret]:
    """Yield the generated secrets in a value, also in lists and maps."""
    return (item for item in on_host.found(value) if isinstance(item, GeneratedSecret))
