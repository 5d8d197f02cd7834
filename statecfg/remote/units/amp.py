"""Encode and decode boxes of the AMP protocol between the hooks' tools and the agent.

The format is Twisted's (https://amp-protocol.net): keys and values alternate, each preceded by its length in two bytes.
An empty key ends the box.
"""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Union

KEY_LIMIT = 255  # maximum bytes of a key, as in Twisted
VALUE_LIMIT = 65535  # maximum bytes of a value: the largest length in two bytes
BOX_LIMIT = 8 << 20  # maximum bytes of a box: enough for all settings of a unit in a relation, as ASCII JSON
ASK, ANSWER, ERROR = "_ask", "_answer", "_error"  # keys of the tag that connects an answer with its question
COMMAND, CODE, TEXT = "_command", "_error_code", "_error_description"


class AmpError(StatecfgError):
    """The received data is not a box, or the data to send does not fit into one."""


def encode(box: Mapping[str, Union[str, bytes]]) -> bytes:
    """Encode a box; texts are encoded as UTF-8. The order of the keys is preserved.

    :raises AmpError: a key is empty, a key or value or the box is too long, or a string can't be encoded
    """
    encoded = bytearray()
    for name, value in box.items():
        key, data = _bytes(name), _bytes(value)
        if not 0 < len(key) <= KEY_LIMIT:
            raise AmpError(f"a key has {len(key)} bytes, and from 1 to {KEY_LIMIT} can be sent")
        if len(data) > VALUE_LIMIT:
            raise AmpError(f"{name} has {len(data)} bytes, and at most {VALUE_LIMIT} can be sent")
        encoded += len(key).to_bytes(2, "big") + key + len(data).to_bytes(2, "big") + data
    if len(encoded) + 2 > BOX_LIMIT:
        raise AmpError(f"a box has {len(encoded) + 2} bytes, and at most {BOX_LIMIT} can be sent")
    return bytes(encoded + b"\0\0")


def _bytes(value: Union[str, bytes]) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        # Bytes of an argument or file name that are not UTF-8 are sent unchanged.
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as problem:
        raise AmpError(f"a string can't be sent as UTF-8: {problem.reason}") from None


def decode_text(value: bytes) -> str:
    """Return a value as text. `encode` restores bytes that are not UTF-8."""
    return value.decode("utf-8", "surrogateescape")


def spread(name: str, text: str) -> Dict[str, bytes]:
    """Split a value into values that fit: the first has the key NAME, the others have NAME.1, NAME.2, …

    This is an extension of AMP: other programs find only the first piece.

    :raises AmpError: the text can't be encoded as UTF-8
    """
    data, start = _bytes(text), 0
    pieces: Dict[str, bytes] = {}
    while start < len(data) or not pieces:
        end = start + VALUE_LIMIT
        # Don't split a character, so that each piece is valid text.
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces[f"{name}.{len(pieces)}" if pieces else name] = data[start:end]
        start = end
    return pieces


def gather(name: str, box: Mapping[str, bytes]) -> bytes:
    """Join a value that `spread` split; return nothing if the box does not contain it."""
    joined, number = bytearray(box.get(name, b"")), 1
    while f"{name}.{number}" in box:
        joined += box[f"{name}.{number}"]
        number += 1
    return bytes(joined)


class BoxDecoder:
    """Decodes a stream of bytes into boxes. It refuses an excessive length before it allocates memory."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.taken = 0  # bytes of the buffer that are already in `box`
        self.box: Dict[str, bytes] = {}

    def feed(self, data: bytes) -> List[Dict[str, bytes]]:
        """Add received bytes; return the boxes that they complete.

        :raises AmpError: the data is not a box; then the stream can't be decoded further
        """
        self.buffer += data
        boxes = []
        while True:
            length = self._length(self.taken)
            if length is None:
                break
            if not length:
                boxes.append(self.box)
                self.box = {}
                del self.buffer[: self.taken + 2]
                self.taken = 0
                continue
            if length > KEY_LIMIT:
                raise AmpError(f"not a box: a key of {length} bytes")
            start = self.taken + 2 + length
            size = self._length(start)
            if start + 2 + (size or 0) + 2 > BOX_LIMIT:
                raise AmpError(f"a box is over {BOX_LIMIT} bytes")
            if size is None or len(self.buffer) < start + 2 + size:
                break
            self._take(bytes(self.buffer[self.taken + 2 : start]), bytes(self.buffer[start + 2 : start + 2 + size]))
            self.taken = start + 2 + size
        return boxes

    def _length(self, position: int) -> Optional[int]:
        """Return the number in the two bytes at a position; None if they have not arrived."""
        if len(self.buffer) < position + 2:
            return None
        return int.from_bytes(self.buffer[position : position + 2], "big")

    def _take(self, key: bytes, value: bytes) -> None:
        name = decode_text(key)
        if name in self.box:
            raise AmpError(f"a box contains a key twice: {name!r:.80}")
        self.box[name] = value

    @property
    def partial(self) -> bool:
        """Whether the stream has an incomplete box at its end."""
        return bool(self.buffer)
