"""Untrusted archives, tar and zip: what they contain, within limits of entries, names, bytes, memory and time.

Each limit holds before the data is read: no header decides how much is in memory.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from statecfg.resources.files.inflating import FREE, MOST_HEADER, PIECE, RATIO, Unpacked, UnsafeArchive

MOST_BYTES = 4 << 30  # of all unpacked files
MOST_ENTRIES = 50_000
MOST_HEADERS = 80_000  # of a tar: an entry with a long name or with settings has two
MOST_NAMES = 16 << 20  # bytes of all names, targets of links and settings
MOST_DIRECTORY = 32 << 20  # bytes of the directory of a zip
MOST_STEPS = 1_000_000  # to find where the links lead
LONGEST_NAME, LONGEST_PATH = 255, 4095  # bytes: the limits of Linux
LINKS = 40  # the limit of Linux
NOTHING = hashlib.sha256().hexdigest()


class PackedFile:
    """An entry of an archive.

    :param kind: `file`, `directory` or `symlink`
    :param info: what the module of the archive says about it; of a hard link, that of its file
    :param size: bytes of a file
    :param target: of a link
    """

    __slots__ = ("digest", "executable", "info", "kind", "size", "target")

    def __init__(self, kind: str, info: Any, size: int = 0, executable: bool = False, target: str = "") -> None:
        self.kind, self.info, self.size, self.executable, self.target = kind, info, size, executable, target
        self.digest = ""


class Archive:
    """An archive. It is opened when its content is needed.

    :param opened: returns the file as a stream
    :param strip: the number of leading components of each name to leave out
    """

    def __init__(self, opened: Callable[[], Any], strip: int) -> None:
        self.opened, self.strip = opened, strip
        self._raw: Any = None
        self._reader: _Tar | _Zip | None = None
        self._members: dict[str, PackedFile] = {}

    def __del__(self) -> None:
        self._close()

    def _close(self) -> None:
        """Close the file. Its members are read as long as something refers to the archive."""
        if self._raw is not None:
            self._raw.close()
        self._raw = self._reader = None

    def members(self, digests: bool = False) -> Mapping[str, PackedFile]:
        """Return name → member, in the order of the archive.

        :param digests: also read all files
        :raises ValueError: if it is not an archive, or not a safe one
        """
        if self._reader is None or (digests and not all(each.digest for each in self._members.values())):
            self._close()
            self._raw = self.opened()
            try:
                self._members = self._found(digests)
            except BaseException:
                self._close()
                raise
        return self._members

    def _found(self, digests: bool) -> dict[str, PackedFile]:
        """Read the archive from its beginning. See `members`."""
        found: dict[str, PackedFile] = {}
        try:
            self._reader = _Zip(self._raw) if _is_zip(self._raw) else _Tar(self._raw)
            self._read(self._reader, found, digests)
        except UnsafeArchive:
            raise
        except _failures() as problem:
            raise ValueError(f"it is not a readable tar or zip archive: {problem}") from None
        _check_parents(found)
        _check_links(found)
        return found

    def _read(self, reader: _Tar | _Zip, found: dict[str, PackedFile], digests: bool) -> None:
        """Fill a map with the members of an archive."""
        count = names = total = 0
        free = max(FREE, RATIO * reader.size)
        for parts, member in reader.each():
            count, total = count + 1, total + member.size
            names += sum(map(len, parts)) + len(member.target)
            if count > MOST_ENTRIES:
                raise UnsafeArchive(f"it has more than {MOST_ENTRIES} entries")
            if names > MOST_NAMES:
                raise UnsafeArchive(f"its names have more than {MOST_NAMES} bytes")
            if total > MOST_BYTES:
                raise UnsafeArchive(f"its files have more than {MOST_BYTES} bytes")
            if total > free:
                raise UnsafeArchive(f"it is a bomb: {reader.size} bytes contain {total}")
            if digests and member.kind == "file" and not member.digest:
                member.digest = _digest(reader.chunks(member, PIECE)) if member.size else NOTHING
            short = "/".join(parts[self.strip :])
            if short:
                found.pop(short, None)  # a later entry replaces an earlier one, as in tar
                found[short] = member

    def file_type(self, name: str) -> str:
        """Return the file type of a member."""
        return self.members()[name].kind

    def chunks(self, name: str, size: int = PIECE) -> Iterator[bytes]:
        """Yield the content of a file in pieces.

        :raises LookupError: if the archive is damaged
        """
        member = self.members()[name]
        assert self._reader is not None
        try:
            yield from self._reader.chunks(member, size)
        except _failures() as problem:  # `UnsafeArchive` is one of them
            raise LookupError(f"{name!r} can't be read: {problem}") from None


class _Tar:
    """A tar file."""

    def __init__(self, raw: Any) -> None:
        import tarfile

        self.stream = Unpacked(raw)
        self.size = self.stream.size
        self.file = tarfile.open(fileobj=self.stream, mode="r:")  # type: ignore[call-overload]  # it only reads
        self.found: dict[str, PackedFile] = {}  # for hard links

    def each(self) -> Iterator[tuple[list[str], PackedFile]]:
        """Yield each entry with the components of its name."""
        import tarfile

        settings = headers = 0
        while True:
            self.stream.headroom = MOST_HEADER
            info = self.file.next()
            self.stream.headroom = None
            if info is None:
                return
            headers += 1 if info.offset_data - info.offset <= tarfile.BLOCKSIZE else 2
            if headers > MOST_HEADERS:
                raise UnsafeArchive(f"it has more than {MOST_HEADERS} headers")
            if info.pax_headers:
                settings += sum(len(key) + len(str(value)) for key, value in info.pax_headers.items())
                if settings > MOST_NAMES:
                    raise UnsafeArchive(f"its settings have more than {MOST_NAMES} bytes")
                info.pax_headers = {}
            self.file.members = []  # this module has them
            if info.size < 0:
                raise UnsafeArchive(f"{info.name!r} has a negative size")
            member, parts = self._member(info), _parts(info.name)
            self.found["/".join(parts)] = member
            yield parts, member

    def _member(self, info: Any) -> PackedFile:
        if info.isdir():
            return PackedFile("directory", None)
        if info.issym():
            return PackedFile("symlink", None, target=info.linkname)
        executable = bool(info.mode & 0o100)
        if info.islnk():
            same = self.found.get("/".join(_parts(info.linkname)))
            if same is None or same.kind != "file":
                raise UnsafeArchive(f"{info.name!r} is a hard link to {info.linkname!r}, which is not a file before it")
            member = PackedFile("file", same.info, same.size, executable)
            member.digest = same.digest
            return member
        if not info.isreg():
            raise UnsafeArchive(f"{info.name!r} is neither a file, a directory nor a link")
        return PackedFile("file", info, info.size, executable)

    def chunks(self, member: PackedFile, size: int) -> Iterator[bytes]:
        """Yield the content of a file in pieces."""
        self.stream.headroom = None
        stream = self.file.extractfile(member.info)
        assert stream is not None
        piece = stream.read(size)
        while piece:
            yield piece
            piece = stream.read(size)


class _Zip:
    """A zip file."""

    def __init__(self, raw: Any) -> None:
        import zipfile

        self.size = raw.seek(0, 2)
        _check_directory(raw, self.size)
        raw.seek(0)
        self.file = zipfile.ZipFile(raw)

    def each(self) -> Iterator[tuple[list[str], PackedFile]]:
        """Yield each entry with the components of its name."""
        for info in self.file.infolist():
            yield _parts(info.filename), self._member(info)

    def _member(self, info: Any) -> PackedFile:
        name = info.filename
        if name.endswith("/"):
            return PackedFile("directory", None)
        if info.compress_type not in (0, 8):  # the others can use any amount of memory
            raise UnsafeArchive(f"{name!r} is compressed with a method other than deflate")
        if info.external_attr >> 28 != 0o12:
            return PackedFile("file", info, info.file_size, bool(info.external_attr >> 16 & 0o100))
        if info.file_size > LONGEST_PATH:
            raise UnsafeArchive(f"the link {name!r} is too long")
        return PackedFile("symlink", None, target=self.file.read(info).decode("utf-8", "surrogateescape"))

    def chunks(self, member: PackedFile, size: int) -> Iterator[bytes]:
        """Yield the content of a file in pieces."""
        with self.file.open(member.info) as stream:
            piece = stream.read(size)
            while piece:
                yield piece
                piece = stream.read(size)


def _is_zip(raw: Any) -> bool:
    raw.seek(0)
    start = raw.read(4)
    raw.seek(0)
    return bool(start in (b"PK\x03\x04", b"PK\x05\x06"))


def _check_directory(raw: Any, size: int) -> None:
    """Check the size of the directory of a zip, and count its entries, before Python reads it as a whole."""
    tail = min(size, 22 + 65535)
    raw.seek(size - tail)
    end = raw.read(tail)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        raise UnsafeArchive("it is not a readable tar or zip archive: its directory is missing")
    length, start = (int.from_bytes(end[at + a : at + a + 4], "little") for a in (12, 16))
    position = size - tail + at
    if 0xFFFFFFFF in (length, start) or end[at + 10 : at + 12] == b"\xff\xff":
        raw.seek(max(0, position - 20 - 56))
        wide = raw.read(76)
        if wide.startswith(b"PK\x06\x06") and wide[56:60] == b"PK\x06\x07":
            length, position = int.from_bytes(wide[40:48], "little"), position - 76
    if length > min(MOST_DIRECTORY, position):
        raise UnsafeArchive(f"its directory has {length} bytes")
    raw.seek(position - length)
    listed, at, count = raw.read(length), 0, 0
    while listed[at : at + 4] == b"PK\x01\x02":
        at += 46 + sum(int.from_bytes(listed[at + a : at + a + 2], "little") for a in (28, 30, 32))
        count += 1
        if count > MOST_ENTRIES:
            raise UnsafeArchive(f"it has more than {MOST_ENTRIES} entries")


def _parts(name: str) -> list[str]:
    """Return the components of a name.

    :raises UnsafeArchive: if it is not one of a file in the directory
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise UnsafeArchive(f"the name {name[:200]!r} leads out of the directory")
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError:
        raise UnsafeArchive(f"the name {name[:200]!r} is not UTF-8") from None
    if b"\0" in encoded:
        raise UnsafeArchive(f"the name {name[:200]!r} contains a null byte")
    long = len(encoded) > LONGEST_NAME
    if long and (len(encoded) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts)):
        raise UnsafeArchive(f"the name {name[:40]!r}… is too long")
    return parts


