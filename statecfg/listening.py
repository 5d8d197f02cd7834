"""The listening half of a conversation: bytes to frames, with a deadline on everything that may not come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from statecfg.remote import wire
from statecfg.testimony import SUSPICIOUS, UNITS, Broken

if TYPE_CHECKING:
    from statecfg.conversation import Conversation
    from statecfg.transport import Stream

DEAD = 15.0  # seconds of silence after which a host is taken for gone
START = 60.0  # seconds a host may take from the start of the executor to its first word
LINGER = 1.0  # seconds that an exit status may come after the end of the output
SLOWEST = 1024  # bytes a second below which a link that brings a frame is none
VOLUME = 256 << 20  # bytes of report that a host may send

AGAIN = "Run it again: the host knows how far it came, and the next run finishes what this one left."
HOOKS = "Let the shell's start-up files on the host print nothing when nobody is there to read it."
PYTHON = "Install Python 3.8 or newer on the host, or say in the inventory where it is: `python: /path/to/python3`."


class Listening:
    """Listens to one host.

    :param conversation: whose other half it is
    """

    def __init__(self, conversation: Conversation, stream: Stream) -> None:
        self.of, self.stream = conversation, stream
        self.decoder = wire.Decoder()
        self.noise = bytearray()
        self.greeting = wire.GREETING + conversation.nonce.encode() + b"\n"
        self.greeted = self.started = False
        now = time.monotonic()
        self.heard = self.news = self.framed = now
        self.start = now + START
        self.longest = conversation.longest()
        self.outputs = 0

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
            self.of.answer(self.stream)

    def hear(self, data: bytes) -> bool:
        """Take in bytes; return True after END."""
        if not self.greeted:
            data = self.greet(data)
        try:
            frames = self.decoder.feed(data) if data else []
        except wire.ProtocolError as problem:
            raise Broken(f"it sent what is no frame of ours: {problem}", SUSPICIOUS) from problem
        if frames or not self.decoder.buffer:
            self.framed = time.monotonic()
        for frame, _ in frames:
            kind = frame["type"]
            if kind == "need":
                self.of.supply(self.stream, frame)
                self.start = time.monotonic() + START + len(self.of.bundle.data) / SLOWEST
            elif self.of.said.take(frame):
                return True
            if kind in UNITS:
                self.of.unit(self.stream, frame)
            elif kind == "hook":
                self.of.ask(self.stream, frame)
            elif kind == "plan" and self.of.events is not None:
                self.of.events.planned(self.of.host.name, self.of.report)
            if kind == "output":
                self.outputs += len(str(frame["text"]))
            elif kind != "beat":
                self.started = self.started or kind == "hello"
                self.news = time.monotonic()
            if self.of.said.planned and self.of.gate is not None:
                self.of.waiting.set()
        # What was heard while we were busy counts from now.
        self.heard = time.monotonic()
        return False

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
