"""The links between the controller and its workers."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from statecfg.problems.frozen import dataclass


@dataclass(frozen=True)
class Link:
    """A connection to one worker, which serves it with `relay.serve`.

    :param name: the worker's name, for messages
    :param socket: connected and blocking: one end of a socketpair, or an `ssl.SSLSocket`. The engine closes it
    :param describe: returns why the worker is gone, for messages; "" if that is unknown
    """

    name: str
    socket: socket.socket
    describe: Callable[[], str]


class Workers(Protocol):
    """Worker processes, on this machine or on others."""

    def start(self) -> Sequence[Link]:
        """Start workers or find running ones, and connect to each.

        :returns: the links, at least one
        :raises InvalidInput: the options are invalid, or no worker can be used
        """

    def close(self) -> None:
        """End the workers, or leave them. Repeated calls change nothing."""
