"""The worker's side of a channel: it logs in to hosts with the usual transports, and relays their bytes."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from statecfg.engines.channel import (
    CONTROL,
    DATA,
    STDERR,
    WINDOW,
    ChannelEnded,
    EngineChannel,
    EngineFrame,
    field,
    message,
)
from statecfg.engines.identity import identity
from statecfg.transport import HostConnection, SshSettings, Stream, Target, TransportError, connect

QUICK, IDLE = 0.02, 1.0  # seconds between two looks at stderr: until the first output, or after it
DRAIN = 2.0  # seconds in which a stream that is closed sends what the controller wrote before
ENDING = 3.0  # seconds after the end of stdout in which stderr and the exit status usually arrive


def serve(sock: socket.socket) -> str:
    """Serve one controller until its connection ends. Then all connections to hosts are closed.

    :param sock: connected; this closes it
    :returns: why the connection ended, in words
    """
    channel = EngineChannel(sock)
    relay = _Relay(channel)
    try:
        channel.tell(0, {"is": "worker", **identity()})
        for frame in channel.frames():
            relay.take(frame)
    except ChannelEnded as ended:
        return str(ended)
    finally:
        channel.close()
        relay.close()
    raise AssertionError("the frames of a channel end with ChannelEnded")


class _Relay:
    """The connections and streams of one controller. The controller chooses their numbers."""

    def __init__(self, channel: EngineChannel) -> None:
        self.channel = channel
        self.lock = threading.Lock()
        self.connections: dict[int, HostConnection | None] = {}  # None while it is being opened
        self.streams: dict[int, _Relayed] = {}
        self.over = False

    def take(self, frame: EngineFrame) -> None:
        """Process a frame. What takes time happens in other threads.

        :raises ChannelEnded: it is invalid
        """
        number = frame.stream
        if frame.type == CONTROL:
            self._control(number, message(frame))
        elif frame.type == DATA:
            stream = self.streams.get(number)
            if stream is not None:  # otherwise it was closed meanwhile
                stream.receive(frame.payload)
        else:
            raise ChannelEnded(f"it sent a frame of type {frame.type}")

    def _control(self, number: int, content: Mapping[str, Any]) -> None:
        match content:
            case {"is": "alive"}:
                return
            case {"do": "connect"}:
                self._new(number)
                target, settings = _target(field(content, "target", dict)), _settings(field(content, "settings", dict))
                self.connections[number] = None
                _in_thread(lambda: self._connect(number, target, settings))
            case {"do": "open"}:
                self._new(number)
                connection = self.connections.get(field(content, "connection", int))
                if connection is None:
                    raise ChannelEnded("it opens a stream of an unknown connection")
                command = [str(word) for word in field(content, "command", list)]
                stream = self.streams[number] = _Relayed(self.channel, number, connection)
                _in_thread(lambda: stream.run(command))
            case {"do": "close"}:
                _in_thread(lambda: self._close(number))
            case {"do": "credit"}:
                size, granted = field(content, "bytes", int), self.streams.get(number)
                if granted is not None:
                    granted.grant(size)
            case _:
                raise ChannelEnded("it sent an unknown control frame")

    def _new(self, number: int) -> None:
        if number in self.connections or number in self.streams or not number:
            raise ChannelEnded(f"it uses the number {number} twice")

    def _connect(self, number: int, target: Target, settings: SshSettings) -> None:
        try:
            connection = connect(target, settings)
        except Exception as problem:
            with self.lock:
                self.connections.pop(number, None)
            _tell(self.channel, number, failure(target.name, problem))
            return
        with self.lock:
            kept = not self.over and number in self.connections
            if kept:
                self.connections[number] = connection
        if not kept:
            connection.close()
            return
        about = {"peer": connection.peer, "address": connection.address, "warnings": list(connection.warnings)}
        about["login"] = list(connection.login)
        _tell(self.channel, number, {"is": "connected", **about})

    def _close(self, number: int) -> None:
        with self.lock:
            connection = self.connections.pop(number, None)
            streams = [key for key, stream in self.streams.items() if key == number or stream.connection is connection]
            closing = [self.streams.pop(key) for key in streams]
        for stream in closing:
            stream.close()
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections at once, so that the executors stop."""
        with self.lock:
            self.over = True
            connections = [connection for connection in self.connections.values() if connection is not None]
            self.connections.clear()
            streams = list(self.streams.values())
        for stream in streams:
            stream.stop()
        for connection in connections:
            connection.close()


