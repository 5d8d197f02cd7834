"""A service and its relations, as a playbook declares them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from statecfg.playbook.service_options import ServiceOption
from statecfg.problems import positions
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation

TIMEOUT = 600.0  # seconds; the default time limit for a hook of a charm
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Service:
    """A service of a playbook, which has a unit on each of its hosts.

    :param name: letters, digits and `-`, as in juju
    :param hosts: the pattern that selects its hosts
    :param charm: absolute path of the directory with the hooks; None for a service without a charm
    :param schema: its options by name, without those of the charm
    :param settings: option → value, which may still be a template
    :param timeout: time limit of each hook in seconds
    :param playbook: absolute path of another playbook, whose graphs are added for its hosts; None for none
    :param position: its source location
    :param locations: the source locations of its parts: `charm`, `playbook`, `settings.NAME`, `schema.NAME`
    """

    name: str
    hosts: str
    charm: Path | None = None
    schema: Mapping[str, ServiceOption] = dataclasses.field(default_factory=lambda: NOTHING)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=lambda: NOTHING)
    timeout: float = TIMEOUT
    playbook: Path | None = None
    position: SourceLocation = positions.NOWHERE
    locations: Mapping[str, SourceLocation] = dataclasses.field(default_factory=lambda: NOTHING)

    def location_of(self, part: str) -> SourceLocation:
        """Return the source location of a part; that of the service if the part's location is unknown."""
        return self.locations.get(part, self.position)


@dataclasses.dataclass(frozen=True, order=True)
class Endpoint:
    """One end of a relation: a service and its name for the relation, written as `web:db`."""

    service: str
    relation: str

    def __str__(self) -> str:
        return f"{self.service}:{self.relation}"


@dataclass(frozen=True)
class Relation:
    """A relation.

    :param ends: two endpoints of different services, or one endpoint of a service whose units are peers
    :param position: its source location
    """

    ends: tuple[Endpoint, ...]
    position: SourceLocation = positions.NOWHERE

    def __str__(self) -> str:
        return " – ".join(map(str, self.ends))
