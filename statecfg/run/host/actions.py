"""The actions that a session asks its driver to execute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.run.host import frames


@dataclass(frozen=True)
class Send:
    """Send bytes to the host. Iterating over `pieces` may read a file and raise Broken."""

    pieces: Iterator[bytes]


@dataclass(frozen=True)
class FindTypes:
    """Find node types of orphans that the definition does not use, and pass them to `HostSession.supply_types`.

    :param names: as the host sent them; some may not exist
    """

    names: Sequence[str]


@dataclass(frozen=True)
class CallHook:
    """Call a hook of the controller, and pass the result to `HostSession.hooked`.

    :param about: hook, event and name of the resource, in the form of an event's data
    """

    frame: frames.HookFrame
    about: Mapping[str, Any]


@dataclass(frozen=True)
class TryLogin:
    """Try a new login, and pass the result to `HostSession.logged_in`."""


@dataclass(frozen=True)
class AllowReboot:
    """Allow the host to reboot with `HostSession.may_reboot`, and connect to it again afterwards."""


@dataclass(frozen=True)
class TellUnits:
    """Pass a frame of the host's units to their coordinator.

    :param waits_for_others: whether the host now waits for the units of other hosts
    """

    frame: Mapping[str, Any]
    waits_for_others: bool


@dataclass(frozen=True)
class TellFacts:
    """Pass the facts of the host to the barrier of the run.

    :param failed: name of a fact without a value → why it has none
    """

    values: Mapping[str, Any]
    failed: Mapping[str, str]


@dataclass(frozen=True)
class PlanReceived:
    """The host's plan is complete."""


@dataclass(frozen=True)
class ResultReceived:
    """The host has sent its result, which is its last frame."""


Action = Send | FindTypes | CallHook | TryLogin | AllowReboot | TellUnits | TellFacts | PlanReceived | ResultReceived
