"""SSH by paramiko: the only module that knows it.

We use its transport and channels; host keys, keys to offer, limits and deadlines are ours (see `host_keys`,
`identities`, `limits`).
"""

from __future__ import annotations

import logging
import random
import shlex
import socket
import sys
import threading
import time
from collections.abc import Sequence

from . import CHUNK, STDERR_KEPT, WRITE_DEADLINE, Settings, Target
from .dial import Gate, dial, gate, resolve, within
from .errors import AuthenticationFailed, ConnectionLost, TransportError, Unreachable
from .host_keys import require_trust, trusted
from .identities import MAX_OFFERS, Identities, KeyLocked, KeyUnusable
from .known_hosts import HostKey
from .limits import LimitedPackets
from .route import Hop, route
from .tail import Tail

# paramiko loads `invoke`, if it is installed, to run the programs that an ssh_config's Match names. We read
# ssh_config ourselves, and it is half of the time that paramiko takes to load.
_invoke = sys.modules.get("invoke")
sys.modules["invoke"] = None  # type: ignore[assignment]
try:
    import paramiko
    from paramiko.common import cMSG_CHANNEL_REQUEST
    from paramiko.packet import NeedRekeyException, Packetizer
finally:
    del sys.modules["invoke"]
    if _invoke is not None:
        sys.modules["invoke"] = _invoke

# paramiko logs what servers send; it goes nowhere, our errors say what went wrong.
_log = logging.getLogger("paramiko")
_log.addHandler(logging.NullHandler())
_log.propagate = False
_log.setLevel(logging.CRITICAL + 1)

KEX = ("mlkem768x25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "diffie-hellman-group16-sha512")
CIPHERS = ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr", "aes192-ctr", "aes128-ctr")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512")
HOST_KEYS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
RSA = ("rsa-sha2-512", "rsa-sha2-256")

HANDSHAKE_TIME = 15.0
GATE_TIME = 300.0
RETRY_FOR = 30.0
CLOSE_TIME = 2.0
AGENT_TIME = 5.0
WRITE_PIECE = 32 * 1024
SLICE = 0.5


class _Packetizer(LimitedPackets, Packetizer):
    """Packets within our limits."""

    def ask_for_new_keys(self) -> None:
        """Interrupt the reader so that it negotiates new keys."""
        raise NeedRekeyException


class _Transport(paramiko.Transport):
    """A transport that offers what we trust, and no host certificates, since we can't check them."""

    packetizer: _Packetizer
    _preferred_kex: tuple[str, ...] = tuple(k for k in KEX if k in paramiko.Transport._kex_info)  # type: ignore[attr-defined]
    _preferred_ciphers: tuple[str, ...] = CIPHERS
    _preferred_macs: tuple[str, ...] = MACS
    _preferred_keys: tuple[str, ...] = HOST_KEYS
    _preferred_pubkeys: tuple[str, ...] = HOST_KEYS

    def __init__(self, sock: socket.socket | paramiko.Channel) -> None:
        super().__init__(sock, packetizer_class=_Packetizer)

    def send_unanswered(self, message: paramiko.Message) -> None:
        """Send a request without waiting for the answer, which paramiko's own methods would do for ever."""
        self._send_user_message(message)  # type: ignore[attr-defined]

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """Return the host key algorithms to offer."""
        return self._preferred_keys


class _TurnedAway(Exception):
    """The host dropped the connection before it said anything: too many newcomers, as a rule. Worth a retry."""


