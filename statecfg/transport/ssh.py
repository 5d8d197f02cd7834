"""Restrict paramiko, the SSH library. Other modules use it through this one.

We check host keys, choose keys, and set limits and deadlines (see `host_keys`, `identities`, `limits`). paramiko
implements the protocol and its cryptography.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

from .limits import LimitedPackets

# paramiko imports `invoke`, if it is installed, to run the programs in `Match exec` of ssh_config. We read ssh_config
# ourselves, and importing `invoke` takes half of paramiko's import time.
_invoke = sys.modules.get("invoke")
sys.modules["invoke"] = None  # type: ignore[assignment]  # so `import invoke` fails
try:
    import paramiko
    from paramiko.packet import NeedRekeyException, Packetizer
finally:
    del sys.modules["invoke"]
    if _invoke is not None:
        sys.modules["invoke"] = _invoke

__all__ = ["FAILURES", "RSA", "Transport", "paramiko", "shut"]

# paramiko logs text that servers send. We drop its log, because our errors describe what went wrong.
_log = logging.getLogger("paramiko")
_log.addHandler(logging.NullHandler())
_log.propagate = False
_log.setLevel(logging.CRITICAL + 1)

Feed = Callable[[paramiko.Channel, paramiko.Message], None]

# RFC 4254, section 9.
MSG_CHANNEL_WINDOW_ADJUST, MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA = 93, 94, 95
MSG_CHANNEL_CLOSE, MSG_CHANNEL_REQUEST = 97, 98

_PARAMIKO: Any = paramiko.Transport  # its stubs leave out what begins with `_`
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


class LimitedPacketizer(LimitedPackets, Packetizer):
    """paramiko's packets within our limits."""

    def ask_for_new_keys(self) -> None:
        """Interrupt the reader so that it negotiates new keys."""
        raise NeedRekeyException

    def close(self) -> None:
        """Close the socket. Ignore errors: it may be a channel of a jump host whose connection already ended."""
        with contextlib.suppress(*FAILURES):
            super().close()


# Maximum unread bytes. paramiko announces a window of 2 MiB but does not enforce it.
MAX_UNREAD = 4 * 1024 * 1024


def _within_window(feed: Feed) -> Feed:
    def checked(channel: paramiko.Channel, message: paramiko.Message) -> None:
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > MAX_UNREAD:
            raise paramiko.SSHException("the server sends more than the window allows")
        feed(channel, message)

    return checked


class Transport(paramiko.Transport):
    """A transport that offers only algorithms that we trust, and no host certificates, because we can't check them."""

    packetizer: LimitedPacketizer
    _preferred_kex: tuple[str, ...] = tuple(k for k in KEX if k in _PARAMIKO._kex_info)
    _preferred_ciphers: tuple[str, ...] = CIPHERS
    _preferred_macs: tuple[str, ...] = MACS
    _preferred_keys: tuple[str, ...] = HOST_KEYS
    _preferred_pubkeys: tuple[str, ...] = HOST_KEYS

    _channel_handler_table = {  # noqa: RUF012  # paramiko's own name
        number: _within_window(handler) if number in (MSG_CHANNEL_DATA, MSG_CHANNEL_EXTENDED_DATA) else handler
        for number, handler in _PARAMIKO._channel_handler_table.items()
    }

    def __init__(self, sock: socket.socket | paramiko.Channel) -> None:
        super().__init__(sock, packetizer_class=LimitedPacketizer)
        self._ended_channels: set[int] = set()
        self.used = ("", "")  # the user who logged in, and the public key

    def order_host_keys(self, first: list[str]) -> None:
        """Request these host key algorithms first. Algorithms that we don't offer are ignored."""
        wanted = [algorithm for algorithm in first if algorithm in HOST_KEYS]
        self._preferred_keys = tuple(dict.fromkeys((*wanted, *HOST_KEYS)))

    def request_exec(self, channel: paramiko.Channel, command: str) -> None:
        """Request the start of a program without waiting for the answer. paramiko's own method waits without limit."""
        request = paramiko.Message()
        request.add_byte(bytes([MSG_CHANNEL_REQUEST]))
        request.add_int(channel.remote_chanid)
        request.add_string("exec")
        request.add_boolean(True)
        request.add_string(command)
        self._send_user_message(request)  # type: ignore[attr-defined]  # not in its stubs

    def _send_message(self, data: paramiko.Message) -> None:
        # paramiko holds its send lock here. One of its threads can send a message about a channel that another thread
        # has just closed. sshd would then end the whole connection, with all its channels.
        packet = data.asbytes()
        if MSG_CHANNEL_WINDOW_ADJUST <= packet[0] <= MSG_CHANNEL_REQUEST:
            channel = int.from_bytes(packet[1:5], "big")
            if channel in self._ended_channels:
                return
            if packet[0] == MSG_CHANNEL_CLOSE:
                self._ended_channels.add(channel)
        super()._send_message(data)  # type: ignore[misc]  # not in its stubs

    def _parse_channel_open_success(self, message: paramiko.Message) -> None:
        # The server reuses the numbers of closed channels. Its number follows ours in the message.
        self._ended_channels.discard(int.from_bytes(message.asbytes()[4:8], "big"))
        super()._parse_channel_open_success(message)  # type: ignore[misc]  # not in its stubs

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """Return the host key algorithms to offer."""
        return self._preferred_keys


# The exceptions of paramiko if a connection ends or a server violates the protocol.
FAILURES = (OSError, EOFError, paramiko.SSHException)


def shut(transport: paramiko.Transport) -> None:
    """Close a transport immediately: the socket first, because paramiko's reader waits up to 0.1 s for it."""
    try:
        transport.sock.shutdown(socket.SHUT_RDWR)
    except FAILURES:
        # Already disconnected, or a channel of a jump host whose connection ended: no reader is waiting.
        pass
    transport.close()
