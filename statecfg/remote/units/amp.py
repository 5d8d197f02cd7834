"""Boxes of the AMP protocol, which hooks' tools speak with the agent: keys and values, each with its length before it.

The format is Twisted's (https://amp-protocol.net): two bytes of length and a key, two bytes of length and a value, and
so on; a key of no length ends the box.
"""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Union

KEY_LIMIT = 255  # bytes of a key, of Twisted's
VALUE_LIMIT = 65535  # bytes of a value: what two bytes can say
BOX_LIMIT = 8 << 20  # bytes of a whole box: all that a unit may set in a relation, as ASCII in JSON, is less
ASK, ANSWER, ERROR = "_ask", "_answer", "_error"  # keys of the tag by which an answer finds its question
COMMAND, CODE, TEXT = "_command", "_error_code", "_error_description"


class AmpError(StatecfgError):
    """What came is no box, or what is to be sent does not fit into one."""


def encode(box: Mapping[str, Union[str, bytes]]) -> bytes:
    """Return a box as it is sent, its keys in the order given; text is sent as UTF-8.

    Raises AmpError where a key or a value is too long, a key is empty, or text is none.
    """
    found = bytearray()
    for name, value in box.items():
        key, data = _bytes(name), _bytes(value)
        if not 0 < len(key) <= KEY_LIMIT:
            raise AmpError("a key has %d bytes, and from 1 to %d can be sent" % (len(key), KEY_LIMIT))
        if len(data) > VALUE_LIMIT:
            raise AmpError("%s has %d bytes, and at most %d can be sent" % (name, len(data), VALUE_LIMIT))
        found += len(key).to_bytes(2, "big") + key + len(data).to_bytes(2, "big") + data
    if len(found) + 2 > BOX_LIMIT:
        raise AmpError("a box has %d bytes, and at most %d can be sent" % (len(found) + 2, BOX_LIMIT))
    return bytes(found + b"\0\0")


def _bytes(value: Union[str, bytes]) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        # What an argument or a file name has that is no UTF-8 arrives as the bytes it was.
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise AmpError("a text can't be sent as UTF-8: %s" % problem.reason) from None


def decode_text(value: bytes) -> str:
    """Return a value as text; bytes that are no UTF-8 are kept as `encode` sends them."""
    return value.decode("utf-8", "surrogateescape")


def spread(name: str, text: str) -> Dict[str, bytes]:
    """Return a value of any length as values that fit: the first under its name, the others under NAME.1, NAME.2, …

    That goes beyond AMP: who knows nothing of it finds the first piece only. Raises AmpError where text is none.
    """
    data, start = _bytes(text), 0
    found: Dict[str, bytes] = {}
    while start < len(data) or not found:
        end = start + VALUE_LIMIT
        # No character is cut in two, so that each piece is a text as well.
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        found["%s.%d" % (name, len(found)) if found else name] = data[start:end]
        start = end
    return found


def gather(name: str, box: Mapping[str, bytes]) -> bytes:
    """Return the value that was `spread` over a box; nothing where the box has none of that name."""
    found, number = bytearray(box.get(name, b"")), 1
    while "%s.%d" % (name, number) in box:
        found += box["%s.%d" % (name, number)]
        number += 1
    return bytes(found)


class Decoder:
    """Turns a stream of bytes back into boxes, refusing too large a length before making room for it."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.taken = 0  # bytes of the buffer that are in `box` already
        self.box: Dict[str, bytes] = {}

    def feed(self, data: bytes) -> List[Dict[str, bytes]]:
        """Take in bytes; return the boxes they complete. Raises AmpError; nothing can be read after that."""
        self.buffer += data
        found = []
        while True:
            length = self._length(self.taken)
            if length is None:
                break
            if not length:
                found.append(self.box)
                self.box = {}
                del self.buffer[: self.taken + 2]
                self.taken = 0
                continue
            if length > KEY_LIMIT:
                raise AmpError("not a box: a key of %d bytes" % length)
            start = self.taken + 2 + length
            size = self._length(start)
            if start + 2 + (size or 0) + 2 > BOX_LIMIT:
                raise AmpError("a box is over %d bytes" % BOX_LIMIT)
            if size is None or len(self.buffer) < start + 2 + size:
                break
            self._take(bytes(self.buffer[self.taken + 2 : start]), bytes(self.buffer[start + 2 : start + 2 + size]))
            self.taken = start + 2 + size
        return found

    def _length(self, place: int) -> Optional[int]:
        """Return the number in the two bytes at a place, None where they are not all there."""
        if len(self.buffer) < place + 2:
            return None
        return int.from_bytes(self.buffer[place : place + 2], "big")

    def _take(self, key: bytes, value: bytes) -> None:
        name = decode_text(key)
        if name in self.box:
            raise AmpError("a key stands twice in a box: %.80r" % name)
        self.box[name] = value

    @property
    def partial(self) -> bool:
        """Whether the stream, if it ended here, would have left a box unfinished."""
        return bool(self.buffer)
