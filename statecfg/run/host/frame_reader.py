"""Reads the bytes of a host: the output of its login shell, the greeting, then frames within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from statecfg.remote.wire import frames as wire
from statecfg.run.host import frames
from statecfg.run.host.broken import SUSPICIOUS, Broken
from statecfg.run.strict import weigh

VOLUME = 256 << 20  # maximum number of bytes that a host may send, without the output of programs
MEMORY = 64 << 20  # bytes of memory that the report of one host may take
NODE = 16 << 10  # additional bytes of memory for each node that was sent to the host
FRAME = 48 << 20  # bytes of memory that decoding one frame may take
_TOKEN = 100  # maximum number of bytes of memory that a value takes per token of JSON
_NOT_KEPT = (
    frames.HelloFrame,
    frames.BeatFrame,
    frames.NeedFrame,
    frames.OutputFrame,
    frames.UnitLogFrame,
    frames.UnitAskFrame,
)

HOOKS = "Change the shell's start-up files on the host: they must print nothing in a session without a terminal."


class HostDecoder(wire.Decoder):
    """Decodes the frames of a host that an attacker may control."""

    def weigh(self, header: bytes) -> None:
        """Refuse a header that would take too much memory after decoding.

        :raises wire.ProtocolError: if the header would take too much memory
        """
        room = FRAME - 4 * len(header)  # if a string contains an emoji, each of its characters takes four bytes
        if _tokens(header) * _TOKEN > room and _tokens(wire.without_texts(header)) * _TOKEN > room:
            raise wire.ProtocolError(f"a frame would take more than {FRAME >> 20} MiB of memory")


def _tokens(text: bytes) -> int:
    """Return the number of separators and opening brackets in JSON text: a measure of its number of values."""
    return text.count(b",") + text.count(b":") + text.count(b"[") + text.count(b"{")


class FrameReader:
    """Turns bytes into frames.

    :param nonce: the text that the executor must repeat in its greeting
    :param nodes: the number of nodes that were sent to the host
    :param read: returns the frame that a header describes
    :param decoding: entered while one frame is decoded; decoding briefly takes many times the frame's size
    """

    def __init__(
        self,
        nonce: str,
        nodes: int,
        read: Callable[[Mapping[str, Any]], frames.Frame],
        decoding: AbstractContextManager[Any],
    ) -> None:
        self.read, self.decoding = read, decoding
        self.decoder = HostDecoder()
        self.noise = bytearray()  # what the login shell printed
        self.greeting = wire.GREETING + nonce.encode() + b"\n"
        self.greeted = False
        self.memory = 0  # bytes of the frames that the report keeps
        self.outputs = 0  # bytes of output of programs
        self.room = MEMORY + NODE * nodes

    @property
    def incomplete(self) -> int:
        """The size of the incomplete frame in bytes."""
        return len(self.decoder.buffer)

    def feed(self, data: bytes) -> Iterator[frames.Frame]:
        """Yield the frames that `data` completes.

        :raises Broken: if a frame does not follow the protocol, or the frames exceed a limit
        """
        headers = self.decoder.take(data) if data else iter(())
        while True:
            with self.decoding:
                frame = self._next(headers)
            if frame is None:
                break
            yield frame
        if self.decoder.volume - self.outputs > VOLUME:
            raise Broken(f"its report has more than {VOLUME >> 20} MiB", SUSPICIOUS)

    def _next(self, headers: Iterator[tuple[Mapping[str, Any], bytes]]) -> frames.Frame | None:
        try:
            header = next(headers, (None, b""))[0]
        except wire.ProtocolError as problem:
            raise Broken(f"it sent something that is not a statecfg frame: {problem}", SUSPICIOUS) from problem
        if header is None:
            return None
        frame = self.read(header)
        if isinstance(frame, frames.OutputFrame):
            self.outputs += len(frame.text)
        if not isinstance(frame, _NOT_KEPT):
            self.memory += weigh(header)
            if self.memory > self.room:
                raise Broken(f"its report takes more than {self.room >> 20} MiB of memory", SUSPICIOUS)
        return frame

    def greet(self, data: bytes) -> bytes:
        """Look for the greeting; return the bytes after it.

        :raises Broken: if the login shell printed too much before it
        """
        self.noise += data
        start = self.noise.find(self.greeting)
        if start > wire.NOISE or (start < 0 and len(self.noise) > wire.NOISE + len(self.greeting)):
            raise Broken(f"its login shell printed more than {wire.NOISE} bytes before the executor began", HOOKS)
        if start < 0:
            return b""
        self.greeted = True
        rest = bytes(self.noise[start + len(self.greeting) :])
        del self.noise[start:]
        return rest

    def printed(self) -> str:
        """Return what the login shell printed before the greeting."""
        return bytes(self.noise).decode("utf-8", "replace").strip()
