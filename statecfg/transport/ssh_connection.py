"""Connect over SSH, hop by hop: TCP or a jump host's channel, then handshake, host key and login."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Sequence

from statecfg.remote.graph.errors import StatecfgError

from . import SshSettings, Target
from .dial import LoginGate, dial, gate, resolve
from .errors import ConnectionLost, TransportError, Unreachable
from .host_keys import require_trust, trusted
from .known_hosts import HostKey
from .quoting import command_line
from .route import Hop, route
from .ssh import FAILURES, RSA, Transport, paramiko, shut
from .ssh_jumps import JumpChain, enter
from .ssh_login import login
from .ssh_stream import SshStream

HANDSHAKE_TIME = 15.0
GATE_TIME = 300.0
RETRY_FOR = 30.0
LOGINS = 64  # simultaneous logins of a run
LOGINS_PER_JUMP = 16  # simultaneous logins through one jump host
EVERYWHERE = "*"  # the key of the gate of all logins
NO_JUMPS = JumpChain((), SshSettings())


class _TurnedAway(StatecfgError):
    """The host dropped the connection before it sent anything, usually because of too many logins. Retry."""


class SshConnection:
    """A connection on which both sides are authenticated.

    :param way: the jump hosts that the connection uses
    """

    def __init__(
        self,
        host: str,
        peer: str,
        address: str,
        transport: Transport,
        way: JumpChain,
        timeout: float,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.host = host
        self.peer = peer
        self.address = address
        self.transport = transport
        self.login = transport.used
        self.way = way
        self.channel_timeout = timeout
        self.warnings = warnings
        self.closing = threading.Lock()

    def open(self, command: Sequence[str]) -> SshStream:
        """Start a program, quoted for any login shell. This takes one round trip.

        It does not wait for the answer to the request: if the host refuses, reading fails.

        :raises ConnectionLost: the connection has ended
        """
        transport, line = self.transport, command_line(command)
        try:
            channel = transport.open_session(timeout=self.channel_timeout)
            stream = SshStream(self.host, channel, self.way)
            transport.request_exec(channel, line)
        except FAILURES as error:
            raise ConnectionLost(self.host, f"cannot open a channel: {error}") from error
        return stream

    def close(self) -> None:
        """Close the connection. Jump hosts stay connected while other connections use them."""
        if self.closing.acquire(blocking=False):
            shut(self.transport)
            self.way.leave()


def connect(target: Target, settings: SshSettings) -> SshConnection:
    """Connect to `target` over its jump hosts; see `statecfg.transport.connect`."""
    *jumps, hop = route(target, settings)

    def build(transports: list[Transport]) -> None:
        for jump in jumps:
            _open_hop(jump, settings, transports)

    try:
        way = enter(tuple(jumps), settings, build) if jumps else NO_JUMPS
    except TransportError as error:
        raise type(error)(target.name, f"jump host {error.host}: {error.summary}", error.hint) from error
    transports = list(way.transports)
    try:
        key = _open_hop(hop, settings, transports)
    except TransportError as error:
        broken = way.notice() if jumps else None
        way.leave()
        if broken is None:
            raise
        raise type(error)(target.name, f"jump host {broken}: the connection to it was lost", error.hint) from error
    except BaseException:
        way.leave()
        raise
    warnings = dict.fromkeys(text for step in (*jumps, hop) for text in step.warnings)
    # Behind a jump host, only the jump host knows the IP address.
    address = hop.host if jumps else str(transports[-1].getpeername()[0])
    timeout = settings.channel_timeout
    return SshConnection(target.name, str(key), address, transports[-1], way, timeout, tuple(warnings))


def _open_hop(hop: Hop, settings: SshSettings, transports: list[Transport]) -> HostKey:
    """Connect the next hop and append it to `transports`. Retry if the host drops the connection early."""
    first_refusal = None
    for attempt in range(10):
        try:
            return _attempt(hop, settings, transports)
        except _TurnedAway as refusal:
            now = time.monotonic()
            first_refusal = first_refusal or now
            delay = 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  # spreads retries, hides nothing
            if now + delay - first_refusal > RETRY_FOR:
                message = f": {refusal}" if str(refusal) else ""
                raise Unreachable(
                    hop.name,
                    f"it dropped {attempt + 1} connections before the SSH banner{message}",
                    "Check that sshd listens there. Its MaxStartups and PerSourcePenalties limit new connections.",
                ) from None
            time.sleep(delay)
    raise AssertionError("the delays exceed RETRY_FOR before the last attempt")


def _attempt(hop: Hop, settings: SshSettings, transports: list[Transport]) -> HostKey:
    door = _door(hop, settings, transports)
    with contextlib.ExitStack() as held:
        held.enter_context(door.enter(hop.name, GATE_TIME))
        if transports:
            held.enter_context(_limit(hop, settings, transports[-1]).enter(hop.name, GATE_TIME))
            sock: socket.socket | paramiko.Channel = _through(hop, settings, transports[-1])
        else:
            sock = dial(hop.name, hop.host, hop.port, hop.connect_timeout)
        transport = Transport(sock)
        try:
            # A handshake is mostly computing. More of them at a time would only make each slower than its deadline.
            with gate(EVERYWHERE, settings.processes, LOGINS).enter(hop.name, GATE_TIME):
                key = _handshake(hop, settings, transport)
                require_trust(hop, key)
                login(hop, settings, transport)
        except _TurnedAway:
            door.turned_away()
            shut(transport)
            raise
        except BaseException:
            shut(transport)
            raise
        door.let_in()
    transports.append(transport)
    return key


def _door(hop: Hop, settings: SshSettings, transports: Sequence[Transport]) -> LoginGate:
    """Return the gate of the logins to an address."""
    if transports:
        return gate(f"{_peer(hop, transports[0])} > {hop.host}", settings.processes)
    return gate(str(resolve(hop.name, hop.host, hop.port, hop.connect_timeout)[0][1][0]), settings.processes)


def _limit(hop: Hop, settings: SshSettings, jump: Transport) -> LoginGate:
    """Return the gate of the logins through a jump host."""
    return gate(f"{_peer(hop, jump)} >", settings.processes, LOGINS_PER_JUMP)


def _peer(hop: Hop, jump: Transport) -> object:
    """Return the address of a jump host, or of the first one before it.

    :raises Unreachable: the connection to it was lost
    """
    try:
        return jump.getpeername()
    except OSError as error:
        raise Unreachable(hop.name, "the connection to its jump host was lost") from error


def _through(hop: Hop, settings: SshSettings, jump: Transport) -> paramiko.Channel:
    try:
        return jump.open_channel(
            "direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=settings.channel_timeout
        )
    except FAILURES as error:
        raise Unreachable(
            hop.name, f"the jump host could not connect to {hop.host} port {hop.port}: {error}"
        ) from error


def _handshake(hop: Hop, settings: SshSettings, transport: Transport) -> HostKey:
    key_types = trusted(hop).key_types(hop.trust.alias, hop.trust.port)
    transport.order_host_keys([a for key_type in key_types for a in (RSA if key_type == "ssh-rsa" else (key_type,))])
    transport.banner_timeout = settings.banner_timeout
    ended = threading.Event()
    transport.start_client(event=ended)
    in_time = ended.wait(settings.banner_timeout + HANDSHAKE_TIME)
    if not in_time or not transport.is_active():
        raise _handshake_failure(hop, transport, in_time)
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def _handshake_failure(hop: Hop, transport: Transport, finished: bool) -> Exception:
    error = transport.get_exception()
    packets = transport.packetizer
    if packets.problem:
        return Unreachable(hop.name, f"it sent {packets.problem}", "Check that an SSH server listens there.")
    if not finished:
        return Unreachable(hop.name, f"the SSH handshake did not end within {HANDSHAKE_TIME:g} s")
    if not transport.remote_version:
        if "no SSH banner in time" in str(error):
            return Unreachable(hop.name, "it sent no SSH banner in time", "Check that an SSH server listens there.")
        return _TurnedAway(packets.last_line)
    if isinstance(error, EOFError) or error is None:
        return Unreachable(hop.name, "it closed the connection during the SSH handshake")
    return Unreachable(hop.name, f"the SSH handshake failed: {error}")
