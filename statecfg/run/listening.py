"""The listening half of a conversation: bytes to frames, with a deadline on everything that may not come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from statecfg.remote.wire import frames as wire
from statecfg.run import frames
from statecfg.run.host_report import SUSPICIOUS, Broken
from statecfg.run.strict import weigh
from statecfg.transport import TransportError

if TYPE_CHECKING:
    from statecfg.run.host_session import HostSession
    from statecfg.transport import Stream

DEAD = 15.0  # seconds of silence after which a host is taken for gone
START = 60.0  # seconds a host may take from the start of the executor to its first word
LINGER = 1.0  # seconds that an exit status may come after the end of the output
SLOWEST = 1024  # bytes a second below which a link that brings a frame is none
VOLUME = 256 << 20  # bytes that a host may send, output of programs not counted
MEMORY = 64 << 20  # bytes of memory that the report of one host may take
NODE = 16 << 10  # bytes of memory that it may take beside these for each node that the host was sent
FRAME = 48 << 20  # bytes of memory that decoding one frame may take; hosts take turns at it
_TOKEN = 100  # bytes of memory that a value takes at most, by the signs of JSON that it needs
_PASSING = (frames.Hello, frames.Beat, frames.Need, frames.Output, frames.UnitLog, frames.UnitAsk)  # not kept
_DECODING = threading.Lock()

AGAIN = "Run it again: the host knows how far it came, and the next run finishes what this one left."
HOOKS = "Let the shell's start-up files on the host print nothing when nobody is there to read it."
PYTHON = "Install Python 3.8 or newer on the host, or say in the inventory where it is: `python: /path/to/python3`."


class Decoder(wire.Decoder):
    """Decodes the frames of hosts, which may be anybody's."""

    def weigh(self, header: bytes) -> None:
        """Refuse a header that would take too much memory once it is decoded. Raises ProtocolError."""
        room = FRAME - 4 * len(header)  # a single emoji makes every character of a text take four bytes
        if _tokens(header) * _TOKEN > room and _tokens(wire.without_texts(header)) * _TOKEN > room:
            raise wire.ProtocolError(f"a frame would take more than {FRAME >> 20} MiB of memory")


def _tokens(text: bytes) -> int:
    """Count the signs of JSON without which there is no value."""
    return text.count(b",") + text.count(b":") + text.count(b"[") + text.count(b"{")


