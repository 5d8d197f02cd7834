"""Parts of the options of a run: how it reaches the hosts, how long it waits, and what a saved plan expects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.transport import HostConnection, SshSettings, Target, connect, load
from statecfg.transport.become import Become

CONNECTED = 100  # hosts
PATIENCE = 1800.0  # seconds without progress (heartbeats don't count), in addition to the nodes' own time limits


@dataclass(frozen=True)
class Access:
    """How a run logs in to the hosts.

    :param settings: of the connections; None for the defaults
    :param become: the user to become on every host; None to use the inventory
    :param password: for hosts that become another user because of the inventory
    :param connect: connects to a host, like `transport.connect`; engines with workers have another one
    :param load: prepares connections to hosts, like `transport.load`
    :param arguments: the arguments of statecfg with which another command reaches the same hosts, for hints
    """

    settings: SshSettings | None = None
    become: Become | None = None
    password: str | None = field(default=None, repr=False)
    connect: Callable[[Target, SshSettings | None], HostConnection] = connect
    load: Callable[[Iterable[Target]], None] = load
    arguments: Sequence[str] = ()


@dataclass(frozen=True)
class Limits:
    """How a run processes its hosts: how many at a time, how thoroughly, and when it gives up.

    :param forks: maximum number of hosts to process concurrently
    :param keep_going: after a failure, skip only the nodes that depend on the failed one
    :param lock_timeout: seconds to wait for another run on a host
    :param connect_rate: maximum number of new connections per second; None for no limit
    :param patience: seconds without progress (heartbeats don't count), in addition to the longest timeout of the nodes
    :param connected: maximum number of hosts that stay connected while they wait for the user or for other hosts. The
        others connect again when they can continue
    :param verify_content: read every file, even if its inode, size and times are unchanged
    """

    forks: int = 16
    keep_going: bool = False
    lock_timeout: float = 0.0
    connect_rate: float | None = None
    patience: float = PATIENCE
    connected: int = CONNECTED
    verify_content: bool = False


@dataclass(frozen=True)
class Expected:
    """What a saved plan expects of the hosts. A host that differs is refused.

    :param nodes: host → node → fingerprint
    :param peers: host → host key, in the form of reports; "" if unknown
    :param units: host → the due hooks of its units
    """

    nodes: Mapping[str, Mapping[str, str]]
    peers: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
