"""Byte streams to a program on a host, over SSH or on this machine. Imports `playbook` and `problems`.

Importing this module is cheap: `connect` loads the transport that a target needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Protocol

from statecfg.playbook.inventory import TRANSPORTS, Host
from statecfg.problems.frozen import dataclass

from .errors import (
    AuthenticationFailed,
    BecomeFailed,
    ConnectionLost,
    HostKeyRejected,
    TransportError,
    Unreachable,
    WorkerLost,
)

__all__ = [
    "CHUNK",
    "LOCAL",
    "STDERR_KEPT",
    "WRITE_DEADLINE",
    "AuthenticationFailed",
    "BecomeFailed",
    "ConnectionLost",
    "HostConnection",
    "HostKeyRejected",
    "SshSettings",
    "Stream",
    "Target",
    "TransportError",
    "Unreachable",
    "WorkerLost",
    "connect",
    "load",
]

LOCAL = "@local"
CHUNK = 64 * 1024
STDERR_KEPT = 64 * 1024
WRITE_DEADLINE = 60.0


class Stream(Protocol):
    """One program on a host: bytes in, bytes out. One thread can write while another reads."""

    def write(self, data: bytes) -> None:
        """Send all of `data`.

        :raises ConnectionLost: the program ended, or has read nothing for 60 s
        """

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes of stdout.

        :param timeout: seconds to wait for them
        :returns: at most 64 KiB; b"" at the end of the output; None after the timeout
        :raises ConnectionLost: the connection ended before the program's output
        """

    def stderr(self) -> bytes:
        """Return the newest 64 KiB that the program wrote to stderr."""

    def exit_status(self) -> int | None:
        """Return the exit status; None while it is unknown. A negative number is a signal. Use it only in messages."""

    def close(self) -> None:
        """Close the stream. Repeated calls change nothing."""


class HostConnection(Protocol):
    """A connection to one host, on which programs can be started.

    :ivar peer: the host key that the host proved to have; "local" for this machine
    :ivar address: the address that was reached
    :ivar login: the user who logged in over SSH, and the public key that the host accepted; "" without SSH
    :ivar warnings: the user's settings that were ignored
    """

    peer: str
    address: str
    login: tuple[str, str]
    warnings: tuple[str, ...]

    def open(self, command: Sequence[str]) -> Stream:
        """Start a program.

        :param command: the program and its arguments
        :raises ConnectionLost: the connection has ended
        """

    def close(self) -> None:
        """Close all streams and the connection. Repeated calls change nothing."""


@dataclass(frozen=True)
class Target:
    """How to reach a host. Missing values come from the user's ssh_config, then from the defaults of ssh.

    :param name: the host's name; without an `address`, it is looked up in ssh_config
    :param address: a host name or IP address
    :param port: 1 to 65535
    :param user: the user to log in as
    :param identity_files: private key files
    :param proxy_jump: `[user@]host[:port][,…]` or "none"
    :param transport: one of `TRANSPORTS`; the host named `@local` is always local
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
        """Return the target for a host of the inventory."""
        login = host.login
        address, keys = host.address or None, tuple(login.identity_files)
        return cls(host.name, address, host.port, login.user, keys, host.proxy_jump, host.transport)


@dataclass(frozen=True)
class SshSettings:
    """How to connect. Times are in seconds.

    :param ssh_config: a file that must exist; None for the files of the user and the system; "none" for no file, as in
        `ssh -F`
    :param known_hosts: files; None for those in ssh_config
    :param accept_new: add the key of a new host to known_hosts
    :param use_agent: offer the keys of the SSH agent, as ssh does
    :param default_keys: offer the keys in ~/.ssh, as ssh does
    :param processes: how many processes connect to the hosts of the run, and divide the limits of simultaneous logins
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
    processes: int = 1


def load(targets: Iterable[Target]) -> None:
    """Load the modules that `connect` needs for some targets.

    Call it before the threads that connect: if two threads import at the same time, both take far longer.
    """
    for name in {_transport(target) for target in targets} & TRANSPORTS.keys():
        import_module(f"{__name__}.{TRANSPORTS[name]}")


def connect(target: Target, settings: SshSettings | None = None) -> HostConnection:
    """Connect to a host: verify its key, then log in.

    :param target: the host
    :param settings: how to connect
    :returns: an open connection, which the caller must close
    :raises TransportError: the connection failed
    """
    name = _transport(target)
    if name not in TRANSPORTS:
        raise Unreachable(target.name, f"unknown transport {name!r}", f"use one of: {', '.join(TRANSPORTS)}")
    # Each of these modules has a function `connect` with these parameters.
    transport = import_module(f"{__name__}.{TRANSPORTS[name]}")
    connection: HostConnection = transport.connect(target, settings or SshSettings())
    return connection


def _transport(target: Target) -> str:
    return "local" if target.name == LOCAL else target.transport
