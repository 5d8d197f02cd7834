"""Frames: the messages between controller and host, each with a JSON header and an optional body of bytes."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.model import Blob, HostNode, JsonMap
from statecfg.remote.wire.strict_json import loads

Frame = Tuple[JsonMap, bytes]  # header and body

PROTOCOL = 1
HEAD = struct.Struct(">IIB")  # bytes of header, bytes of body, flags
PACKED = 1  # flag: header and body are compressed together
CONTROL_LIMIT = 4 << 20  # maximum bytes of one header
BODY_LIMIT = 256 << 10  # maximum bytes of one body: a piece of content
PACKED_LIMIT = CONTROL_LIMIT + BODY_LIMIT  # maximum bytes of header and body, compressed
PACK_FROM = 512  # bytes; compress only frames of at least this size
INLINE = 4096  # maximum bytes of content that is sent inside its node
DEPTH = 128  # maximum levels of nesting; a frame can contain a hook's output, which may have 100
DIGITS = 40  # maximum digits of an integer
GREETING = b"statecfg-executor "
PLAIN = frozenset({str, int, float, bool, type(None)})  # types of values that are JSON already
NOISE = 64 << 10  # maximum bytes that a login shell may print before the greeting


class ProtocolError(StatecfgError):
    """The exchange failed: a frame is invalid or unexpected, or the connection is lost."""


def encode(header: Mapping[str, Any], body: bytes = b"", pack: bool = True) -> bytes:
    """Return a frame as bytes.

    :param header: a map of JSON types
    :param pack: compress it if that makes it smaller
    :raises ProtocolError: if the header can't be written as JSON, or the frame is too large
    """
    try:
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError as problem:
        raise ProtocolError(f"a frame can't be written as JSON: {problem}") from None
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > CONTROL_LIMIT or len(body) > BODY_LIMIT:
        raise ProtocolError(f"a frame of {len(data)} and {len(body)} bytes is over the limit")
    if pack and len(data) + len(body) >= PACK_FROM:
        packed = zlib.compress(data + body, 1)
        if len(packed) < len(data) + len(body):
            return HEAD.pack(len(data), len(packed), PACKED) + packed
    return HEAD.pack(len(data), len(body), 0) + data + body


class Decoder:
    """Converts a stream of bytes to frames, and refuses a frame that is too large before it is read."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.volume = 0  # bytes of all received headers, decompressed

    def feed(self, data: bytes) -> List[Frame]:
        """Add bytes; return the frames that they complete.

        :raises ProtocolError: if a frame is invalid
        """
        return list(self.take(data))

    def take(self, data: bytes) -> Iterator[Frame]:
        """Add bytes; yield the frames that they complete, and decompress each only when it is requested.

        :raises ProtocolError: if a frame is invalid
        """
        self.buffer += data
        while len(self.buffer) >= HEAD.size:
            first, second, flags = HEAD.unpack_from(self.buffer)
            most = PACKED_LIMIT if flags & PACKED else BODY_LIMIT
            if not 0 < first <= CONTROL_LIMIT or second > most or flags > PACKED:
                raise ProtocolError(f"not a frame: lengths {first} and {second}")
            end = HEAD.size + (second if flags & PACKED else first + second)
            if len(self.buffer) < end:
                break
            with memoryview(self.buffer)[HEAD.size : end] as content:  # one copy of each byte
                if flags & PACKED:
                    plain = _unpack(content, first + BODY_LIMIT + 1)
                    header, body = plain[:first], plain[first:]
                else:
                    header, body = bytes(content[:first]), bytes(content[first:])
            del self.buffer[:end]
            if len(header) < first:
                raise ProtocolError("a frame is shorter than its header states")
            self.volume += first
            self.weigh(header)
            yield _header(header), body

    def weigh(self, header: bytes) -> None:
        """Check how much memory a header takes when it is decoded. This class accepts all; subclasses can refuse.

        :raises ProtocolError: if it takes too much
        """

    def partial(self) -> str:
        """Return where in a frame the stream ended, "" if the last frame is complete."""
        if not self.buffer:
            return ""
        if len(self.buffer) < HEAD.size:
            return f"inside a frame's head (got {len(self.buffer)} of {HEAD.size} bytes)"
        first, second, flags = HEAD.unpack_from(self.buffer)
        total = HEAD.size + (second if flags & PACKED else first + second)
        return f"inside a frame (got {len(self.buffer)} of {total} bytes)"


