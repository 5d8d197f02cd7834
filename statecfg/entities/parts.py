"""Parts of the objects of the API: fields that belong together. In JSON, they are on the level of the object."""

from __future__ import annotations

from typing import Annotated

from statecfg.entities import urn
from statecfg.entities.document import TEXT_OR_NULL, Key, or_none, text
from statecfg.problems.frozen import dataclass

Namespace = Annotated[str, Key(request=text(64, 1, urn.NAMESPACE.pattern), changes=False)]
Version = Annotated[str, Key(request=text(64, 5, urn.VERSION.pattern), changes=False)]


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What identifies an interface or a type. They never change."""

    vendor: Namespace
    nss: Namespace
    version: Version

    def __str__(self) -> str:
        return f"{self.vendor}/{self.nss}/{self.version}"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of an entity.

    :param owner: name of its owner, a user of the organization `org`
    :param tenant: name of the organization it was created for: `org`, or the one that an administrator named
    """

    owner: str
    org: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Starter:
    """The user who started a task."""

    user: str
    org: str


@dataclass(frozen=True, slots=True)
class Reported:
    """What is known about the work of a task.

    :param progress: percent
    :param details: the progress that a behavior reports
    :param log: details for administrators, with names of hosts and paths of the server
    """

    progress: Annotated[int, Key(response={"type": "integer", "minimum": 0, "maximum": 100})]
    details: Annotated[str, Key(response=TEXT_OR_NULL, convert=or_none)]
    log: str


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """When a task was created, started and ended, in seconds since 1970; None if it has not happened."""

    created: float
    started: float | None
    ended: float | None
