"""The bytes of a file that may be compressed, within limits of bytes, memory and time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

MOST_MEMORY = 72 << 20  # bytes that xz may use; `xz -9` needs 65 MiB
MOST_HEADER = 1 << 20  # bytes of the headers of one entry
FREE, RATIO = 128 << 20, 100  # more bytes than the first are allowed only up to this multiple of the packed bytes
MOST_PARTS = 200_000  # compressed parts, one after another
LONGEST = 300.0  # seconds for all of the content
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG = b"0" * 100  # tarfile takes quadratic time to read a number in the settings of an entry (CVE-2024-6232)
PIECE = 1 << 18  # bytes


class UnsafeArchive(StatecfgError, ValueError):
    """An archive that is not safe."""


class Unpacked:
    """The bytes of a tar file, which may be compressed.

    :param raw: the file
    :ivar headroom: how many bytes may still be read for the headers of an entry; None: content is being read
    """

    def __init__(self, raw: Any) -> None:
        self.raw, self.size = raw, raw.seek(0, 2)
        self.headroom: int | None = MOST_HEADER
        self.deadline = time.monotonic() + LONGEST
        self._begin()

    def _begin(self) -> None:
        """Go to the beginning of the file."""
        self.raw.seek(0)
        self._make = _decompressor(self.raw.read(6))
        self.raw.seek(0)
        self.packed = self.position = self.parts = 0
        self._codec: Any = self._make() if self._make is not None else None
        self._rest, self._first = b"", True

    def tell(self) -> int:
        """Return the position in the unpacked bytes."""
        return self.position

    def seek(self, position: int) -> int:
        """Go to a position in the unpacked bytes, or to their end."""
        if position < 0:
            raise UnsafeArchive("it has a negative offset")
        if self._codec is None:
            self.position = self.raw.seek(position)
            return position
        if position < self.position:
            self._begin()
        while self.position < position and self._next(min(PIECE, position - self.position)):
            continue
        return self.position

    def read(self, size: int = -1) -> bytes:
        """Return this number of bytes, fewer only at the end."""
        if size < 0:
            raise UnsafeArchive("it has an entry with a negative size")
        if self.headroom is not None:
            self.headroom -= size
            if self.headroom < 0:
                raise UnsafeArchive(f"an entry has more than {MOST_HEADER} bytes of names and settings")
        found = self._next(size)
        if len(found) < size and found:
            pieces, missing = [found], size - len(found)
            while missing and pieces[-1]:
                pieces.append(self._next(missing))
                missing -= len(pieces[-1])
            found = b"".join(pieces)
        if self.headroom is not None and _LONG in found.translate(_ZEROS):
            raise UnsafeArchive(f"an entry has {len(_LONG)} digits in a row in its names and settings")
        return found

    def _next(self, most: int) -> bytes:
        """Return some of the next bytes; nothing at the end."""
        found: bytes = self.raw.read(most) if self._codec is None else self._unpacked(most)
        self.position += len(found)
        if self.position > FREE and self._codec is not None and self.position > RATIO * self.packed:
            raise UnsafeArchive(f"it is a bomb: {self.packed} bytes contain more than {self.position}")
        return found

    def _unpacked(self, most: int) -> bytes:
        """Return some of the next bytes of a compressed file.

        :raises EOFError: if the file is not complete
        """
        while True:
            if self._codec.eof and not self._follow():
                return b""
            try:
                found: bytes = self._codec.decompress(self._input(), most)
            except Exception:
                if self._first:
                    raise
                return b""  # the bytes after the compressed data have no meaning
            if found:
                return found

    def _input(self) -> bytes:
        """Return the next packed bytes; nothing if the decompressor has enough."""
        data = self._rest or getattr(self._codec, "unconsumed_tail", b"")
        if not data and getattr(self._codec, "needs_input", True):
            data = self._more()
            if not data:
                raise EOFError("its end is missing")
        self._rest = b""
        return data

    def _follow(self) -> bool:
        """Go to the next compressed part of the file; return False if there is none."""
        rest = self._codec.unused_data.lstrip(b"\0")
        while not rest:
            data = self._more()
            if not data:
                return False
            rest = data.lstrip(b"\0")
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise UnsafeArchive(f"it has more than {MOST_PARTS} compressed parts")
        self._codec = self._make() if self._make is not None else None
        self._rest, self._first = rest, False
        return True

    def _more(self) -> bytes:
        data: bytes = self.raw.read(1 << 16)
        self.packed += len(data)
        if time.monotonic() > self.deadline:
            raise UnsafeArchive(f"it takes more than {LONGEST:g} seconds to read")
        return data


def _decompressor(start: bytes) -> Callable[[], Any] | None:
    """Return a function that makes a decompressor for a file that begins like this; None if it is not compressed."""
    if start.startswith(b"\x1f\x8b"):
        import zlib

        return lambda: zlib.decompressobj(31)
    if start.startswith(b"BZh"):
        import bz2

        return bz2.BZ2Decompressor
    if start.startswith((b"\xfd7zXZ", b"\x5d\x00\x00")):
        try:
            import lzma
        except ImportError:
            raise UnsafeArchive("Python has no module lzma here") from None
        return lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)
    return None
