"""The controller's side of a channel: connections that a worker holds, with the interface of `transport`."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from statecfg.engines.channel import CONTROL, DATA, WINDOW, ChannelEnded, EngineChannel, EngineFrame, field, message
from statecfg.engines.identity import identity
from statecfg.engines.link import Link
from statecfg.transport import CHUNK, WRITE_DEADLINE, SshSettings, Target, errors

HELLO_TIME = 60.0  # seconds until a worker has introduced itself; a busy machine starts programs slowly
AGAIN = "If it stays like that, use `--engine threads`, which needs no workers."
ERRORS: dict[str, type[errors.TransportError]] = {
    found.__name__: found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, errors.TransportError)
}


class EngineWorker:
    """A worker, seen from the controller.

    :ivar load: the number of connections that it holds or opens
    :ivar gone: why it is lost, in words; "" while it works
    """

    def __init__(self, link: Link) -> None:
        self.name, self.load, self.gone = link.name, 0, ""
        self._link, self._channel = link, EngineChannel(link.socket)
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[str, Future[dict[str, Any]]]] = {}  # number → host and the answer
        self._streams: dict[int, RemoteStream] = {}
        self._hello: Future[dict[str, Any]] = Future()
        threading.Thread(target=self._listen, daemon=True).start()

    def count(self, change: int) -> None:
        """Add to the number of connections."""
        with self._lock:
            self.load += change

    def mismatch(self) -> str:
        """Wait until the worker has introduced itself; return why it can't be used, "" if it can."""
        with contextlib.suppress(TimeoutError):
            theirs, ours = self._hello.result(HELLO_TIME), identity()
            if {**ours, **theirs} == {**theirs, **ours}:
                return ""
            return f"worker {self.name} has {_shown(theirs)}, and this controller has {_shown(ours)}"
        return self.gone or f"worker {self.name} did not introduce itself within {HELLO_TIME:g} s"

    def connect(self, target: Target, settings: SshSettings) -> RemoteConnection:
        """Let the worker connect to a host; see `statecfg.transport.connect`.

        :raises WorkerLost: the worker is gone
        """
        question = {"do": "connect", "target": asdict(target), "settings": asdict(settings)}
        number, answer = self.ask(target.name, question, "connected")
        try:
            texts = tuple(str(text) for text in field(answer, "warnings", list))
            user, key = map(str, [*field(answer, "login", list), "", ""][:2])
            peer, address = field(answer, "peer", str), field(answer, "address", str)
            return RemoteConnection(self, number, target.name, peer, address, texts, (user, key))
        except ChannelEnded as problem:
            self.end(str(problem))
            raise self.lost(target.name) from problem

    def ask(
        self, host: str, question: dict[str, Any], answer: str, stream: RemoteStream | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a question; return its number and the answer.

        :param answer: the type of the answer
        :raises TransportError: the worker reports an error instead, or is lost
        """
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            if self.gone:
                raise self.lost(host)
            number = next(self._numbers)
            self._waiting[number] = (host, future)
            if stream is not None:
                stream.number = number
                self._streams[number] = stream
        self.send(host, CONTROL, number, question)
        content = future.result()
        if content["is"] == answer:
            return number, content
        with self._lock:
            self._streams.pop(number, None)
        raise _error(host, content)

    def send(self, host: str, frame_type: int, number: int, payload: bytes | dict[str, Any]) -> None:
        """Send a frame.

        :raises WorkerLost: the worker is gone
        """
        try:
            if isinstance(payload, dict):
                self._channel.tell(number, payload)
            else:
                self._channel.send(frame_type, number, payload)
        except ChannelEnded as problem:
            self.end(str(problem))
            raise self.lost(host) from problem

    def close_number(self, number: int) -> None:
        """Tell the worker to close a stream or connection."""
        with self._lock:
            self._streams.pop(number, None)
        with contextlib.suppress(ChannelEnded):  # then the worker has closed it already
            self._channel.tell(number, {"do": "close"})

    def lost(self, host: str) -> errors.WorkerLost:
        """Return the error that the worker is lost."""
        return errors.WorkerLost(host, self.gone, AGAIN)

    def end(self, why: str) -> None:
        """Note that the worker is lost, and end its connections. Repeated calls change nothing."""
        self._channel.close()
        with self._ending:
            reason = self.gone or f"worker {self.name} was lost: {self._link.describe() or why}"
        with self._lock:
            self.gone = reason
            waiting, streams = list(self._waiting.values()), list(self._streams.values())
            self._waiting.clear()
            self._streams.clear()
        for host, future in waiting:
            future.set_result(
                {"is": "failed", "error": "WorkerLost", "host": host, "summary": self.gone, "hint": AGAIN}
            )
        for stream in streams:
            stream.broke(self.lost(stream.host))
        if not self._hello.done():
            self._hello.set_exception(TimeoutError(self.gone))

    def _listen(self) -> None:
        try:
            for frame in self._channel.frames():
                self._take(frame)
        except ChannelEnded as problem:
            self.end(str(problem))

    def _take(self, frame: EngineFrame) -> None:
        content = message(frame) if frame.type == CONTROL else {}
        if not self._hello.done():
            if content.get("is") != "worker":
                raise ChannelEnded("it is not a worker of statecfg")
            self._hello.set_result({key: field(content, key, str) for key in identity()})
            return
        if content.get("is") in ("connected", "opened", "failed"):
            with self._lock:
                _, future = self._waiting.pop(frame.stream, (None, None))
            if future is not None:
                future.set_result(content)
                return
        stream = self._streams.get(frame.stream)
        if stream is not None:  # otherwise it was closed meanwhile, or the frame is a heartbeat
            stream.take(frame, content)


class RemoteConnection:
    """A connection that a worker holds; see `statecfg.transport.HostConnection`."""

    def __init__(
        self,
        worker: EngineWorker,
        number: int,
        host: str,
        peer: str,
        address: str,
        warnings: tuple[str, ...],
        login: tuple[str, str],
    ) -> None:
        self.worker, self.number = worker, number
        self.host, self.peer, self.address, self.warnings, self.login = host, peer, address, warnings, login
        self.closing = threading.Lock()

    def open(self, command: Sequence[str]) -> RemoteStream:
        """Start a program.

        :raises ConnectionLost: the connection has ended
        """
        stream = RemoteStream(self.host, self.worker)
        self.worker.ask(
            self.host, {"do": "open", "connection": self.number, "command": list(command)}, "opened", stream
        )
        return stream

    def close(self) -> None:
        """Close the connection. The worker first sends what was written."""
        if self.closing.acquire(blocking=False):
            self.worker.count(-1)
            self.worker.close_number(self.number)


class RemoteStream:
    """A stream that a worker relays; see `statecfg.transport.Stream`."""

    def __init__(self, host: str, worker: EngineWorker) -> None:
        self.host, self.worker, self.number = host, worker, 0
        self.changed = threading.Condition()
        self.chunks: deque[bytes] = deque()  # b"" is the end of the output
        self.room = WINDOW  # bytes that the worker may send
        self.used = 0  # read bytes that the worker got no credit for yet
        self.credit = WINDOW  # bytes that it takes
        self.unreadable: errors.TransportError | None = None
        self.unwritable: errors.TransportError | None = None
        self.errors = b""
        self.status: int | None = None

    def write(self, data: bytes) -> None:
        """Send all of `data`.

        :raises ConnectionLost: the connection or program ended, or the program has read nothing for 60 s
        """
        rest = memoryview(data)
        while rest:
            with self.changed:
                in_time = self.changed.wait_for(lambda: self.credit or self.unwritable, WRITE_DEADLINE)
                if self.unwritable is not None:
                    raise self.unwritable
                if not in_time:
                    stuck = f"the program has read nothing for {WRITE_DEADLINE:.0f} s"
                    raise errors.ConnectionLost(self.host, stuck)
                size = min(self.credit, len(rest), CHUNK)
                self.credit -= size
            self.worker.send(self.host, DATA, self.number, bytes(rest[:size]))
            rest = rest[size:]

    def read(self, timeout: float) -> bytes | None:
        """Return the next bytes; b"" at the end; None after `timeout` seconds without any.

        :raises ConnectionLost: the connection ended before the output
        """
        with self.changed:
            self.changed.wait_for(lambda: self.chunks or self.unreadable, max(0.0, timeout))
            if not self.chunks:
                if self.unreadable is not None:
                    raise self.unreadable
                return None
            data = self.chunks[0] and self.chunks.popleft()
            self.used += len(data)
            credit = self.used if self.used >= WINDOW // 4 else 0
            self.used -= credit
            self.room += credit
        if credit:
            with contextlib.suppress(errors.WorkerLost):  # the next call raises it, after the data that have arrived
                self.worker.send(self.host, CONTROL, self.number, {"do": "credit", "bytes": credit})
        return data

    def stderr(self) -> bytes:
        """Return the newest 64 KiB of stderr."""
        return self.errors

    def exit_status(self) -> int | None:
        """Return the exit status; None if it is unknown."""
        return self.status

    def close(self) -> None:
        """Close the stream. The program then reads the end of its stdin."""
        self.worker.close_number(self.number)
        with self.changed:
            self.chunks.clear()
            self.unreadable = self.unwritable = errors.ConnectionLost(self.host, "the stream is closed")
            self.changed.notify_all()

    # Called by the thread that reads the channel

    def take(self, frame: EngineFrame, content: dict[str, Any]) -> None:
        """Process a frame of the worker.

        :raises ChannelEnded: it is invalid
        """
        if frame.type == CONTROL and content.get("is") in ("failed", "unwritable"):
            problem = _error(self.host, content)
            if content["is"] == "failed":
                self.broke(problem)
            else:
                with self.changed:
                    self.unwritable = self.unwritable or problem
                    self.changed.notify_all()
            return
        with self.changed:
            if frame.type == DATA:
                self.chunks.append(frame.payload)
                self.room -= len(frame.payload)
                if self.room < 0 or not frame.payload:
                    raise ChannelEnded("it sends more than the window allows")
            elif frame.type != CONTROL:
                self.errors = frame.payload
            elif content.get("is") == "credit":
                self.credit += field(content, "bytes", int)
            elif content.get("is") == "exit":
                self.status = field(content, "status", int)
            elif content.get("is") == "end":
                self.chunks.append(b"")
            else:
                raise ChannelEnded("it sent an unknown control frame")
            self.changed.notify_all()

    def broke(self, problem: errors.TransportError) -> None:
        """Note that the stream has ended early."""
        with self.changed:
            self.unreadable = self.unreadable or problem
            self.unwritable = self.unwritable or problem
            self.changed.notify_all()


def _error(host: str, content: dict[str, Any]) -> errors.TransportError:
    """Return the error that a worker reports.

    :raises ChannelEnded: the frame is invalid
    """
    found = ERRORS.get(field(content, "error", str), errors.TransportError)
    return found(host, field(content, "summary", str), field(content, "hint", str))


def _shown(about: dict[str, str]) -> str:
    return f"statecfg {about['version']} (code {about['digest']})"