class SshStream:
    """One channel of a connection. A thread of its own drains stderr, so that stdout can't be blocked by it."""

    def __init__(self, host: str, channel: paramiko.Channel) -> None:
        self.host = host
        self.channel = channel
        self.tail = Tail(STDERR_KEPT)
        self.arrived = threading.Event()
        self.closed = False
        channel.settimeout(SLICE)
        channel.in_buffer.set_event(self.arrived)
        threading.Thread(target=self._drain_stderr, daemon=True).start()

    def write(self, data: bytes) -> None:
        """Send all of `data`; raises ConnectionLost."""
        rest = memoryview(data)
        deadline = time.monotonic() + WRITE_DEADLINE
        while rest:
            try:
                sent = self.channel.send(bytes(rest[:WRITE_PIECE]))
            except TimeoutError:
                if time.monotonic() > deadline:
                    stuck = f"the program has read nothing for {WRITE_DEADLINE:.0f} s"
                    raise ConnectionLost(self.host, stuck) from None
                continue
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise self._lost("while it was sent data") from error
            # paramiko drops data without a word when the connection has died.
            if sent == 0 or not self.channel.get_transport().is_active():
                raise self._lost("while it was sent data")
            rest = rest[sent:]
            deadline = time.monotonic() + WRITE_DEADLINE

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes, b"" at the end, None when none came in `timeout` seconds; raises ConnectionLost."""
        if not self.arrived.wait(max(0.0, timeout)):
            return None
        try:
            data: bytes = self.channel.recv(CHUNK)
        except TimeoutError:
            return None
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise self._lost("while its output was read") from error
        if not data and (self.closed or not self.channel.eof_received):
            raise self._lost("before the program's output ended")
        return data

    def stderr(self) -> bytes:
        """Return the newest 64 KiB of stderr."""
        return self.tail.bytes()

    def exit_status(self) -> int | None:
        """Return the exit status, or None when it is not known (yet, or because a signal ended the program)."""
        status: int = self.channel.exit_status
        return status if self.channel.exit_status_ready() and status >= 0 else None

    def close(self) -> None:
        """Close the channel; the program sees the end of its stdin."""
        self.closed = True
        try:
            within(CLOSE_TIME, self.channel.close)
        except (TimeoutError, OSError, EOFError, paramiko.SSHException):
            # The peer takes nothing any more: the connection is of no further use.
            _shut(self.channel.get_transport())

    def _lost(self, when: str) -> ConnectionLost:
        if self.closed:
            return ConnectionLost(self.host, "the stream is closed")
        transport = self.channel.get_transport()
        if transport.is_active() and self.channel.closed:
            if not self.channel.eof_received:
                return ConnectionLost(self.host, f"the channel was closed {when}", "Did the host refuse the program?")
            return ConnectionLost(self.host, "the program ended before it read everything")
        return ConnectionLost(self.host, f"the connection was lost {when}")

    def _drain_stderr(self) -> None:
        while True:
            try:
                data = self.channel.recv_stderr(CHUNK)
            except TimeoutError:
                continue
            except (OSError, EOFError, paramiko.SSHException):
                return
            if not data:
                return
            self.tail.add(data)


class SshConnection:
    """A connection that has been authenticated both ways; `transports` leads from here to the host."""

    def __init__(self, host: str, peer: str, transports: Sequence[_Transport], channel_timeout: float) -> None:
        self.host = host
        self.peer = peer
        self.transports = tuple(transports)
        self.channel_timeout = channel_timeout

    def open(self, command: Sequence[str]) -> SshStream:
        """Start `command`, quoted for whatever shell the user has; costs one round trip.

        The answer to the request itself is not waited for: if it is a refusal, reading says so.
        """
        transport = self.transports[-1]
        try:
            channel = transport.open_session(timeout=self.channel_timeout)
            stream = SshStream(self.host, channel)
            request = paramiko.Message()
            request.add_byte(cMSG_CHANNEL_REQUEST)
            request.add_int(channel.remote_chanid)
            request.add_string("exec")
            request.add_boolean(True)
            request.add_string(shlex.join(command))
            transport.send_unanswered(request)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise ConnectionLost(self.host, f"cannot open a channel: {error}") from error
        return stream

    def close(self) -> None:
        """Close the connection, the far end first."""
        for transport in reversed(self.transports):
            _shut(transport)


def connect_ssh(target: Target, settings: Settings) -> SshConnection:
    """Connect to `target` over its jump hosts; see `statecfg.transport.connect`."""
    transports: list[_Transport] = []
    key = None
    try:
        hops = route(target, settings)
        for hop in hops:
            try:
                key = _open_hop(hop, settings, transports)
            except TransportError as error:
                raise _blame(target, hop, hops, error) from error
    except BaseException:
        for transport in reversed(transports):
            _shut(transport)
        raise
    return SshConnection(target.name, str(key), transports, settings.channel_timeout)


def _blame(target: Target, hop: Hop, hops: Sequence[Hop], error: TransportError) -> TransportError:
    if hop is hops[-1]:
        return error
    return type(error)(target.name, f"jump host {hop.name}: {error.summary}", error.hint)


def _open_hop(hop: Hop, settings: Settings, transports: list[_Transport]) -> HostKey:
    """Connect one hop behind the ones there are, and add it to them; retry when turned away at the door."""
    first_refusal = None
    for attempt in range(10):
        try:
            return _attempt(hop, settings, transports)
        except _TurnedAway as refusal:
            now = time.monotonic()
            first_refusal = first_refusal or now
            delay = 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
            if now + delay - first_refusal > RETRY_FOR:
                said = f": {refusal}" if str(refusal) else ""
                raise Unreachable(
                    hop.name,
                    f"it dropped {attempt + 1} connections before the SSH banner{said}",
                    "Is it sshd that listens there? Its MaxStartups and PerSourcePenalties limit newcomers.",
                ) from None
            time.sleep(delay)
    raise AssertionError("the delays add up to more than RETRY_FOR long before")


def _attempt(hop: Hop, settings: Settings, transports: list[_Transport]) -> HostKey:
    door = _door(hop, transports)
    with door.enter(hop.name, GATE_TIME):
        sock = (
            _through(hop, settings, transports[-1])
            if transports
            else dial(hop.name, hop.host, hop.port, hop.connect_timeout)
        )
        transport = _Transport(sock)
        try:
            key = _handshake(hop, settings, transport)
            require_trust(hop, key)
            _login(hop, settings, transport)
        except _TurnedAway:
            door.turned_away()
            _shut(transport)
            raise
        except BaseException:
            _shut(transport)
            raise
        door.let_in()
    transports.append(transport)
    return key


def _door(hop: Hop, transports: Sequence[_Transport]) -> Gate:
    if transports:
        return gate(f"{transports[0].getpeername()} > {hop.host}")
    return gate(str(resolve(hop.name, hop.host, hop.port, hop.connect_timeout)[0][1][0]))


def _through(hop: Hop, settings: Settings, jump: _Transport) -> paramiko.Channel:
    try:
        return jump.open_channel(
            "direct-tcpip", (hop.host, hop.port), ("127.0.0.1", 0), timeout=settings.channel_timeout
        )
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise Unreachable(
            hop.name, f"the jump host could not connect to {hop.host} port {hop.port}: {error}"
        ) from error


def _handshake(hop: Hop, settings: Settings, transport: _Transport) -> HostKey:
    kinds = trusted(hop).kinds(hop.alias, hop.alias_port)
    wanted = [a for kind in kinds for a in (RSA if kind == "ssh-rsa" else (kind,)) if a in HOST_KEYS]
    transport._preferred_keys = tuple(dict.fromkeys((*wanted, *HOST_KEYS)))
    transport.banner_timeout = settings.banner_timeout
    done = threading.Event()
    transport.start_client(event=done)
    finished = done.wait(settings.banner_timeout + HANDSHAKE_TIME)
    if not finished or not transport.is_active():
        raise _handshake_failure(hop, transport, finished)
    key = transport.get_remote_server_key()
    return HostKey(key.get_name(), key.asbytes())


def _handshake_failure(hop: Hop, transport: _Transport, finished: bool) -> Exception:
    error = transport.get_exception()
    packets = transport.packetizer
    if packets.problem:
        return Unreachable(hop.name, f"it sent {packets.problem}", "Is it an SSH server?")
    if not finished:
        return Unreachable(hop.name, f"the SSH handshake did not end within {HANDSHAKE_TIME:g} s")
    if not transport.remote_version:
        if "no SSH banner in time" in str(error):
            return Unreachable(hop.name, "it sent no SSH banner in time", "Is it an SSH server?")
        return _TurnedAway(packets.last_line)
    if isinstance(error, EOFError) or error is None:
        return Unreachable(hop.name, "it closed the connection during the SSH handshake")
    return Unreachable(hop.name, f"the SSH handshake failed: {error}")


def _login(hop: Hop, settings: Settings, transport: _Transport) -> None:
    agents: list[paramiko.Agent] = []
    identities = Identities[paramiko.PKey](hop, _load_key, lambda: _agent_keys(hop, agents))
    deadline = time.monotonic() + settings.auth_timeout
    try:
        for key in identities.offers():
            done = threading.Event()
            try:
                transport.auth_publickey(hop.user, key, event=done)
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise _login_failure(hop, identities, transport, str(error)) from error
            if not done.wait(max(0.0, deadline - time.monotonic())):
                raise AuthenticationFailed(hop.name, f"no answer to the login within {settings.auth_timeout:g} s")
            if transport.is_authenticated():
                transport.packetizer.logged_in()
                return
            reason = transport.get_exception()
            stop = isinstance(reason, (paramiko.BadAuthenticationType, paramiko.ssh_exception.PartialAuthentication))
            if stop or not transport.is_active() or len(identities.offered) >= MAX_OFFERS:
                raise _login_failure(hop, identities, transport, reason)
        raise _login_failure(hop, identities, transport, None)
    finally:
        for agent in agents:
            agent.close()


def _login_failure(
    hop: Hop, identities: Identities[paramiko.PKey], transport: _Transport, error: Exception | str | None
) -> TransportError:
    hint = "; ".join(identities.problems)
    if isinstance(error, paramiko.ssh_exception.PartialAuthentication):
        more = ", ".join(error.allowed_types)
        return AuthenticationFailed(hop.name, f"the key was right, but it also wants: {more}", hint)
    if isinstance(error, paramiko.BadAuthenticationType):
        allowed = ", ".join(error.allowed_types) or "nothing"
        return AuthenticationFailed(hop.name, f"it does not accept keys for {hop.user}, only: {allowed}", hint)
    if isinstance(error, str) or (isinstance(error, Exception) and not isinstance(error, EOFError)):
        return AuthenticationFailed(hop.name, f"login as {hop.user} failed: {error}", hint)
    if not identities.offered:
        looked = ", ".join(hop.keys) or "no key files"
        return AuthenticationFailed(hop.name, f"no key to log in with as {hop.user} (looked at: {looked})", hint)
    offered = ", ".join(identities.offered)
    end = "" if transport.is_active() else " and closed the connection"
    return AuthenticationFailed(hop.name, f"it did not accept any key for {hop.user}{end} (offered: {offered})", hint)


_keys: dict[str, tuple[bytes, paramiko.PKey]] = {}


def _load_key(path: str) -> tuple[bytes, paramiko.PKey]:
    if path not in _keys:
        try:
            key = paramiko.PKey.from_path(path)
        except TypeError as error:
            # That is how the library below says: encrypted, and no passphrase given.
            raise KeyLocked from error
        except paramiko.PasswordRequiredException as error:
            raise KeyLocked from error
        except (ValueError, paramiko.SSHException, paramiko.pkey.UnknownKeyType) as error:
            raise KeyUnusable(f"no private key that can be used ({error})") from error
        _keys[path] = (key.asbytes(), key)
    return _keys[path]


def _agent_keys(hop: Hop, agents: list[paramiko.Agent]) -> list[tuple[bytes, paramiko.PKey]]:
    def ask() -> list[tuple[bytes, paramiko.PKey]]:
        agent = paramiko.Agent()
        agents.append(agent)
        return [(key.asbytes(), key) for key in agent.get_keys()]

    try:
        return within(AGENT_TIME, ask)
    except TimeoutError as error:
        raise AuthenticationFailed(hop.name, f"the SSH agent did not answer within {AGENT_TIME:g} s") from error
    except (OSError, paramiko.SSHException) as error:
        raise AuthenticationFailed(hop.name, f"the SSH agent failed: {error}") from error


def _shut(transport: paramiko.Transport) -> None:
    """Close a transport at once: the socket first, since paramiko's reader would sleep on it for 0.1 s."""
    try:
        transport.sock.shutdown(socket.SHUT_RDWR)
    except (OSError, EOFError, paramiko.SSHException):
        # Not connected any more, or a channel of a jump host that is gone: then there is nothing to wake.
        pass
    transport.close()
