"""Byte streams to a program on a host: over SSH, or on this machine.

Importing this costs nothing; `connect` loads the transport that a target needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from statecfg.playbook.inventory import TRANSPORTS

from .errors import (
    AuthenticationFailed,
    BecomeFailed,
    ConnectionLost,
    HostKeyRejected,
    TransportError,
    Unreachable,
)

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host

__all__ = [
    "CHUNK",
    "LOCAL",
    "STDERR_KEPT",
    "WRITE_DEADLINE",
    "AuthenticationFailed",
    "BecomeFailed",
    "Connection",
    "ConnectionLost",
    "HostKeyRejected",
    "Settings",
    "Stream",
    "Target",
    "TransportError",
    "Unreachable",
    "connect",
]

LOCAL = "@local"
CHUNK = 64 * 1024
STDERR_KEPT = 64 * 1024
WRITE_DEADLINE = 60.0


class Stream(Protocol):
    """One program on a host: bytes in, bytes out. One thread may write while another reads."""

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises ConnectionLost when it ended, or took nothing for 60 s."""

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes (at most 64 KiB), b"" at the end, None when none came in `timeout` seconds.

        Raises ConnectionLost when the link died before the program's output ended.
        """

    def stderr(self) -> bytes:
        """Return the newest 64 KiB of what the program wrote to stderr."""

    def exit_status(self) -> int | None:
        """Return the exit status when it is known by now (negative: the signal). For messages, never a result."""

    def close(self) -> None:
        """End the conversation. Harmless when repeated."""


class Connection(Protocol):
    """A way to start programs on one host.

    `peer` is what it proved to be, `address` where it was reached, and `warnings` says what of the user's settings was
    left out.
    """

    peer: str
    address: str
    warnings: tuple[str, ...]

    def open(self, command: Sequence[str]) -> Stream:
        """Start `command` (an argument list); raises ConnectionLost."""

    def close(self) -> None:
        """Close every stream and the connection. Harmless when repeated."""


@dataclass(frozen=True)
class Target:
    """Where a host is. What is left out comes from the user's ssh_config, then from ssh's defaults.

    `name` what the user calls it, looked up in ssh_config when there is no `address`; `port` 1–65535; `user` on the
    host; `identity_files` private key files; `proxy_jump` `[user@]host[:port][,…]` or "none"; `transport` one
    of `TRANSPORTS` (the name `@local` is always local).
    """

    name: str
    address: str | None = None
    port: int | None = None
    user: str | None = None
    identity_files: tuple[str, ...] = ()
    proxy_jump: str | None = None
    transport: str = "ssh"

    @classmethod
    def of(cls, host: Host) -> Target:
        """Return where a host of the inventory is."""
        keys = tuple(host.identity_files)
        return cls(host.name, host.address or None, host.port, host.user, keys, host.proxy_jump, host.transport)


@dataclass(frozen=True)
class Settings:
    """How to connect; times in seconds.

    `ssh_config` a file (it must exist), None for the user's and the system's own, "none" for no file at all, as `ssh
    -F` has it; `known_hosts` files, None for what ssh_config says; `accept_new` adds the key of a host never seen;
    `use_agent` and `default_keys` as ssh does.
    """

    ssh_config: str | None = None
    known_hosts: tuple[str, ...] | None = None
    accept_new: bool = False
    use_agent: bool = True
    default_keys: bool = True
    connect_timeout: float = 10.0
    banner_timeout: float = 10.0
    auth_timeout: float = 15.0
    channel_timeout: float = 10.0


def connect(target: Target, settings: Settings | None = None) -> Connection:
    """Connect to a host.

    :param target: the host
    :param settings: how to connect
    :returns: an open connection; the caller closes it
    :raises TransportError: if the host can't be reached, or if one side can't prove its identity
    """
    name = "local" if target.name == LOCAL else target.transport
    if name not in TRANSPORTS:
        raise Unreachable(target.name, f"unknown transport {name!r}", f"use one of: {', '.join(TRANSPORTS)}")
    # Each of these modules has a function `connect` with these parameters.
    transport = import_module(f"statecfg.transport.{TRANSPORTS[name]}")
    connection: Connection = transport.connect(target, settings or Settings())
    return connection
