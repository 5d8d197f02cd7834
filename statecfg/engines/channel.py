"""Frames between the controller and a worker: many streams over one socket, in both directions.

A frame has a type, the number of its stream, and a limited length. The sender of data needs credit: the receiver grants
it again after the data were used. So a slow host fills no memory, and does not delay the others.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.wire.strict_json import loads
from statecfg.transport import CHUNK, STDERR_KEPT

CONTROL, DATA, STDERR = 1, 2, 3
LONGEST = {CONTROL: 1024 * 1024, DATA: CHUNK, STDERR: STDERR_KEPT}
WINDOW = 1024 * 1024  # bytes of a stream, per direction, that are under way or not used yet
BEAT = 3.0  # seconds between heartbeats
DEAD = 12.0  # seconds of silence, or without progress while sending, after which the peer is considered lost
SLICE = 0.5  # seconds of one wait for the socket

_HEADER = struct.Struct("!BII")
T = TypeVar("T", str, int, list[Any], dict[str, Any])


class ChannelEnded(StatecfgError):
    """The channel has ended: the peer is gone, or it sent invalid frames."""


class EngineFrame(NamedTuple):
    """One frame.

    :param type: CONTROL (JSON), DATA (of a program's stdin or stdout) or STDERR (the newest bytes of it)
    :param stream: the number of the stream or connection; 0 for the channel itself
    """

    type: int
    stream: int
    payload: bytes


class EngineChannel:
    """Frames over a connected socket. One thread reads them; any thread sends.

    The reading thread must never send: if both sides waited for the other one to read, nothing would move.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()  # held while a frame is sent
        self._using = threading.Lock()  # held during a call of the socket: two threads may not use one of TLS at once
        self._over = threading.Event()
        sock.setblocking(False)
        threading.Thread(target=self._beat, daemon=True).start()

    def tell(self, stream: int, message: Mapping[str, Any]) -> None:
        """Send a control frame; see `send`."""
        self.send(CONTROL, stream, json.dumps(message).encode())

    def send(self, frame_type: int, stream: int, payload: bytes) -> None:
        """Send one frame.

        :raises ChannelEnded: the channel has ended
        """
        if len(payload) > LONGEST[frame_type]:
            raise ChannelEnded(f"a frame of {len(payload)} bytes is too long")
        rest = memoryview(_HEADER.pack(frame_type, stream, len(payload)) + payload)
        with self._sending:
            deadline = time.monotonic() + DEAD
            while rest:
                sent = self._use("send", rest)
                if sent:
                    rest, deadline = rest[sent:], time.monotonic() + DEAD
                elif time.monotonic() > deadline:
                    self.close()
                    raise ChannelEnded(f"it has read nothing for {DEAD:g} s")

    def frames(self) -> Iterator[EngineFrame]:
        """Yield the frames of the peer.

        :raises ChannelEnded: at the end of the channel
        """
        data = bytearray()
        heard = time.monotonic()
        while True:
            received = self._use("recv", CHUNK)
            if received == b"":
                raise ChannelEnded("it closed the connection")
            if received:
                heard = time.monotonic()
                data += received
                yield from _complete(data)
            elif time.monotonic() > heard + DEAD:
                raise ChannelEnded(f"it has sent nothing for {DEAD:g} s")

    def close(self) -> None:
        """Close the socket. Repeated calls change nothing."""
        with self._using:
            if self._over.is_set():
                return
            self._over.set()
            try:
                self._sock.shutdown(socket.SHUT_RDWR)
            except OSError:  # the peer has closed it already
                pass
            self._sock.close()

    def _use(self, what: Literal["send", "recv"], argument: Any) -> Any:
        """Send or receive; return None if the socket was not ready for it within `SLICE`."""
        event = select.POLLIN if what == "recv" else select.POLLOUT
        with self._using:
            if self._over.is_set():
                raise ChannelEnded("the channel is closed")
            try:
                return getattr(self._sock, what)(argument)
            except ssl.SSLWantReadError:
                event = select.POLLIN
            except ssl.SSLWantWriteError:
                event = select.POLLOUT
            except BlockingIOError:
                pass
            except OSError as problem:
                raise ChannelEnded(f"the connection to it failed: {problem.strerror or problem}") from problem
            poll = select.poll()
            poll.register(self._sock, event)
        poll.poll(SLICE * 1000)
        return None

    def _beat(self) -> None:
        try:
            while not self._over.wait(BEAT):
                self.tell(0, {"is": "alive"})
        except ChannelEnded:  # the reading thread notices this too
            return


def _complete(data: bytearray) -> Iterator[EngineFrame]:
    """Remove the complete frames from the beginning of `data`, and yield them.

    :raises ChannelEnded: a frame is invalid
    """
    while len(data) >= _HEADER.size:
        frame_type, stream, length = _HEADER.unpack_from(data)
        if length > LONGEST.get(frame_type, -1):
            raise ChannelEnded(f"it sent an invalid frame: type {frame_type}, {length} bytes")
        end = _HEADER.size + length
        if len(data) < end:
            return
        payload = bytes(data[_HEADER.size : end])
        del data[:end]
        yield EngineFrame(frame_type, stream, payload)


def message(frame: EngineFrame) -> dict[str, Any]:
    """Return the content of a control frame.

    :raises ChannelEnded: it is not a JSON object
    """
    try:
        content = loads(frame.payload.decode(), unique=True)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ChannelEnded("it sent a control frame that is not a JSON object")
    return content


def field(content: Mapping[str, Any], name: str, value_type: type[T]) -> T:
    """Return a field of a control frame.

    :raises ChannelEnded: it is missing or has another type
    """
    value = content.get(name)
    if type(value) is not value_type:
        raise ChannelEnded(f"it sent a control frame without a valid {name!r}")
    return value