def _unpack(data: memoryview, limit: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data, limit)
    except zlib.error as problem:
        raise ProtocolError(f"a frame can't be unpacked: {problem}") from None
    if unpacker.unconsumed_tail or unpacker.unused_data or not unpacker.eof:
        raise ProtocolError("a packed frame is over the limit or cut")
    return plain


def _header(text: bytes) -> JsonMap:
    try:
        _check_depth(text)
        header = loads(text.decode("utf-8", "surrogatepass"), DIGITS, unique=True)
    except (ValueError, RecursionError) as problem:
        raise ProtocolError(f"a frame's header is not JSON: {problem}") from None
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        raise ProtocolError("a frame's header is not a map with a type")
    return header


_TEXTS = rb'"[^"]*"?'  # never backtracks, even if the closing quote is missing
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))


def without_texts(text: bytes) -> bytes:
    """Return JSON without its strings. The text may be invalid JSON."""
    import re

    return re.sub(_TEXTS, b"", text.replace(b"\\\\", b"").replace(b'\\"', b""))


def _check_depth(text: bytes) -> None:
    """Raise ValueError if JSON is nested too deep; check this before anything parses it."""
    if text.count(b"[") + text.count(b"{") <= DEPTH:
        return
    depth = 0
    for bracket in without_texts(text).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH:
            raise ValueError(f"it is nested more than {DEPTH} levels deep")


def encode_value(value: Any, inline: int = INLINE, blobs: Optional[Dict[str, Blob]] = None) -> Any:
    """Return a value as JSON types. Content becomes its digest and size, with its bytes if it is small.

    :param inline: maximum bytes of content to include
    :param blobs: receives the content that is not included, by digest
    :raises TypeError: if the value can't be written as JSON
    """
    if type(value) in PLAIN:  # most values, so they come first
        return value
    if isinstance(value, Blob):
        encoded: Dict[str, Any] = {"$blob": [value.sha256, value.size]}
        if value.size <= inline:
            data = value.read()
            try:
                encoded["text"] = data.decode("utf-8")
            except UnicodeDecodeError:
                from base64 import b64encode

                encoded["base64"] = b64encode(data).decode("ascii")
        elif blobs is not None:
            blobs[value.sha256] = value
        return encoded
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)) or type(value).__name__ == "PVector":
        return [encode_value(item, inline, blobs) for item in value]
    if hasattr(value, "items"):
        encoded = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a key is {key!r:.80}; keys must be text")
            encoded["$" + key if key.startswith("$") else str(key)] = encode_value(item, inline, blobs)
        return encoded
    raise TypeError(f"{value!r:.80} can't be sent to a host: only text, numbers, lists and maps can")


def decode_value(value: Any, blobs: Dict[str, Blob]) -> Any:
    """Return the value that `encode_value` encoded.

    :param blobs: receives the content by digest; equal content is represented by one blob
    :raises ProtocolError: if content does not match its digest
    """
    if type(value) in PLAIN:
        return value
    if isinstance(value, list):
        return [decode_value(item, blobs) for item in value]
    if not isinstance(value, dict):
        return value
    if "$blob" not in value:
        return {key[1:] if key.startswith("$") else key: decode_value(item, blobs) for key, item in value.items()}
    sha256, size = value["$blob"]
    blob = blobs.get(sha256)
    if blob is None:
        data = None
        if "text" in value:
            data = value["text"].encode("utf-8")
        elif "base64" in value:
            from base64 import b64decode

            data = b64decode(value["base64"])
        if data is not None:
            blob = Blob.of(data)
            if blob.sha256 != sha256:
                raise ProtocolError(f"content does not match its digest {sha256[:12]}")
        else:
            blob = Blob(sha256, size)
        blobs[sha256] = blob
    return blob


def decode_node(data: Mapping[str, Any], blobs: Dict[str, Blob]) -> HostNode:
    """Return the node that the controller sent as `data`.

    :param blobs: receives the content by digest
    """
    return HostNode(
        data["provides"],
        data["type"],
        data.get("requires", ()),
        decode_value(data.get("attrs", {}), blobs),
        data.get("triggers", ()),
        data.get("produces_ops", ()),
        data.get("position", ""),
        data.get("options", {}),
        data.get("hides", ()),
    )