class _Relayed:
    """One stream. Its thread relays what the program writes; a second thread writes what the controller sends."""

    def __init__(self, channel: EngineChannel, number: int, connection: HostConnection) -> None:
        self.channel, self.number, self.connection = channel, number, connection
        self.host = str(getattr(connection, "host", connection.peer))
        self.stream: Stream | None = None
        self.credit = WINDOW
        self.credited = threading.Condition()
        self.unused = 0  # bytes from the controller that were not written yet
        self.input: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.closed = threading.Event()
        self.writer = threading.Thread(target=self._write, daemon=True)
        self.told: tuple[bytes, int | None] = (b"", None)  # stderr and the exit status, as the controller knows them

    def receive(self, data: bytes) -> None:
        """Take data from the controller.

        :raises ChannelEnded: the controller sends more than it may
        """
        with self.credited:
            self.unused += len(data)
            if self.unused > WINDOW:
                raise ChannelEnded("it sends more than the window allows")
        self.input.put(data)

    def grant(self, size: int) -> None:
        """Let the thread send more of the program's output."""
        with self.credited:
            self.credit += size
            self.credited.notify_all()

    def close(self) -> None:
        """Close the stream, after the program got what was sent to it."""
        self.input.put(None)
        if self.writer.is_alive():
            self.writer.join(DRAIN)
        self.stop()
        if self.stream is not None:
            self.stream.close()

    def stop(self) -> None:
        """Let the threads end."""
        self.input.put(None)
        self.closed.set()
        with self.credited:
            self.credited.notify_all()

    def run(self, command: list[str]) -> None:
        """Start the program, and relay its output until it ends."""
        try:
            self.stream = stream = self.connection.open(command)
            _tell(self.channel, self.number, {"is": "opened"})
            self.writer.start()
            if self.closed.is_set():
                stream.close()
            self._read(stream)
        except Exception as problem:
            if self.stream is not None:
                with contextlib.suppress(ChannelEnded):  # then the main thread closes everything
                    self._tell_rest(self.stream)
            if not self.closed.is_set():
                _tell(self.channel, self.number, failure(self.host, problem))

    def _read(self, stream: Stream) -> None:
        pause, looked = QUICK, 0.0
        while (data := stream.read(pause)) != b"":
            if data:
                pause = IDLE
                self._send(data)
            if time.monotonic() > looked + QUICK:
                self._tell_rest(stream)
                looked = time.monotonic()
        self._tell_rest(stream)
        _tell(self.channel, self.number, {"is": "end"})
        soon = time.monotonic() + ENDING
        while not self.closed.wait(QUICK if time.monotonic() < soon else IDLE):
            self._tell_rest(stream)

    def _send(self, data: bytes) -> None:
        while data:
            with self.credited:
                self.credited.wait_for(lambda: self.credit or self.closed.is_set())
                size = min(self.credit, len(data))
                self.credit -= size
            if self.closed.is_set():
                return
            self.channel.send(DATA, self.number, data[:size])
            data = data[size:]

    def _tell_rest(self, stream: Stream) -> None:
        """Send stderr and the exit status if they have changed."""
        errors, status = stream.stderr(), stream.exit_status()
        if errors != self.told[0]:
            self.channel.send(STDERR, self.number, errors)
        if status != self.told[1]:
            self.channel.tell(self.number, {"is": "exit", "status": status})
        self.told = (errors, status)

    def _write(self) -> None:
        assert self.stream is not None
        try:
            while (data := self.input.get()) is not None:
                self.stream.write(data)
                with self.credited:
                    self.unused -= len(data)
                self.channel.tell(self.number, {"is": "credit", "bytes": len(data)})
        except TransportError as problem:
            _tell(self.channel, self.number, {**failure(self.host, problem), "is": "unwritable"})
        except ChannelEnded:  # the main thread closes everything
            return


def failure(host: str, problem: Exception) -> dict[str, str]:
    """Return the control frame that reports an error of a transport, or a bug of statecfg."""
    if not isinstance(problem, TransportError):
        problem = TransportError(host, f"statecfg failed on its worker: {problem!r}", "Please report this bug.")
    about = {"host": problem.host, "summary": problem.summary, "hint": problem.hint}
    return {"is": "failed", "error": type(problem).__name__, **about}


def _tell(channel: EngineChannel, number: int, content: Mapping[str, Any]) -> None:
    """Send a control frame, if the controller is still there. Otherwise the main thread closes everything."""
    try:
        channel.tell(number, content)
    except ChannelEnded:
        return


def _in_thread(work: Callable[[], object]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _target(fields: Mapping[str, Any]) -> Target:
    try:
        return Target(**{**fields, "identity_files": tuple(fields["identity_files"])})
    except (KeyError, TypeError) as problem:
        raise ChannelEnded(f"it sent an invalid target: {problem}") from problem


def _settings(fields: Mapping[str, Any]) -> SshSettings:
    try:
        known_hosts = fields["known_hosts"]
        return SshSettings(**{**fields, "known_hosts": None if known_hosts is None else tuple(known_hosts)})
    except (KeyError, TypeError) as problem:
        raise ChannelEnded(f"it sent invalid settings: {problem}") from problem
