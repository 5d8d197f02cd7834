"""Encrypted links to workers on other machines.

Both sides make a certificate for one run, and each accepts only the other's. No other process can connect, and no key
leaves the process that made it. A certificate is public, so the sides can exchange them through Dask's scheduler.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import selectors
import socket
import ssl
import tempfile
import time
from dataclasses import field

from statecfg.problems.frozen import dataclass

HANDSHAKE = 10.0  # seconds for one handshake
MOST = 64  # handshakes of a worker at the same time
SLICE = 0.5  # seconds of one wait, after which old handshakes are closed
# Only the two sides trust a certificate, and only during one run. Its dates must not depend on their clocks.
FROM, UNTIL = datetime.datetime(2000, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59)


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate for one run, and its key.

    :param public: the certificate as PEM
    :param key: as encrypted PEM, because OpenSSL reads it from a file
    """

    public: str
    key: bytes = field(repr=False)
    password: bytes = field(repr=False)


def certificate() -> Certificate:
    """Make a new certificate and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "statecfg")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(FROM)
        .not_valid_after(UNTIL)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    password = os.urandom(32).hex().encode()
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    return Certificate(signed.public_bytes(serialization.Encoding.PEM).decode(), encrypted, password)


def _context(own: Certificate, peer: str, server: bool) -> ssl.SSLContext:
    """Return a context that proves `own`, and accepts only the certificate `peer`.

    :raises ssl.SSLError: `peer` is not a certificate
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the certificate itself is known, not a name in it
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=peer)
    with tempfile.TemporaryDirectory() as directory:
        chain = os.path.join(directory, "chain")
        with open(chain, "wb") as file:
            file.write(own.key + own.public.encode())
        context.load_cert_chain(chain, password=own.password)
    return context


def connect(address: tuple[str, int], own: Certificate, peer: str, timeout: float) -> ssl.SSLSocket:
    """Connect to the worker that has the certificate `peer`.

    :param timeout: seconds for the connection and the handshake
    :raises OSError: nothing listens, it has another certificate, or `peer` is not one
    """
    context = _context(own, peer, server=False)
    plain = socket.create_connection(address, timeout)
    try:
        return _tuned(context.wrap_socket(plain))
    except BaseException:
        plain.close()
        raise


def accept(listener: socket.socket, own: Certificate, peer: str, timeout: float) -> ssl.SSLSocket:
    """Accept one connection, of the controller that has the certificate `peer`. All others are closed.

    :param timeout: seconds to wait for it
    :raises TimeoutError: no process with this certificate has connected in time
    :raises OSError: the listener does not work, or `peer` is not a certificate
    """
    deadline = time.monotonic() + timeout
    with contextlib.closing(_Handshakes(listener, _context(own, peer, server=True))) as handshakes:
        while (left := deadline - time.monotonic()) > 0:
            controller = handshakes.advance(min(left, SLICE))
            if controller is not None:
                return _tuned(controller)
    raise TimeoutError("the controller has not connected")


class _Handshakes:
    """The handshakes with all who have connected. A silent stranger, for example a port scanner, delays no other one.

    :param listener: its new connections are accepted
    """

    def __init__(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        self._listener, self._context = listener, context
        self._until: dict[ssl.SSLSocket, float] = {}  # a connection → when its handshake must be over; the oldest first
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def advance(self, seconds: float) -> ssl.SSLSocket | None:
        """Wait for new connections and data; return a connection whose handshake is complete.

        :param seconds: how long to wait at most
        :raises OSError: the listener does not work
        """
        for key, _ in self._selector.select(seconds):
            connection: ssl.SSLSocket | None = key.data
            if connection is None:
                self._admit()
            elif connection in self._until and self._complete(connection):
                self._forget(connection)
                return connection
        now = time.monotonic()
        for late in [each for each, until in self._until.items() if until < now]:
            self._drop(late)
        return None

    def close(self) -> None:
        """Close all connections whose handshakes are not complete."""
        for each in list(self._until):
            self._drop(each)
        self._selector.close()

    def _admit(self) -> None:
        """Accept a connection. If there are too many, close the oldest: the controller's handshake is quick."""
        try:
            plain, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it has left already
            return
        if len(self._until) == MOST:
            self._drop(next(iter(self._until)))
        plain.setblocking(False)
        try:
            new = self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        except OSError:  # it has left already
            plain.close()
            return
        self._until[new] = time.monotonic() + HANDSHAKE
        self._selector.register(new, selectors.EVENT_READ, new)

    def _complete(self, connection: ssl.SSLSocket) -> bool:
        """Continue a handshake; return whether it is complete. If it fails, close the connection."""
        try:
            connection.do_handshake()
        except ssl.SSLWantReadError:
            self._selector.modify(connection, selectors.EVENT_READ, connection)
        except ssl.SSLWantWriteError:
            self._selector.modify(connection, selectors.EVENT_WRITE, connection)
        except OSError:
            self._drop(connection)
        else:
            return True
        return False

    def _drop(self, connection: ssl.SSLSocket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: ssl.SSLSocket) -> None:
        del self._until[connection]
        self._selector.unregister(connection)


def _tuned(encrypted: ssl.SSLSocket) -> ssl.SSLSocket:
    """Return a connection with the options of a link.

    :raises OSError: the connection is lost
    """
    encrypted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    encrypted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    encrypted.settimeout(None)
    return encrypted
