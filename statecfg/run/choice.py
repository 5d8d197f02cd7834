"""The user's choices that limit or change what a playbook does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from statecfg.facts.recorded import StoredFacts
from statecfg.playbook.secret_keys import Keys
from statecfg.problems.frozen import dataclass


@dataclass(frozen=True)
class KnownFacts:
    """The facts that a run knows without asking its hosts.

    :param facts: host → facts
    :param stored: returns host → the facts in the store, for hosts that the run does not visit; None if the definitions
        are only shown
    :param oldest: the maximum age of recorded facts in seconds; None for any age
    """

    facts: Mapping[str, StoredFacts] = field(default_factory=dict)
    stored: Callable[[], Mapping[str, StoredFacts]] | None = None
    oldest: float | None = None


@dataclass(frozen=True)
class Choice:
    """The user's options that limit or change what a playbook does.

    :param inventory: the inventory file, None for the project's
    :param limit: a host pattern, None for all hosts
    :param tags: tags of resources, none for all resources
    :param extra: variables that override all others
    :param prune: whether to remove orphans
    :param instance: distinguishes several uses of a playbook on the same hosts; "" if there is only one
    :param given: names in `extra` that the user wrote; statecfg reports those that nothing reads
    :param added: returns service → hosts with units that were added by hand; these hosts get the service's resources
    :param sources: whether the jobs contain the sources of their definitions
    :param keys: the keys of encrypted secrets, in addition to those in the project's settings
    :param known: the facts that the run knows without asking its hosts
    """

    inventory: Path | None = None
    limit: str | None = None
    tags: Sequence[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    prune: bool = False
    instance: str = ""
    given: frozenset[str] = frozenset()
    added: Callable[[], Mapping[str, Sequence[str]]] | None = None
    sources: bool = False
    keys: Keys | None = None
    known: KnownFacts = KnownFacts()
