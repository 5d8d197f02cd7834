"""The interface that follows the hosts of a run, and the data that is looked up while statecfg connects to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from statecfg.playbook.compile import Definition
from statecfg.remote.graph.errors import StatecfgError
from statecfg.run.report_model import HostData

Json = Mapping[str, Any]  # of reports, and of the frames of hooks and units


class Events(Protocol):
    """Follows the hosts of a run and calls the controller's hooks. Many threads call it."""

    def collected(self, host: str, values: Mapping[str, Any]) -> None:
        """Note the facts that a host sent because its definition uses them.

        :param values: name of a fact → value
        """

    def planned(self, host: str, report: HostData) -> None:
        """Note that a host has planned; its report contains `facts` and `ledger`."""

    def hook(self, host: str, question: Json, gone: Callable[[], bool], begun: Callable[[], None]) -> Mapping[str, Any]:
        """Call a hook that runs on the controller.

        :param question: `hook`, `event`, `resource`, `seconds`
        :param gone: returns whether the host no longer waits for the hook
        :param begun: called when the hook starts
        :returns: `ok`, `error` and the other data that the hook returned
        """

    def may_go(self, host: str) -> str:
        """Return why a planned host must not continue, "" if it may. Called once, before the host changes anything."""

    def going(self, host: str) -> None:
        """Note that a planned host now applies its plan."""

    def unit(self, host: str, frame: Json, tell: Callable[[Json], None], address: str) -> None:
        """Process a frame of a host's units; see `units.coordinator`.

        :param tell: sends a frame to the host
        """

    def finished(self, host: str, report: HostData) -> None:
        """Note how a run ended on a host; this may add to the report."""


# The definition with the content of hooks, additional data for the executor, and the interface that follows the hosts.
Late = tuple[Definition, Mapping[str, Any], Events | None]


class Unjoined(StatecfgError):
    """The look-up during the connection failed. The run ends, and no host was changed."""