class Listening:
    """Listens to one host.

    :param conversation: whose other half it is
    """

    def __init__(self, conversation: HostSession, stream: Stream) -> None:
        self.of, self.stream = conversation, stream
        self.decoder = Decoder()
        self.noise = bytearray()
        self.greeting = wire.GREETING + conversation.nonce.encode() + b"\n"
        self.greeted = self.started = False
        now = time.monotonic()
        self.heard = self.news = self.framed = now
        self.start = now + START
        self.longest = conversation.longest()
        self.outputs = 0
        self.cut: TransportError | None = None  # why nothing can be sent to it any more
        self.cut_at = 0.0
        self.memory = 0  # bytes that is kept of what it said
        self.room = MEMORY + NODE * sum(map(len, conversation.definition.layers))

    def run(self) -> None:
        """Listen until END. Raises Broken, ProtocolError, TransportError."""
        while True:
            data = self.stream.read(0.2)
            now = time.monotonic()
            if data == b"":
                raise self.silence()
            if data:
                self.heard = now
                if self.hear(data):
                    return
            self.check(time.monotonic())
            self.send(self.of.answer)

    def send(self, say: Callable[[Stream], None]) -> None:
        """Say something. If the host no longer listens, what it has said already may tell why: go on reading that."""
        if self.cut is None:
            try:
                say(self.stream)
            except TransportError as problem:
                self.cut, self.cut_at = problem, time.monotonic()

    def hear(self, data: bytes) -> bool:
        """Take in bytes; return True after END."""
        if not self.greeted:
            data = self.greet(data)
        for frame in self.incoming(data):
            if isinstance(frame, frames.End):
                return True
            if isinstance(frame, frames.Need):
                self.send(partial(self.of.supply, frame=frame))
                self.start = time.monotonic() + START + len(self.of.bundle.data) / SLOWEST
            elif isinstance(frame, frames.UNITS):
                self.of.unit(self.stream, frame)
            elif isinstance(frame, frames.Login):
                self.of.log_in_again(self.stream)
            elif isinstance(frame, frames.Hook):
                self.of.ask(self.stream, frame)
            elif isinstance(frame, frames.Plan) and self.of.events is not None:
                self.of.events.planned(self.of.host.name, self.of.report)
            if isinstance(frame, frames.Output):
                self.outputs += len(frame.text)
            elif not isinstance(frame, frames.Beat):
                self.started = self.started or isinstance(frame, frames.Hello)
                self.news = time.monotonic()
            if self.of.said.planned and self.of.gate is not None:
                self.of.waiting.set()
        if not self.decoder.buffer:
            self.framed = time.monotonic()
        # What was heard while we were busy counts from now.
        self.heard = time.monotonic()
        return False

    def incoming(self, data: bytes) -> Iterator[frames.Frame]:
        """Yield the frames that bytes complete, each taken into the report. Raises Broken.

        Decoding a frame takes many times its size for a moment, so one thread does it at a time.
        """
        headers = self.decoder.take(data) if data else iter(())
        while True:
            with _DECODING:
                frame = self.next_frame(headers)
            if frame is None:
                return
            self.framed = time.monotonic()
            yield frame

    def next_frame(self, headers: Iterator[tuple[dict[str, Any], bytes]]) -> frames.Frame | None:
        """Return the next frame, None if there is none yet. Raises Broken."""
        try:
            header = next(headers, (None, b""))[0]
        except wire.ProtocolError as problem:
            raise Broken(f"it sent what is no frame of ours: {problem}", SUSPICIOUS) from problem
        if header is None:
            return None
        frame = self.of.said.read(header)
        if not isinstance(frame, _PASSING):
            self.memory += weigh(header)
            if self.memory > self.room:
                raise Broken(f"its report takes more than {self.room >> 20} MiB of memory", SUSPICIOUS)
        self.of.said.take(frame)
        return frame

    def greet(self, data: bytes) -> bytes:
        """Look for the executor's first word behind what a login shell prints; return what follows it."""
        self.noise += data
        found = self.noise.find(self.greeting)
        if found > wire.NOISE or (found < 0 and len(self.noise) > wire.NOISE + len(self.greeting)):
            raise Broken(f"its login shell printed more than {wire.NOISE} bytes before the executor began", HOOKS)
        if found < 0:
            return b""
        self.greeted = True
        if found:
            said = bytes(self.noise[:found]).decode("utf-8", "replace").strip()
            self.of.warn(f"its login shell prints {found} bytes when nobody reads them: {said[:200]}")
        return bytes(self.noise[found + len(self.greeting) :])

    def check(self, now: float) -> None:
        """See that nothing has been waited for too long. Raises Broken."""
        resting = self.of.said.units and not self.of.hooks
        if self.of.asking or resting or (self.of.said.waits and not self.of.answered):
            self.news = now  # it waits for us
        if self.cut is not None and (now - self.heard > LINGER or now - self.cut_at > DEAD):
            raise self.cut
        if self.started and now - self.heard > DEAD:
            raise Broken(f"nothing came from it for {DEAD:.0f} s", "Is the host up, and the network between?")
        if not self.started and now > self.start:
            raise Broken(f"the executor did not begin within {START:.0f} s", "Is the host too busy to start a program?")
        slow = START + len(self.decoder.buffer) / SLOWEST
        if self.decoder.buffer and now - self.framed > slow:
            raise Broken(f"a frame did not end within {slow:.0f} s", "Is the connection too slow to be of use?")
        if now - self.news > self.longest:
            what = "its plan" if not self.of.said.planned else "what it does"
            raise Broken(f"it lives, and {what} has not come on for {self.longest:.0f} s", "See what it is busy with.")
        if self.decoder.volume - self.outputs > VOLUME:
            raise Broken(f"it sent more than {VOLUME >> 20} MiB of report", SUSPICIOUS)

    def silence(self) -> Broken:
        """Say what is known of why the host fell silent."""
        partial = self.decoder.partial()
        said = "" if self.greeted else bytes(self.noise).decode("utf-8", "replace").strip()
        # The exit status and stderr come by ways of their own, perhaps after the end of the output.
        deadline, errors = time.monotonic() + LINGER, b""
        status: int | None = None
        before: bytes | None = None
        while time.monotonic() < deadline and (before != errors or not (errors or self.greeted) or status is None):
            before = errors
            time.sleep(0.05)
            status, errors = self.stream.exit_status(), self.stream.stderr().strip()
        said = errors.decode("utf-8", "replace") or said
        if status == 96 and not self.greeted:
            return Broken(said[-500:] or "it has no Python that will do", PYTHON)
        how = f" (it ended with exit status {status})" if status is not None and status >= 0 else ""
        if status is not None and (status < 0 or status > 128):
            number = -status if status < 0 else status - 128
            how = f" (it was killed by signal {number}{'; perhaps the host is out of memory' if number == 9 else ''})"
        if partial:
            text = f"the connection ended {partial}"
        elif not self.greeted:
            text = "the executor ended without a word"
        else:
            text = "the executor ended before it was done"
        hint = "" if self.greeted else "Is this login allowed to run programs there? `ssh HOST python3 -V` shows it."
        return Broken(text + how + (f": {said[-500:]}" if said else ""), hint or AGAIN, heard_all=True)