def _check_parents(found: Mapping[str, PackedFile]) -> None:
    checked: set[str] = set()
    length = 0
    for name in found:
        above = posixpath.dirname(name)
        while above and above not in checked:
            checked.add(above)
            length += len(above)
            if length > MOST_NAMES or len(checked) > MOST_ENTRIES:
                raise UnsafeArchive(f"it has more than {MOST_ENTRIES} directories, or their paths are too long")
            member = found.get(above)
            if member is not None and member.kind != "directory":
                raise UnsafeArchive(f"{name!r} is inside {above!r}, which is not a directory")
            above = posixpath.dirname(above)


def _check_links(found: Mapping[str, PackedFile]) -> None:
    """Check that no link leads out of the directory, also not through other links of the archive."""
    steps = 0
    for name, member in found.items():
        if member.kind == "symlink":
            steps = _follow(found, name, member.target, steps)


def _follow(found: Mapping[str, PackedFile], name: str, target: str, steps: int) -> int:
    """Go where a link leads, and return the number of steps so far.

    :raises UnsafeArchive: if this is out of the directory
    """
    why = f"the link {name!r} to {target[:200]!r} leads out of the directory"
    try:
        if target.startswith("/") or "\0" in target or len(target.encode("utf-8")) > LONGEST_PATH:
            raise UnsafeArchive(why)
    except UnicodeEncodeError:
        raise UnsafeArchive(why) from None
    here, rest, links = name.split("/")[:-1], target.split("/")[::-1], 0
    while rest:
        steps += 1
        if steps > MOST_STEPS:
            raise UnsafeArchive("its links lead through too many links")
        part = rest.pop()
        if part == "..":
            if not here:
                raise UnsafeArchive(why)
            here.pop()
        elif part not in ("", "."):
            here.append(part)
            member = found.get("/".join(here))
            if member is not None and member.kind == "symlink":
                links += 1
                if links > LINKS or member.target.startswith("/"):
                    raise UnsafeArchive(f"the link {name!r} leads through too many links")
                here.pop()
                rest += member.target.split("/")[::-1]
    return steps


def _digest(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions with which the standard library refuses an archive."""
    import tarfile
    import zipfile
    import zlib

    plain = (OSError, EOFError, LookupError, RuntimeError, ValueError, ArithmeticError, MemoryError)
    found: tuple[type[Exception], ...] = (*plain, zlib.error, tarfile.TarError, zipfile.BadZipFile)
    try:
        from lzma import LZMAError
    except ImportError:  # a Python without xz
        return found
    return (*found, LZMAError)
