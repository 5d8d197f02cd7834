"""Who follows the hosts of a run, and what is looked up while they are being connected to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.errors import StatecfgError

Json = dict[str, Any]  # of reports, and of what hooks and units say


class Events(Protocol):
    """Follows the hosts of a run and calls the controller's hooks. Called from many threads."""

    def planned(self, host: str, report: Json) -> None:
        """Take in that a host has planned: `facts` and `ledger` are in its report."""

    def hook(self, host: str, question: Json, gone: Callable[[], bool], begun: Callable[[], None]) -> Json:
        """Call a hook that runs here.

        :param question: `hook`, `event`, `resource`, `seconds`
        :param gone: returns whether the host no longer waits
        :param begun: called when it is the hook's turn
        :returns: `ok`, `error` and what else the hook returned
        """

    def may_go(self, host: str) -> str:
        """Return why a host, planned, must not go on, "" if it may; called once, before anything is done there."""

    def going(self, host: str) -> None:
        """Take in that a host, planned, goes on to apply its plan."""

    def unit(self, host: str, frame: Json, tell: Callable[[Json], None], address: str) -> None:
        """Take in what a host says of its units; `tell` sends it a frame. Source: `units.coordinator`."""

    def finished(self, host: str, report: Json) -> None:
        """Take in how a run ended on a host; it may complete the report."""


# The definition with the content of hooks, what else the executor gets, and who follows the hosts.
Late = tuple[Definition, Mapping[str, Any], Events | None]


class Unjoined(StatecfgError):
    """What was looked up could not be found: the run ends, and nothing was done on any host."""
